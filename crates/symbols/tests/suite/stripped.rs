//! Programs without DWARF: names from symbol tables, or addresses.

use std::collections::BTreeMap;

use heaptap_symbols::names::readable;

use crate::native::C;
use crate::toolchain::{
    Frame, addresses_in, binutils, compile, directory, functions, have, ours, run,
};

#[test]
fn without_debug_information_the_symbol_table_is_used() {
    if !have(&["gcc", "nm", "addr2line", "strip"]) {
        return;
    }
    let directory = directory("stripped-debug");
    compile(&directory, "program.c", C, "gcc -g -O2 -o program SOURCE");
    run(&directory, "strip -g program");
    let program = directory.join("program");
    let own = ["block", "outer", "local", "main", "_start"];
    let addresses = addresses_in(&program, |name| own.contains(&name));
    assert!(addresses.len() > 100);
    let theirs: Vec<Vec<Frame>> = binutils(&program, &addresses)
        .into_iter()
        .map(|frames| frames.into_iter().map(|(name, _, _)| (name, "program".into(), 0)).collect())
        .collect();
    assert_eq!(ours(&program, &addresses), theirs);
}

#[test]
fn exported_functions_of_a_stripped_program_are_named() {
    if !have(&["gcc", "nm", "strip"]) {
        return;
    }
    let directory = directory("stripped-all");
    compile(&directory, "program.c", C, "gcc -g -O2 -rdynamic -o program SOURCE");
    let program = directory.join("program");
    let local = functions(&program, "")["local"];
    run(&directory, "strip program");
    let exported = functions(&program, "-D");
    for name in ["block", "outer", "main"] {
        let (start, size) = exported[name];
        let wanted = vec![(name.to_string(), "program".to_string(), 0)];
        assert_eq!(ours(&program, &[start, start + size - 1]), [wanted.clone(), wanted]);
    }
    // A function that is not exported does not get a neighbour's name.
    let (start, _) = local;
    let shown = format!("program+{:#x}", start + 1);
    assert_eq!(ours(&program, &[start]), [vec![(shown, "program".to_string(), 0)]]);
}

#[test]
fn a_function_of_no_size_reaches_to_the_next_one_in_its_section() {
    if !have(&["gcc", "nm"]) {
        return;
    }
    let text = "
        .globl first, second, other
        .type first, @function
        .type second, @function
        .type other, @function
        .text
first:  nop
label:  nop
        nop
second: nop
        nop
        .size second, 1
        .section .text.other, \"ax\"
other:  nop
        nop
bare:   nop
    ";
    let directory = directory("stripped-sizes");
    compile(
        &directory,
        "p.s",
        text,
        "gcc -shared -nostdlib -Wl,--unique=.text.other -o p.so SOURCE",
    );
    let program = directory.join("p.so");
    let listed = run(&directory, "nm p.so");
    let at = |wanted: &str| {
        let line = listed.lines().find(|line| line.ends_with(&format!(" {wanted}"))).unwrap();
        u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
    };
    let shown = |address| ours(&program, &[address])[0][0].0.clone();
    assert_eq!(shown(at("first")), "first");
    // A label ends a function without a size: assembly has such functions.
    assert_eq!(shown(at("label")), "label");
    assert_eq!(shown(at("label") + 1), "label");
    assert_eq!(shown(at("second")), "second");
    assert_eq!(shown(at("second") + 1), format!("p.so+{:#x}", at("second") + 2));
    assert_eq!(shown(at("other") + 1), "other");
    assert_eq!(shown(at("bare")), "bare");
    assert_eq!(shown(at("bare") + 1), format!("p.so+{:#x}", at("bare") + 2));
}

#[test]
fn every_exported_function_of_the_c_library_is_found() {
    let listed = std::fs::read_to_string("/proc/self/maps").unwrap();
    let library = listed
        .lines()
        .find_map(|line| line.split(' ').next_back().filter(|path| path.ends_with("/libc.so.6")));
    let (Some(library), true) = (library, have(&["nm", "objcopy"])) else {
        return eprintln!("SKIPPED: this is no glibc system");
    };
    // Without its debug file, which has other names for some of them.
    let directory = directory("stripped-libc");
    run(&directory, &format!("objcopy -R .note.gnu.build-id -R .gnu_debuglink {library} libc.so"));
    let library = directory.join("libc.so");
    let exported = functions(&library, "-D");
    let mut by_address: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (name, (start, size)) in exported {
        // Data may have a letter of code; a function of no size has its own test.
        if size > 0 {
            let name = readable(name.as_bytes()).into_owned();
            by_address.entry(start).or_default().push(String::from_utf8(name).unwrap());
        }
    }
    let starts: Vec<u64> = by_address.keys().copied().collect();
    assert!(starts.len() > 1000, "{}", starts.len());
    for (start, frames) in starts.iter().zip(ours(&library, &starts)) {
        let shown = &frames.last().unwrap().0;
        assert!(
            by_address[start].contains(shown),
            "{start:#x}: {shown} is none of {:?}",
            by_address[start]
        );
    }
}
