//! Two attachers at once, and attachers as processes of their own.

use std::process::{Command, Output};

use crate::target::Program;
use crate::toolchain::{attacher, compile, directory, have, library};
use crate::undone::sleeper;

/// Injects the library of the tests from another process.
pub(crate) fn command(pid: i32, argument: &str, milliseconds: u64) -> Command {
    let mut command = Command::new(attacher());
    command.arg(pid.to_string()).arg(library()).arg("test_entry").arg(argument);
    command.arg(milliseconds.to_string());
    command
}

pub(crate) fn inject(pid: i32, argument: &str, milliseconds: u64) -> Output {
    command(pid, argument, milliseconds).output().expect("the attacher")
}

#[test]
fn of_two_attachers_one_is_refused() {
    let Some(running) = sleeper("two") else { return };
    let (pid, log) = (running.pid(), running.log());
    let [first, second] = std::thread::scope(|scope| {
        let attachers = [(); 2].map(|()| scope.spawn(|| inject(pid, log, 5000)));
        attachers.map(|attacher| attacher.join().expect("no panic"))
    });
    let said = [first, second].map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
    let is_refused = |said: &String| {
        said.contains("another attach is under way") || said.contains("traced by another one")
    };
    assert_eq!(said.iter().filter(|said| is_refused(said)).count(), 1, "{said:?}");
    assert_eq!(said.iter().filter(|said| said.contains("did not allocate")).count(), 1, "{said:?}");
}

#[test]
fn many_attachers_at_once_harm_nothing() {
    if !have(&["ocamlopt", "gcc"]) {
        return;
    }
    let directory = directory("many");
    let program = compile(&directory, "trees");
    let command = [program.to_str().expect("a plain path"), "15000"];
    let program = Program::new("many", &directory, &command);
    let untouched = program.untouched();
    let running = program.start();
    let (pid, log) = (running.pid(), running.log());
    let succeeded: usize = std::thread::scope(|scope| {
        let attacher = || {
            (0..5)
                .filter(|_| {
                    let output = inject(pid, log, 5000);
                    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
                    let reasons = ["another", "there is no such process", "ended", "still loading"];
                    let is_clear = reasons.iter().any(|reason| errors.contains(reason));
                    assert!(output.status.success() || is_clear, "{errors}");
                    output.status.success()
                })
                .count()
        };
        let attachers: Vec<_> = (0..4).map(|_| scope.spawn(attacher)).collect();
        attachers.into_iter().map(|attacher| attacher.join().expect("no panic")).sum()
    });
    let calls = running.calls();
    println!("many: {succeeded} of 20 succeeded");
    assert!(succeeded > 0);
    assert_eq!(calls.len(), succeeded, "each success is one call: {calls:?}");
    assert_eq!(running.end(), untouched);
}
