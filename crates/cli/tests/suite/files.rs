//! Files that are missing, wrong, or in the way.

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use heaptap_trace::Format;

use crate::program::{Place, command, dump, heaptap, heaptap_reading};
use crate::traces::workload;

const READING: [&str; 13] = [
    "report",
    "leaks",
    "hot",
    "info",
    "dump",
    "dump --merge",
    "check",
    "check --strict",
    "export --to folded",
    "export --to pprof",
    "export --to firefox",
    "export --to dhat",
    "export --to speedscope",
];
const REWRITING: [&str; 4] =
    ["recode", "recode --format 2", "thin --rate 0.001 --seed 1", "anonymise"];

/// Runs every verb on a file; all must end alike and leave nothing behind.
fn every_verb_says(place: &Place, input: &Path, status: i32, words: &[&str]) {
    let before = place.names();
    for call in READING {
        heaptap(call, &[input]).says(status, words);
    }
    for call in REWRITING {
        heaptap(call, &[input, &place.path("out.ctf")]).says(status, words);
    }
    // Both sides of a comparison.
    let sound = place.file("sound.ctf", &workload(Format::V2, 1, 100, 59));
    heaptap("diff", &[input, &sound]).says(status, words);
    heaptap("diff", &[&sound, input]).says(status, words);
    fs::remove_file(sound).unwrap();
    assert_eq!(place.names(), before, "something is left behind");
}

#[test]
fn a_file_that_is_no_trace_is_named_with_what_to_do() {
    let place = Place::new();
    let missing = place.path("missing.ctf");
    every_verb_says(&place, &missing, 2, &["missing.ctf: no such file", "check the path"]);
    let directory = place.path("directory");
    fs::create_dir(&directory).unwrap();
    every_verb_says(&place, &directory, 2, &["directory: is a directory", "; name "]);
    for call in READING.iter().chain(&REWRITING) {
        let remedy = "without a trace in it; name the directory with the trace files";
        let output = place.path("out.ctf");
        let files: &[&Path] = match READING.contains(call) {
            true => &[&directory],
            false => &[&directory, &output],
        };
        heaptap(call, files).says(2, &[remedy]);
    }
    let empty = place.file("empty.ctf", b"");
    every_verb_says(&place, &empty, 2, &["empty.ctf", "the file is empty", "did it run"]);
    let text = place.file("text.txt", &b"This is not a trace at all. ".repeat(10));
    every_verb_says(&place, &text, 2, &["text.txt: not a memtrace file", "0x73696854"]);
    let packed = place.file("trace.gz", &[&[0x1f, 0x8b, 8, 0][..], &[0; 100]].concat());
    every_verb_says(&place, &packed, 2, &["trace.gz", "compressed", "zcat"]);
    let trace = workload(Format::V2, 1, 100, 60);
    let start = place.file("start.ctf", &trace[..80]);
    every_verb_says(&place, &start, 2, &["start.ctf: byte 0, packet 0", "copy the file again"]);
    let mut future = trace.clone();
    future[28] = 4;
    let future = place.file("future.ctf", &future);
    every_verb_says(&place, &future, 2, &["future.ctf", "version 4", "a newer heaptap is needed"]);
}

#[test]
fn file_names_are_escaped_in_messages() {
    let place = Place::new();
    let run = heaptap("info", &[&place.path("\x1b[31mred\n")]);
    run.says(2, &["\\x1b[31mred\\x0a: no such file"]);
    assert!(!run.err.contains('\x1b'));
}

#[test]
fn every_verb_reads_standard_input_as_pipe_and_as_file() {
    let place = Place::new();
    let trace = workload(Format::V3, 3, 3000, 61);
    let path = place.file("trace.ctf", &trace);
    for call in READING {
        let expected = heaptap(call, &[&path]);
        assert_eq!(expected.status, 0, "{}", expected.err);
        // The name is the only difference.
        let text = String::from_utf8_lossy(&expected.out);
        let expected = text.replace(path.to_str().unwrap(), "standard input");
        let piped = heaptap_reading(&format!("{call} -"), &[], &trace);
        assert!(String::from_utf8_lossy(&piped.out) == expected, "{call} of a pipe");
        let file = File::open(&path).unwrap();
        let output = command(&format!("{call} -"), &[]).stdin(file).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout) == expected, "{call} of a file");
    }
}

#[test]
fn new_files_are_for_their_owner_only_and_replace_old_ones() {
    let place = Place::new();
    let input = place.file("trace.ctf", &workload(Format::V2, 1, 1000, 62));
    let output = place.file("out.ctf", b"old");
    fs::set_permissions(&output, fs::Permissions::from_mode(0o644)).unwrap();
    for call in REWRITING {
        assert_eq!(heaptap(call, &[&input, &output]).text(0), "");
        let mode = fs::metadata(&output).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{call}");
        assert!(fs::metadata(&output).unwrap().len() > 1000);
    }
    assert_eq!(place.names(), ["out.ctf", "trace.ctf"]);
}

#[test]
fn a_failed_run_leaves_the_old_file_and_no_half_file() {
    let place = Place::new();
    let input = place.file("trace.ctf", b"no trace");
    let output = place.file("out.ctf", b"old");
    for call in REWRITING {
        heaptap(call, &[&input, &output]).says(2, &["trace.ctf"]);
        assert_eq!(fs::read(&output).unwrap(), b"old");
    }
    assert_eq!(place.names(), ["out.ctf", "trace.ctf"]);
}

#[test]
fn an_output_that_cannot_be_written_is_named() {
    let place = Place::new();
    let input = place.file("trace.ctf", &workload(Format::V2, 1, 5000, 63));
    let directory = place.path("directory");
    fs::create_dir(&directory).unwrap();
    for call in REWRITING {
        let nowhere = place.path("nowhere/out.ctf");
        heaptap(call, &[&input, &nowhere]).says(2, &["nowhere/out.ctf", "no such directory"]);
        heaptap(call, &[&input, &directory]).says(2, &["directory: is a directory"]);
        heaptap(call, &[&input, Path::new("/proc/out.ctf")]).says(2, &["/proc/out.ctf", "cannot"]);
        heaptap(call, &[&input, Path::new("/dev/full")]).says(2, &["/dev/full", "make room"]);
    }
    let out_in = |call: &str, out: &Path| format!("{call} -o {}", out.display());
    for call in READING.iter().filter(|call| call.starts_with("export")) {
        let nowhere = out_in(call, &place.path("nowhere/out"));
        heaptap(&nowhere, &[&input]).says(2, &["nowhere/out", "no such directory", "make it"]);
        heaptap(&out_in(call, &directory), &[&input]).says(2, &["directory: is a directory"]);
        heaptap(&out_in(call, Path::new("/proc/out")), &[&input]).says(2, &["/proc/out", "cannot"]);
        heaptap(&out_in(call, Path::new("/dev/full")), &[&input])
            .says(2, &["/dev/full", "make room"]);
    }
    let printing = ["report --json", "report --csv", "leaks --json", "hot --json", "info --json"];
    for call in READING.iter().chain(&printing) {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let run = command(call, &[&input]).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{call}: {said}");
        assert!(said.contains("standard output") && said.contains("make room"), "{call}: {said}");
    }
    assert_eq!(place.names(), ["directory", "trace.ctf"]);
}

#[test]
fn devices_are_written_to_and_links_followed() {
    let place = Place::new();
    let input = place.file("trace.ctf", &workload(Format::V2, 1, 1000, 64));
    assert_eq!(heaptap("recode", &[&input, Path::new("/dev/null")]).text(0), "");
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    let target = place.file("target.ctf", b"old");
    let link = place.path("link.ctf");
    symlink(&target, &link).unwrap();
    assert_eq!(heaptap("recode", &[&input, &link]).text(0), "");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(dump(&target) == dump(&input));
}

#[test]
fn a_trace_is_not_written_to_a_terminal() {
    let place = Place::new();
    let input = place.file("trace.ctf", &workload(Format::V2, 1, 1000, 65));
    // `script` of util-linux gives the program a terminal.
    let call = format!("{} recode {} -", env!("CARGO_BIN_EXE_heaptap"), input.display());
    let run =
        Command::new("script").args(["-qec", &call, "/dev/null"]).stdin(Stdio::null()).output();
    let Ok(output) = run else {
        eprintln!("\n*** SKIPPED: there is no `script` to give a terminal ***\n");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("standard output is a terminal"), "{said}");
}

#[test]
fn nobody_listening_on_standard_error_is_no_trouble() {
    let place = Place::new();
    let trace = workload(Format::V2, 1, 5000, 66);
    let path = place.file("cut.ctf", &trace[..trace.len() - 10]);
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = command("info", &[&path]).stderr(full).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}
