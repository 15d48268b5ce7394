//! `heaptap run`: the call, the environment it makes, and its exit status. What is traced
//! is tested in `ocaml-tests`, where there are programs to trace.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::program::{Place, Run};

/// Runs `heaptap run --keep-status` in a directory, with a library that the loader ignores:
/// it is an empty file, so that nothing is traced.
fn run_in<S: AsRef<OsStr>>(directory: &Path, arguments: &[S], environment: &[(&str, &str)]) -> Run {
    let library = Place::new();
    let output = Command::new(env!("CARGO_BIN_EXE_heaptap"))
        .args(["run", "--keep-status"])
        .args(arguments)
        .env("HEAPTAP_LIBRARY", library.file("libheaptap.so", b""))
        .envs(environment.iter().copied())
        .current_dir(directory)
        .output()
        .unwrap();
    Run {
        status: output.status.code().expect("ended by a signal"),
        out: output.stdout,
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn run<S: AsRef<OsStr>>(arguments: &[S]) -> Run {
    run_in(Path::new("/"), arguments, &[])
}

#[test]
fn a_relative_name_means_the_directory_where_run_was_started() {
    let place = Place::new();
    let directory = place.path("100%p");
    fs::create_dir(&directory).unwrap();
    let directory = directory.canonicalize().unwrap();
    let shown = directory.to_str().unwrap().replace('%', "%%");
    for (name, expected) in [
        ("t/%e-%p.ctf", format!("{shown}/t/%e-%p.ctf")),
        ("/t/%p.ctf", "/t/%p.ctf".into()),
        ("../%%.ctf", format!("{shown}/../%%.ctf")),
    ] {
        let call = ["-o", name, "--", "sh", "-c", "cd /; echo \"$HEAPTAP\""];
        assert_eq!(run_in(&directory, &call, &[]).text(0), format!("{expected}\n"));
    }
}

#[test]
fn the_report_is_found_from_any_directory() {
    let place = Place::new();
    fs::create_dir(place.path("tmp")).unwrap();
    let call = ["--", "sh", "-c", "cd /; test -w \"$HEAPTAP_JOURNAL\""];
    run_in(&place.path(""), &call, &[("TMPDIR", "tmp")]).text(0);
}

#[test]
fn a_program_that_only_listens_is_not_asked_for_a_trace() {
    let place = Place::new();
    let directory = place.path("").canonicalize().unwrap();
    let echo = "echo \"$HEAPTAP,$MEMTRACE,$HEAPTAP_JOURNAL,$HEAPTAP_LISTEN,$HEAPTAP_LISTEN_FORKS\"";
    let outer =
        [("HEAPTAP", "outer.ctf"), ("MEMTRACE", "outer.ctf"), ("HEAPTAP_LISTEN_FORKS", "0")];
    for (options, expected) in [(&["--listen"][..], "1,"), (&["--listen", "--listen-forks"], "1,1")]
    {
        let call: Vec<_> = options.iter().copied().chain(["--", "sh", "-c", echo]).collect();
        assert_eq!(run_in(&directory, &call, &outer).text(0), format!(",,,{expected}\n"));
    }
    let both = ["--listen", "--no-listen", "--", "true"];
    run_in(&directory, &both, &[]).says(2, &["cannot be used with"]);
}

#[test]
fn the_program_listens_and_takes_snapshots_as_asked() {
    let place = Place::new();
    let directory = place.path("").canonicalize().unwrap();
    let echo = "echo \"$HEAPTAP_LISTEN,$HEAPTAP_SNAPSHOT,$HEAPTAP_SNAPSHOT_FILE\"";
    let environment = |options: &[&str], given: &[(&str, &str)]| {
        let call: Vec<_> = options.iter().copied().chain(["--", "sh", "-c", echo]).collect();
        run_in(&directory, &call, given).text(0)
    };
    assert_eq!(environment(&[], &[("HEAPTAP_LISTEN", "0")]), "1,,\n");
    assert_eq!(environment(&["--no-listen"], &[("HEAPTAP_LISTEN", "1")]), ",,\n");
    let options =
        ["--snapshot", "exit", "--snapshot=major:3,signal:USR2", "--snapshot-file=%n.heap"];
    let expected = format!("1,exit,major:3,signal:USR2,{}/%n.heap\n", directory.display());
    assert_eq!(environment(&options, &[("HEAPTAP_SNAPSHOT", "often")]), expected);
    assert_eq!(environment(&[], &[("HEAPTAP_SNAPSHOT", "exit")]), "1,exit,\n");
    run(&["--snapshot", "often", "--", "true"]).says(2, &["--snapshot", "often", "major:N"]);
    run(&["--snapshot-file", "-", "--", "true"]).says(2, &["--snapshot-file -"]);
    let follow = ["--follow", "--snapshot-file", "%n.heap", "--", "true"];
    run(&follow).says(2, &["--follow", "%p"]);
}

#[test]
fn a_percent_sign_is_not_a_pid() {
    run(&["--follow", "-o", "a-%%p.ctf", "--", "true"]).says(2, &["%p"]);
    run(&["--follow", "-o", "a-%p.ctf", "--", "true"]).text(0);
}

#[test]
fn a_name_that_is_no_file_is_refused() {
    run(&["-o", "", "--", "echo", "ran"]).says(2, &["-o ''", "trace.ctf"]);
    let run = run(&["-o", "-", "--", "echo", "ran"]);
    run.says(2, &["-o -", "standard output", "./-"]);
    assert_eq!(run.out, b"", "the program ran");
}

#[test]
fn a_variable_that_the_program_would_inherit_is_checked() {
    for (name, value) in [
        ("HEAPTAP_UNWINDER", "zzz"),
        ("HEAPTAP_FRAMES", "many"),
        ("HEAPTAP_SEED", "-1"),
        ("HEAPTAP_SNAPSHOT", "often"),
    ] {
        let run = run_in(Path::new("/"), &["--", "echo", "ran"], &[(name, value)]);
        run.says(2, &[name, value, "correct or unset it"]);
        assert_eq!(run.out, b"", "the program ran");
    }
    // What the call itself sets does not matter.
    let wrong = [("HEAPTAP_FRAMES", "many"), ("HEAPTAP_RATE", "often"), ("HEAPTAP_FOLLOW", "yes")];
    run_in(Path::new("/"), &["--frames", "3", "--", "true"], &wrong).text(0);
}

#[test]
fn a_program_that_is_not_traced_is_no_success() {
    let library = Place::new();
    let run = |options: &[&str], program: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_heaptap"))
            .arg("run")
            .args(options)
            .args(["--", "sh", "-c", program])
            .env("HEAPTAP_LIBRARY", library.file("libheaptap.so", b""))
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, said) = run(&[], "exit 0");
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("sh was not traced: it is not a program that heaptap knows"), "{said}");
    assert_eq!(run(&["--quiet"], "exit 0").0, Some(2));
    assert_eq!(run(&[], "exit 5").0, Some(5));
    assert_eq!(run(&["--keep-status"], "exit 0").0, Some(0));
}

#[test]
fn names_of_programs_go_to_the_program() {
    let place = Place::new();
    let directory = place.path("").canonicalize().unwrap();
    let echo = "echo \"$HEAPTAP_ONLY,$HEAPTAP_TARGET\"";
    let call = ["--only", "main.exe", "--only", "b/other", "--", "sh", "-c", echo];
    let expected = format!("main.exe,{}/b/other,\n", directory.display());
    assert_eq!(run_in(&directory, &call, &[("HEAPTAP_TARGET", "7")]).text(0), expected);
    run(&["--only", "a,b", "--", "true"]).says(2, &["--only", "a,b"]);
    let wrong = [("HEAPTAP_ONLY", "a,,b")];
    run_in(Path::new("/"), &["--", "true"], &wrong).says(2, &["HEAPTAP_ONLY", "correct or unset"]);
}

#[test]
fn a_program_that_cannot_be_started_gives_the_status_of_shells() {
    run(&["--", "/no/such/program"]).says(127, &["/no/such/program", "no such file"]);
    run(&["--", "no-such-program"]).says(127, &["no-such-program", "PATH"]);
    run(&["--", ""]).says(127, &["cannot be started"]);
    run(&["--", "/"]).says(126, &["it is a directory"]);
    let place = Place::new();
    let plain = place.file("plain", b"text");
    run(&[OsStr::new("--"), plain.as_os_str()]).says(126, &["plain", "ermission denied"]);
    let script = place.file("script", b"#!/no/such/interpreter\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    run(&[OsStr::new("--"), script.as_os_str()]).says(126, &["script", "interpreter"]);
    // The same numbers from the program itself are passed on.
    run(&["--", "sh", "-c", "exit 126"]).says(126, &[]);
}
