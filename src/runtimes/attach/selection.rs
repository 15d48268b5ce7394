//! Which of the processes that are asked for a trace is the one to be traced.
//!
//! The request is in the environment, so every program that a command starts has it: the
//! shell, `make`, `dune exec` and the compilers that it runs. Programs without a runtime pass
//! it on by themselves. A program of OCaml takes it, unless
//!
//! - names were given ([`ONLY`]), and it has another;
//! - it is a wrapper, such as `dune exec`, that only prepares another program and then
//!   becomes it by `exec`. The wrapper notes its process id ([`TARGET`]), which the program
//!   will have, and which the compilers that the wrapper runs before do not have;
//! - it is one of those.
//!
//! What passes the request on leaves no file. Before `main`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use heaptap_settings::{ONLY, TARGET};

use super::environment;

/// What becomes of the request for a trace in this process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// It is for this process, or for those that this one starts if it has no runtime.
    Taken,
    /// It is for another process.
    Passed,
    /// It is for the program that this wrapper starts.
    Wrapped(Wrapper),
}

/// How a wrapper starts its program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrapper {
    /// By `exec`, in its own process. Its children are helpers.
    ByExec,
    /// As a child, whose name is one of these words. Its other children are helpers.
    ChildNamed(Vec<OsString>),
    /// As its only child.
    Child,
}

/// What a process is known by.
pub(super) struct ProcessNames {
    /// The file that is executed; empty if the system does not tell.
    executable: PathBuf,
    arguments: Vec<OsString>,
}

impl ProcessNames {
    pub(super) fn of_this_process() -> ProcessNames {
        ProcessNames {
            executable: std::fs::read_link("/proc/self/exe").unwrap_or_default(),
            arguments: std::env::args_os().collect(),
        }
    }

    /// The names of its files: as it was started, as that file is called in truth, and the
    /// script or bytecode that it interprets.
    fn files(&self) -> impl Iterator<Item = &Path> {
        let started_as = self.arguments.first().map(Path::new);
        let interprets = [Some(self.executable.as_path()), started_as].iter().flatten().any(|it| {
            let name = it.file_name().unwrap_or_default().as_bytes();
            name == b"ocaml" || name.starts_with(b"ocamlrun") || name.starts_with(b"ruby")
        });
        let is_file = |argument: &&OsString| !argument.as_bytes().starts_with(b"-");
        let script = self.arguments.iter().skip(1).find(is_file).filter(|_| interprets);
        let files = [started_as, Some(self.executable.as_path()), script.map(Path::new)];
        files.into_iter().flatten()
    }

    /// The name for messages.
    pub(super) fn shown(&self) -> &OsStr {
        self.files().find_map(Path::file_name).unwrap_or(OsStr::new("a program"))
    }

    /// Whether it is the program of this name, with or without `.exe` or the like, or the file
    /// of this path.
    fn is(&self, wanted: &OsStr) -> bool {
        if wanted.as_bytes().contains(&b'/') {
            let wanted = Path::new(wanted).canonicalize();
            let is_wanted = |path: PathBuf| wanted.as_ref().is_ok_and(|wanted| *wanted == path);
            return self.files().any(|file| file.canonicalize().is_ok_and(is_wanted));
        }
        self.files().any(|file| [file.file_name(), file.file_stem()].contains(&Some(wanted)))
    }

    /// How it starts another program, if it is a wrapper.
    fn wrapper(&self) -> Option<Wrapper> {
        let command = self.arguments.get(1)?.as_bytes();
        // Subcommands may be abbreviated.
        let executes = command.len() > 1 && b"exec".starts_with(command);
        if executes && self.is(OsStr::new("dune")) {
            let words = self.arguments.iter().skip(2);
            let watches = words.clone().any(|word| word == "-w" || word == "--watch");
            let name = |word: &OsString| Path::new(word).file_name().map(OsStr::to_owned);
            let names = words.filter(|word| !word.as_bytes().starts_with(b"-")).filter_map(name);
            // While it watches, it stays, and the program is its child.
            return Some(match watches {
                true => Wrapper::ChildNamed(names.collect()),
                false => Wrapper::ByExec,
            });
        }
        if executes && self.is(OsStr::new("opam")) {
            return Some(Wrapper::ByExec);
        }
        // `ocamlfind ocamlopt`, `ocamlfind PACKAGE/COMMAND`.
        let runs = command.starts_with(b"ocaml") || command.contains(&b'/');
        (runs && self.is(OsStr::new("ocamlfind"))).then_some(Wrapper::Child)
    }
}

impl Choice {
    /// `only` and `target` are what the environment says, `pid` is this process.
    fn of(
        names: &ProcessNames,
        has_runtime: bool,
        only: &[OsString],
        target: Option<u64>,
        pid: u32,
    ) -> Choice {
        if !only.is_empty() {
            let is_wanted = only.iter().any(|name| names.is(name));
            return if is_wanted { Choice::Taken } else { Choice::Passed };
        }
        if target.is_some_and(|target| target != u64::from(pid)) {
            return Choice::Passed;
        }
        let wrapper = if has_runtime { names.wrapper() } else { None };
        wrapper.map_or(Choice::Taken, Choice::Wrapped)
    }
}

/// Decides for this process, and prepares the environment of those that it starts. An
/// environment with values that are not accepted leaves the request here, where it is refused.
pub(super) fn choose(names: &ProcessNames, has_runtime: bool) -> Choice {
    let lookup = |name: &str| std::env::var_os(name);
    let (Ok(only), Ok(target)) = (ONLY.find_names(lookup), TARGET.find_integer(lookup)) else {
        return Choice::Taken;
    };
    let pid = std::process::id();
    let choice = Choice::of(names, has_runtime, &only, target, pid);
    match &choice {
        Choice::Taken => environment::set_selection(TARGET.name, None),
        Choice::Passed => {}
        Choice::Wrapped(Wrapper::ByExec) => {
            environment::set_selection(TARGET.name, Some(pid.to_string().into()));
        }
        Choice::Wrapped(Wrapper::ChildNamed(names)) => {
            environment::set_selection(ONLY.name, Some(names.join(OsStr::new(","))));
        }
        Choice::Wrapped(Wrapper::Child) => environment::set_selection(TARGET.name, None),
    }
    choice
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(executable: &str, arguments: &[&str]) -> ProcessNames {
        ProcessNames {
            executable: executable.into(),
            arguments: arguments.iter().map(OsString::from).collect(),
        }
    }

    /// Without names and without a target.
    fn choice(executable: &str, arguments: &[&str]) -> Choice {
        Choice::of(&process(executable, arguments), true, &[], None, 7)
    }

    #[test]
    fn wrappers_are_looked_through() {
        for (program, command) in [("dune", "exec"), ("opam", "exec"), ("dune.exe", "exe")] {
            let wrapped = Choice::Wrapped(Wrapper::ByExec);
            assert_eq!(choice("/x", &[program, command, "--", "./a.exe"]), wrapped, "{program}");
            assert_eq!(choice(&format!("/usr/bin/{program}"), &["x", command]), wrapped);
        }
        let child = Choice::Wrapped(Wrapper::Child);
        assert_eq!(choice("/usr/bin/ocamlfind", &["ocamlfind", "ocamlopt", "-c", "a.ml"]), child);
        let named = Choice::Wrapped(Wrapper::ChildNamed(vec!["main.exe".into(), "5".into()]));
        assert_eq!(choice("/b/dune", &["dune", "exec", "-w", "./src/main.exe", "5"]), named);
    }

    #[test]
    fn the_same_programs_at_other_work_are_traced() {
        for call in [
            &["dune", "build"][..],
            &["dune"],
            &["dune", "e"],
            &["opam", "list"],
            &["ocamlfind", "list"],
            &["main.exe", "exec"],
        ] {
            assert_eq!(choice(&format!("/b/{}", call[0]), call), Choice::Taken, "{call:?}");
        }
    }

    #[test]
    fn helpers_of_a_wrapper_pass_the_request_on() {
        let compiler = process("/usr/bin/ocamlopt.opt", &["ocamlopt.opt", "-c", "a.ml"]);
        assert_eq!(Choice::of(&compiler, true, &[], Some(6), 7), Choice::Passed);
        assert_eq!(Choice::of(&compiler, false, &[], Some(6), 7), Choice::Passed);
        assert_eq!(Choice::of(&compiler, true, &[], Some(7), 7), Choice::Taken);
        // The shell that `dune exec` ends in is no wrapper of its own kind.
        assert_eq!(Choice::of(&process("/b/sh", &["sh"]), false, &[], Some(7), 7), Choice::Taken);
        // A wrapper in a wrapper.
        let dune = process("/b/dune", &["dune", "exec", "./a.exe"]);
        let wrapped = Choice::Wrapped(Wrapper::ByExec);
        assert_eq!(Choice::of(&dune, true, &[], Some(7), 7), wrapped);
    }

    #[test]
    fn names_choose_programs() {
        let chosen = |process: &ProcessNames, name: &str| {
            Choice::of(process, true, &[name.into()], Some(6), 7) == Choice::Taken
        };
        let installed = process("/p/_build/default/bin/main.exe", &["/p/bin/fooprog", "5"]);
        for name in ["main.exe", "main", "fooprog"] {
            assert!(chosen(&installed, name), "{name}");
        }
        assert!(!chosen(&installed, "5") && !chosen(&installed, "dune"));
        let bytecode = process("/usr/bin/ocamlrun", &["/usr/bin/ocamlrun", "-b", "./main.bc"]);
        assert!(chosen(&bytecode, "main.bc") && chosen(&bytecode, "ocamlrun"));
        // By name, a wrapper too.
        assert!(chosen(&process("/b/dune", &["dune", "exec", "./a.exe"]), "dune"));
        let own = std::env::current_exe().unwrap();
        let this = process(own.to_str().unwrap(), &["x"]);
        assert!(chosen(&this, own.to_str().unwrap()) && !chosen(&this, "/no/such/file"));
    }
}
