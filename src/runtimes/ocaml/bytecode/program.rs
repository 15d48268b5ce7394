//! The file of the bytecode program that this process runs.
//!
//! Found before `main`, as the runtime finds it afterwards (`caml_main`, `runtime/startup_byt.c`,
//! 4.14.1 and 5.3.0): a name that is relative then does not depend on where the program goes later.

use std::ffi::{CStr, OsStr, OsString, c_char};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Code;
use super::file::BytecodeFile;
use crate::runtimes::attach::symbols;
use crate::sys::program;

/// The program, if this executable is an interpreter that runs it from another file: `ocamlrun`,
/// started by name or by the first line of the program. Before `main`.
pub(crate) fn interpreted() -> Option<PathBuf> {
    symbols::lookup(c"caml_start_code")?;
    let arguments: Vec<OsString> = std::env::args_os().collect();
    find(&std::env::current_exe().ok()?, &arguments)
}

fn find(executable: &Path, arguments: &[OsString]) -> Option<PathBuf> {
    // What a program of its own with a runtime in it, or an old launcher, passes on.
    let first = in_path(arguments.first()?);
    if is_program(&first) && !is_script(&first) {
        let first = first.canonicalize().ok()?;
        return (first != executable).then_some(first);
    }
    if is_program(executable) {
        return None;
    }
    let script = in_path(first_operand(arguments.get(1..)?)?);
    // A program that is linked with the runtime as a library may take such files as arguments.
    let is_runtime = executable.file_name()?.as_bytes().starts_with(b"ocamlrun");
    let is_run = is_program(&script) && (is_runtime || names(&script, executable));
    if is_run { script.canonicalize().ok() } else { None }
}

/// The first argument that is no option of the runtime (`parse_command_line`).
fn first_operand(arguments: &[OsString]) -> Option<&OsString> {
    let mut rest = arguments.iter();
    loop {
        let argument = rest.next()?;
        match argument.as_bytes() {
            b"--" => return rest.next(),
            b"-I" => _ = rest.next()?,
            [b'-', ..] => {}
            _ => return Some(argument),
        }
    }
}

/// As `caml_search_exe_in_path` (`runtime/unix.c`): a name without a slash is looked for.
fn in_path(name: &OsStr) -> PathBuf {
    let own = PathBuf::from(name);
    if name.as_bytes().contains(&b'/') {
        return own;
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&directories).map(|directory| directory.join(name));
    found.into_iter().find(|path| path.is_file()).unwrap_or(own)
}

fn is_program(path: &Path) -> bool {
    let is_file = path.metadata().is_ok_and(|facts| facts.is_file());
    is_file && File::open(path).ok().and_then(BytecodeFile::read).is_some()
}

fn is_script(path: &Path) -> bool {
    interpreter(path).is_some()
}

/// Whether the first line of a script says that this executable interprets it.
fn names(script: &Path, executable: &Path) -> bool {
    let is_it = |path: PathBuf| path.canonicalize().is_ok_and(|path| path == executable);
    interpreter(script).is_some_and(is_it)
}

/// What the first line of a script names.
fn interpreter(script: &Path) -> Option<PathBuf> {
    const LONGEST: u64 = 4096;
    let mut line = Vec::new();
    BufReader::new(File::open(script).ok()?.take(LONGEST)).read_until(b'\n', &mut line).ok()?;
    let name = line.strip_prefix(b"#!")?.trim_ascii();
    let name = name.split(u8::is_ascii_whitespace).next()?;
    Some(PathBuf::from(OsStr::from_bytes(name)))
}

/// The file of the program's bytecode, once the program has begun. `None` if another file has its
/// name now, as far as the length of the code shows that. Not inside hooks.
pub(super) fn open(code: Code) -> Option<BytecodeFile> {
    let read = |path: &Path| BytecodeFile::read(File::open(path).ok()?);
    let file = match program::interpreted() {
        Some(program) => read(program),
        // The file that runs, whatever has its name.
        None => read(Path::new("/proc/self/exe")).or_else(|| read(&runtime_name()?)),
    };
    file.filter(|file| file.length(*b"CODE") == Some(code.size_now() as u64))
}

/// The name that the runtime has found, once it has begun: `char_os * caml_exe_name` (4.14.1,
/// `runtime/sys.c`), or the first field of `const struct caml_params * const caml_params` (5.3.0,
/// `runtime/caml/startup_aux.h`).
fn runtime_name() -> Option<PathBuf> {
    let place = match symbols::lookup(c"caml_exe_name") {
        Some(place) => place,
        // SAFETY: `caml_params` is a constant of the runtime that holds a pointer.
        None => unsafe { (symbols::lookup(c"caml_params")? as *const usize).read() },
    };
    // SAFETY: the pointer to the name, in a variable of the runtime.
    let name = unsafe { (place as *const *const c_char).read() };
    if name.is_null() {
        return None;
    }
    // SAFETY: not NULL, so it is the C string that the runtime has set, and never frees.
    let name = unsafe { CStr::from_ptr(name) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A directory with a runtime, and with a program behind a first line.
    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Place {
            let place = Place(tempfile::tempdir().unwrap());
            for runtime in ["ocamlrun", "own-runtime", "linked"] {
                fs::write(place.path(runtime), b"\x7fELF").unwrap();
            }
            place
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn program(&self, name: &str, first_line: &str) -> PathBuf {
            let trailer = b"\0\0\0\0Caml1999X030";
            fs::write(self.path(name), [first_line.as_bytes(), trailer].concat()).unwrap();
            self.path(name)
        }

        fn found(&self, runtime: &str, arguments: &[&str]) -> Option<PathBuf> {
            let arguments: Vec<OsString> = arguments.iter().map(|&word| word.into()).collect();
            find(&self.path(runtime), &arguments)
        }
    }

    #[test]
    fn a_program_is_found_behind_options_of_the_runtime() {
        let place = Place::new();
        let program = place.program("a.byte", "#!/usr/bin/ocamlrun\n");
        let name = program.to_str().unwrap();
        let found = |arguments: &[&str]| place.found("ocamlrun", arguments);
        assert_eq!(found(&["ocamlrun", name, "-v"]), Some(program.clone()));
        assert_eq!(found(&["ocamlrun", "-b", "-I", "/lib", name]), Some(program.clone()));
        assert_eq!(found(&["ocamlrun", "--", name]), Some(program.clone()));
        assert_eq!(found(&["ocamlrun", "-version"]), None);
        assert_eq!(found(&["ocamlrun", "/none.byte", name]), None);
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn a_launcher_passes_the_program_as_the_first_argument() {
        let place = Place::new();
        let program = place.program("a.exe", "launcher");
        assert_eq!(place.found("ocamlrun", &[program.to_str().unwrap(), "x"]), Some(program));
    }

    #[test]
    fn a_runtime_of_another_name_is_known_by_the_first_line() {
        let place = Place::new();
        let line = format!("#!{}\n", place.path("own-runtime").display());
        let program = place.program("a.byte", &line);
        let name = program.to_str().unwrap();
        assert_eq!(place.found("own-runtime", &["own-runtime", name]), Some(program.clone()));
        assert_eq!(place.found("linked", &["linked", name]), None, "an argument like any other");
    }

    #[test]
    fn an_executable_with_its_bytecode_is_the_program() {
        let place = Place::new();
        let custom = place.program("custom", "\x7fELF");
        let other = place.program("other.byte", "#!/usr/bin/ocamlrun\n");
        let name = custom.to_str().unwrap();
        assert_eq!(place.found("custom", &[name, other.to_str().unwrap()]), None);
        assert_eq!(place.found("custom", &["any name", other.to_str().unwrap()]), None);
    }
}
