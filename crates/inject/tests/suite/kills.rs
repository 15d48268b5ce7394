//! The attacher is killed: at random moments, and at each of its writes and requests. The program
//! is not harmed, and the next attach works.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::children::command;
use crate::programs;
use crate::target::{Program, Running};
use crate::text::differences;
use crate::toolchain::{Random, attacher, have, library, number};
use crate::undone::sleeper;

#[test]
fn an_attacher_that_is_killed_harms_nothing() {
    let mut random = Random::new("kills");
    let programs = programs::all("kills");
    let share = number("HEAPTAP_KILLS", 45).div_ceil(programs.len().max(1) as u64);
    let mut attaches = 0;
    for program in &programs {
        let untouched = program.untouched();
        let (mut kills, mut runs, mut worked) = (0, 0, 0);
        while kills < share {
            let mut running = program.start();
            while running.is_running() && kills < share {
                kill_at_random(running.pid(), running.log(), &mut random);
                kills += 1;
                if random.below(4) == 0 {
                    worked += u64::from(works_again(program, &running));
                }
            }
            let pid = i64::from(running.pid());
            let calls = running.calls();
            assert_eq!(running.end(), untouched, "{}", program.name);
            assert!(
                calls.iter().all(|&[process, ..]| process == pid),
                "{}: {calls:?}",
                program.name
            );
            runs += 1;
        }
        println!("{}: {kills} kills in {runs} runs, {worked} attaches in between", program.name);
        attaches += worked;
    }
    assert!(programs.is_empty() || attaches > 0, "no attach worked");
}

fn kill_at_random(pid: i32, log: &str, random: &mut Random) {
    let mut attacher = command(pid, log, 5000);
    let attacher = attacher.stdout(Stdio::null()).stderr(Stdio::null());
    let mut attacher = attacher.spawn().expect("the attacher");
    std::thread::sleep(Duration::from_micros(random.below(30_000)));
    attacher.kill().expect("our child");
    attacher.wait().expect("our child");
}

/// What an attach may say about a program that is starting, has ended, or gets no processor.
const PASSING: [&str; 6] =
    ["ended", "no such process", "not started", "no OCaml runtime", "not glibc", "does not stop"];

/// Whether an attach after a kill works and leaves nothing. False if it was not possible.
fn works_again(program: &Program, running: &Running) -> bool {
    match running.inject(Duration::from_secs(20)) {
        Ok(injected) => {
            let differences = differences(running.pid());
            let is_clean = differences.is_empty() || !injected.restored;
            assert!(is_clean, "{}: {differences:?}", program.name);
            true
        }
        Err(refusal) => {
            let text = refusal.to_string();
            let is_passing = PASSING.iter().any(|words| text.contains(words));
            assert!(is_passing, "{}: {text}", program.name);
            false
        }
    }
}

/// Each system call that changes something, killed before it is made.
#[test]
fn an_attacher_may_be_killed_at_each_step() {
    if !have(&["strace"]) {
        return;
    }
    let programs = programs::all("steps");
    for program in programs.iter().take(2) {
        let untouched = program.untouched();
        let mut running = program.start();
        let mut steps = 0;
        for call in ["pwrite64", "ptrace", "pread64"] {
            let span = if call == "pread64" { 7 } else { 1 };
            for number in (1..).step_by(span) {
                if !running.is_running() {
                    assert_eq!(running.end(), untouched, "{}", program.name);
                    running = program.start();
                    std::thread::sleep(Duration::from_millis(30));
                }
                if !kill_before(call, number, running.pid(), running.log()) {
                    break;
                }
                steps += 1;
                if number % 2 == 0 {
                    works_again(program, &running);
                }
            }
        }
        println!("{}: killed at {steps} steps", program.name);
        assert!(steps > 20, "{steps}");
        assert_eq!(running.end(), untouched, "{}", program.name);
    }
}

/// Whether the attacher has made so many calls.
fn kill_before(call: &str, number: usize, pid: i32, log: &str) -> bool {
    let status = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e"])
        .arg(format!("inject={call}:signal=SIGKILL:when={number}"))
        .arg(attacher())
        .arg(pid.to_string())
        .arg(library())
        .args(["test_entry", log, "5000"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    !status.expect("strace").success()
}

/// What a killed attacher has armed does nothing once its deadline is over.
#[test]
fn what_a_killed_attacher_left_is_not_done_late() {
    let Some(mut running) = sleeper("late") else { return };
    arm_and_kill(&running, 3000);
    assert_ne!(differences(running.pid()), [""; 0], "it was armed");
    // The stub's deadline is two seconds later, in whole seconds.
    std::thread::sleep(Duration::from_millis(6500));
    running.say("morning");
    running.await_output("morning 5888890");
    assert_eq!(running.calls(), [[0; 3]; 0]);
}

/// The next attach takes over what a killed one has armed.
#[test]
fn what_a_killed_attacher_left_is_cleared_away() {
    let Some(running) = sleeper("left") else { return };
    arm_and_kill(&running, 60_000);
    assert_ne!(differences(running.pid()), [""; 0], "it was armed");
    let refusal = running.inject(Duration::from_millis(50)).expect_err("it sleeps");
    assert!(refusal.to_string().contains("did not allocate"), "{refusal}");
    assert_eq!(differences(running.pid()), [""; 0]);
}

/// Kills an attacher that waits for a program that sleeps.
fn arm_and_kill(running: &Running, milliseconds: u64) {
    let mut attacher = command(running.pid(), running.log(), milliseconds);
    let mut attacher = attacher.stderr(Stdio::null()).spawn().expect("the attacher");
    while differences(running.pid()).is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    attacher.kill().expect("our child");
    attacher.wait().expect("our child");
}
