//! Running the program, in a directory of its own.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// What a run left behind.
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Run {
    /// Standard output, of a run that ended with this status.
    #[track_caller]
    pub(crate) fn text(&self, status: i32) -> String {
        assert_eq!(self.status, status, "standard error: {}", self.err);
        String::from_utf8(self.out.clone()).unwrap()
    }

    /// Fails unless the run ended with this status and said all of `words`.
    #[track_caller]
    pub(crate) fn says(&self, status: i32, words: &[&str]) {
        assert_eq!(self.status, status, "standard error: {}", self.err);
        for word in words {
            assert!(self.err.contains(word), "`{word}` is not in: {}", self.err);
        }
    }
}

/// Runs `heaptap` with the words of `call`, and then these files.
pub(crate) fn heaptap(call: &str, files: &[&Path]) -> Run {
    heaptap_reading(call, files, b"")
}

/// The same with bytes on standard input, through a pipe.
pub(crate) fn heaptap_reading(call: &str, files: &[&Path], input: &[u8]) -> Run {
    let mut child = command(call, files)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // On a thread of its own: the program may write before it has read all.
    let feeding = std::thread::spawn(move || _ = stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    feeding.join().unwrap();
    Run {
        status: output.status.code().expect("ended by a signal"),
        out: output.stdout,
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn command(call: &str, files: &[&Path]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heaptap"));
    command.args(call.split_whitespace()).args(files);
    command
}

/// A directory that goes away with the test.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Place(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// The names of all files in it.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// The lines of a dump of a sound trace.
#[track_caller]
pub(crate) fn dump(path: &Path) -> Vec<String> {
    heaptap("dump", &[path]).text(0).lines().map(String::from).collect()
}

/// Fails unless the dumps of two sound traces are the same, without keeping
/// them: two megabytes of trace are half a gigabyte of text.
#[track_caller]
pub(crate) fn assert_same_dumps(one: &Path, other: &Path) {
    let mut children =
        [one, other].map(|path| command("dump", &[path]).stdout(Stdio::piped()).spawn().unwrap());
    let [mut one_lines, mut other_lines] =
        children.each_mut().map(|child| BufReader::new(child.stdout.take().unwrap()));
    let (mut one_line, mut other_line) = (Vec::new(), Vec::new());
    loop {
        one_line.clear();
        other_line.clear();
        one_lines.read_until(b'\n', &mut one_line).unwrap();
        other_lines.read_until(b'\n', &mut other_line).unwrap();
        assert!(one_line == other_line, "{}", String::from_utf8_lossy(&other_line));
        if one_line.is_empty() {
            break;
        }
    }
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
}

/// What `info --json` says of a sound trace.
#[track_caller]
pub(crate) fn info(path: &Path) -> serde_json::Value {
    serde_json::from_str(&heaptap("info --json", &[path]).text(0)).unwrap()
}

#[track_caller]
pub(crate) fn assert_sound(path: &Path) {
    let run = heaptap("check --strict", &[path]);
    let said = String::from_utf8_lossy(&run.out).into_owned();
    assert_eq!(run.status, 0, "{}: {said} {}", path.display(), run.err);
}
