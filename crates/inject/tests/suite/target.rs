//! A program that is injected into, and the same program left alone.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use heaptap_inject::{Injected, Injection, Refusal, inject};

use crate::toolchain::library;

/// A command line.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) directory: PathBuf,
    pub(crate) command: Vec<String>,
}

/// What a run leaves.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    status: std::process::ExitStatus,
    output: String,
    errors: String,
}

/// A running program.
pub(crate) struct Running {
    pub(crate) child: Child,
    output: PathBuf,
    log: PathBuf,
}

impl Program {
    pub(crate) fn new(name: &'static str, directory: &Path, command: &[&str]) -> Program {
        let command = command.iter().map(|&word| word.to_owned()).collect();
        Program { name, directory: directory.to_owned(), command }
    }

    /// Starts it. Its output goes to files, so that it never waits.
    pub(crate) fn start(&self) -> Running {
        self.start_with(Stdio::null())
    }

    pub(crate) fn start_with(&self, input: Stdio) -> Running {
        let output = self.directory.join(format!("{}.out", self.name));
        let log = self.directory.join(format!("{}.log", self.name));
        File::create(&log).expect("a log");
        let child = Command::new(&self.command[0])
            .args(&self.command[1..])
            .current_dir(&self.directory)
            .stdin(input)
            .stdout(File::create(&output).expect("a file"))
            .stderr(File::create(output.with_extension("err")).expect("a file"))
            .spawn()
            .unwrap_or_else(|error| panic!("{:?}: {error}", self.command));
        Running { child, output, log }
    }

    /// What it does when it is left alone.
    pub(crate) fn untouched(&self) -> Outcome {
        self.start().end()
    }
}

impl Running {
    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Whether it has not ended.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("our child").is_none()
    }

    /// Where the entry records its calls.
    pub(crate) fn log(&self) -> &str {
        self.log.to_str().expect("a plain path")
    }

    /// Injects the library of the tests.
    pub(crate) fn inject(&self, timeout: Duration) -> Result<Injected, Refusal> {
        let argument = self.log();
        let cancelled = &AtomicBool::new(false);
        let (library, entry) = (library(), "test_entry");
        inject(self.pid(), &Injection { library, entry, argument, timeout, cancelled })
    }

    /// The calls that were recorded: process, thread, count.
    pub(crate) fn calls(&self) -> Vec<[i64; 3]> {
        let text = std::fs::read_to_string(&self.log).expect("the log");
        let line = |line: &str| -> [i64; 3] {
            let numbers = line.split(' ').map(|number| number.parse().expect("a number"));
            numbers.collect::<Vec<_>>().try_into().expect("three numbers")
        };
        text.lines().map(line).collect()
    }

    /// What it has written so far.
    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.output).expect("the output")).into_owned()
    }

    /// Gives it a line, which ends its input.
    pub(crate) fn say(&mut self, line: &str) {
        let mut input = self.child.stdin.take().expect("a pipe");
        writeln!(input, "{line}").expect("it listens");
    }

    /// Waits until it has written this.
    pub(crate) fn await_output(&mut self, text: &str) {
        while !self.written().contains(text) {
            assert!(self.is_running(), "ended before it wrote {text}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn end(mut self) -> Outcome {
        let status = self.child.wait().expect("our child");
        let read = |path: &Path| {
            String::from_utf8_lossy(&std::fs::read(path).expect("the output")).into_owned()
        };
        Outcome {
            status,
            output: read(&self.output),
            errors: read(&self.output.with_extension("err")),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, unless a test failed or does not care.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
