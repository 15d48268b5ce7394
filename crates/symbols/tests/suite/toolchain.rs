//! Compilers, binutils, and the oracle: `addr2line` of binutils.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heaptap_symbols::names::readable;
use heaptap_symbols::{Budget, Module, SourceLocation};

/// An empty directory for a test.
pub(crate) fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Whether these tools are installed. Prints which one is not.
pub(crate) fn have(tools: &[&str]) -> bool {
    tools.iter().all(|tool| {
        let argument = if *tool == "ocamlopt" { "-version" } else { "--version" };
        let found = Command::new(tool).arg(argument).output().is_ok_and(|o| o.status.success());
        if !found {
            let all = std::env::var_os("HEAPTAP_TEST_ALL").is_some_and(|value| value == "1");
            assert!(!all, "{tool} is missing and HEAPTAP_TEST_ALL=1");
            eprintln!("SKIPPED: {tool} is missing");
        }
        found
    })
}

/// Runs a command in a directory and returns its output.
pub(crate) fn run(directory: &Path, command: &str) -> String {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap())
        .args(words)
        .current_dir(directory)
        .output()
        .unwrap_or_else(|error| panic!("{command}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Writes a source file and compiles it: `SOURCE` in `command` stands for its name.
pub(crate) fn compile(directory: &Path, source: &str, text: &str, command: &str) {
    std::fs::write(directory.join(source), text).unwrap();
    run(directory, &command.replace("SOURCE", source));
}

/// A location: function, file, line.
pub(crate) type Frame = (String, String, u32);

/// The locations of the instruction at each address by this crate, outermost first.
pub(crate) fn ours(program: &Path, addresses: &[u64]) -> Vec<Vec<Frame>> {
    let mut module = Module::of_file(program);
    let mut budget = Budget::new(256 << 20);
    addresses
        .iter()
        .map(|address| {
            let mut frames = Vec::new();
            module.locate(address + 1, &mut budget, &mut |location| frames.push(frame(location)));
            frames
        })
        .collect()
}

/// A location as text.
pub(crate) fn frame(location: SourceLocation<'_>) -> Frame {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(location.function), text(location.file), location.line)
}

/// The locations of the instruction at each address by binutils' `addr2line`, outermost
/// first, with names demangled by this crate. Unknown lines are 0, unknown files `??`.
pub(crate) fn binutils(program: &Path, addresses: &[u64]) -> Vec<Vec<Frame>> {
    let mut child = Command::new("addr2line")
        .args(["-a", "-f", "-i", "-e"])
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let text: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let feeder = std::thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut answers: Vec<Vec<Frame>> = Vec::new();
    let mut lines = output.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            answers.push(Vec::new());
            continue;
        }
        let function = String::from_utf8_lossy(&readable(line.as_bytes())).into_owned();
        let location = lines.next().unwrap().split(" (discriminator").next().unwrap();
        let (file, number) = location.rsplit_once(':').unwrap();
        let frame = (function, file.to_string(), number.parse().unwrap_or(0));
        answers.last_mut().unwrap().push(frame);
    }
    for frames in &mut answers {
        frames.reverse();
    }
    assert_eq!(answers.len(), addresses.len());
    answers
}

/// The functions of a program, from `nm`: name to address and size. Those
/// without a size are left out.
pub(crate) fn functions(program: &Path, options: &str) -> BTreeMap<String, (u64, u64)> {
    let directory = program.parent().unwrap();
    let listed = run(directory, &format!("nm -S --defined-only {options} {}", program.display()));
    let parse = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [address, size, kind, name] = fields[..] else { return None };
        let number = |text| u64::from_str_radix(text, 16).ok();
        matches!(kind, "t" | "T" | "W" | "w" | "i")
            .then(|| Some((name.to_string(), (number(address)?, number(size)?))))
            .flatten()
    };
    listed.lines().filter_map(parse).collect()
}

/// Every byte of every function whose name `wanted` accepts.
pub(crate) fn addresses_in(program: &Path, wanted: impl Fn(&str) -> bool) -> Vec<u64> {
    let functions = functions(program, "");
    let wanted = functions.iter().filter(|(name, _)| wanted(name));
    let mut addresses: Vec<u64> =
        wanted.flat_map(|(_, &(start, size))| start..start + size).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}
