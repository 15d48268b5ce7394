//! Compilers and other tools, what they make, and numbers from the environment.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Whether these tools are installed. Prints which one is not.
pub(crate) fn have(tools: &[&str]) -> bool {
    tools.iter().all(|tool| {
        let argument = if tool.starts_with("ocaml") { "-version" } else { "--version" };
        let run =
            Command::new(tool).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
        if run.is_err() {
            let all = std::env::var_os("HEAPTAP_TEST_ALL").is_some_and(|value| value == "1");
            assert!(!all, "{tool} is missing and HEAPTAP_TEST_ALL=1");
            eprintln!("SKIPPED: {tool} is missing");
        }
        run.is_ok()
    })
}

/// A number of the environment.
pub(crate) fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |value| value.parse().expect("a number"))
}

/// Random numbers (xorshift64*), whose seed is printed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(what: &str) -> Random {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let usual = clock.expect("after 1970").as_nanos() as u64 | 1;
        let seed = number("HEAPTAP_SEED", usual);
        println!("{what}: HEAPTAP_SEED={seed}");
        Random(seed)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % limit
    }
}

/// Where the sources of the programs are.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

/// An empty directory for a test, with the sources.
pub(crate) fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a directory");
    for source in std::fs::read_dir(sources()).expect("the sources").flatten() {
        std::fs::copy(source.path(), path.join(source.file_name())).expect("a copy");
    }
    path
}

/// Runs a command there, which succeeds.
pub(crate) fn run(directory: &Path, command: &str) {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().expect("a program"))
        .args(words)
        .current_dir(directory)
        .output()
        .unwrap_or_else(|error| panic!("{command}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {errors}");
}

/// A program in native code.
pub(crate) fn compile(directory: &Path, name: &str) -> PathBuf {
    compile_with(directory, name, "ocamlopt", "cmxa", name)
}

/// A program, by this compiler and with libraries that end so. `PATH` says which OCaml.
pub(crate) fn compile_with(
    directory: &Path,
    name: &str,
    compiler: &str,
    library: &str,
    output: &str,
) -> PathBuf {
    let libraries =
        ["unix", "threads", "dynlink"].map(|name| format!("{name}.{library}")).join(" ");
    // Each has files of its own, since tests run side by side.
    let place = directory.join(format!("{output}.dir"));
    std::fs::create_dir_all(&place).expect("a directory");
    std::fs::copy(directory.join(format!("{name}.ml")), place.join(format!("{name}.ml")))
        .expect("a copy");
    run(&place, &format!("{compiler} -thread -w -a {libraries} {name}.ml -o {output}"));
    place.join(output)
}

/// The library whose entry counts its calls.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let directory = directory("library");
        run(&directory, "gcc -O1 -shared -fPIC -o entry.so entry.c");
        directory.join("entry.so")
    })
}

/// The example that injects, as a process of its own.
pub(crate) fn attacher() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let attacher = test.ancestors().nth(2).expect("target/debug").join("examples/attach");
    assert!(attacher.is_file(), "{} is built with the tests", attacher.display());
    attacher
}
