//! The programs that are injected into.

use std::fmt::Write;
use std::path::Path;

use crate::target::Program;
use crate::toolchain::{compile, compile_with, directory, have, run};

/// All for which there are tools: seven of ours, native, one as bytecode, the stock compiler and
/// Coq. Each runs for some tenths of a second.
pub(crate) fn all(test: &str) -> Vec<Program> {
    if !have(&["ocamlopt", "ocamlc", "ocamlrun", "gcc", "nm", "readelf"]) {
        return Vec::new();
    }
    let directory = directory(test);
    let native = |name, arguments: &[&str]| {
        let program = compile(&directory, name);
        let mut command = vec![program.to_str().expect("a plain path")];
        command.extend(arguments);
        Program::new(name, &directory, &command)
    };
    run(&directory, "ocamlopt -shared plugin.ml -o plugin.cmxs");
    let mut programs = vec![
        native("trees", &["6000"]),
        native("threads", &["2500"]),
        native("overflow", &["150"]),
        native("plugins", &["100", "."]),
        native("mallocs", &["3000"]),
        native("forks", &["40"]),
        bytecode(&directory),
        hooked(&directory),
        stock_compiler(&directory),
    ];
    if have(&["coqc"]) {
        programs.push(Program::new("coqc", &directory, &["coqc", "-q", "proof.v"]));
    }
    programs
}

fn bytecode(directory: &Path) -> Program {
    let program = compile_with(directory, "trees", "ocamlc", "cma", "trees.byte");
    let program = program.to_str().expect("a plain path");
    // The program itself begins with `#!/usr/bin/ocamlrun` too, but links to that are followed.
    Program::new("bytecode", directory, &["ocamlrun", program, "500"])
}

/// A program that uses the hook itself.
fn hooked(directory: &Path) -> Program {
    run(directory, "ocamlopt -w -a hooked_stubs.c hooked.ml -o hooked");
    let program = directory.join("hooked");
    Program::new("hooked", directory, &[program.to_str().expect("a plain path"), "600"])
}

/// `ocamlopt.opt` compiling a file of some hundred functions.
fn stock_compiler(directory: &Path) -> Program {
    let mut source = String::new();
    for number in 0..400 {
        writeln!(
            source,
            "let f{number} a b = match List.map (fun x -> x * {number}) a with [] -> b | \
             x :: _ when x > b -> x + {number} | _ -> List.fold_left (+) {number} a"
        )
        .expect("a string");
    }
    std::fs::write(directory.join("large.ml"), source).expect("a source");
    Program::new("compiler", directory, &["ocamlopt.opt", "-c", "-w", "-a", "-S", "large.ml"])
}
