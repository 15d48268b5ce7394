//! The attacher is killed: at random moments, and at each of its writes and requests. The program
//! is not harmed, and the next attach works.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::children::command;
use crate::programs;
use crate::target::Program;
use crate::text::differences;
use crate::toolchain::{Random, attacher, have, library, number};

#[test]
fn an_attacher_that_is_killed_harms_nothing() {
    let mut random = Random::new("kills");
    let programs = programs::all("kills");
    let share = number("HEAPTAP_KILLS", 45).div_ceil(programs.len().max(1) as u64);
    for program in &programs {
        let untouched = program.untouched();
        let (mut kills, mut runs, mut worked) = (0, 0, 0);
        while kills < share {
            let mut running = program.start();
            while running.is_running() && kills < share {
                kill_at_random(running.pid(), running.log(), &mut random);
                kills += 1;
                if random.below(4) == 0 {
                    worked += u64::from(works_again(program, &mut running));
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
    }
}

fn kill_at_random(pid: i32, log: &str, random: &mut Random) {
    let mut attacher = command(pid, log, 5000);
    let attacher = attacher.stdout(Stdio::null()).stderr(Stdio::null());
    let mut attacher = attacher.spawn().expect("the attacher");
    std::thread::sleep(Duration::from_micros(random.below(30_000)));
    attacher.kill().expect("our child");
    attacher.wait().expect("our child");
}

/// Whether an attach after a kill works and leaves nothing. False if the program has ended.
fn works_again(program: &Program, running: &mut crate::target::Running) -> bool {
    match running.inject(Duration::from_secs(20)) {
        Ok(_) => {
            let differences = differences(running.pid());
            assert!(differences.is_empty(), "{}: {differences:?}", program.name);
            true
        }
        Err(refusal) => {
            let text = refusal.to_string();
            let deadline = std::time::Instant::now() + Duration::from_secs(20);
            let has_ended = text.contains("ended") || text.contains("no such process");
            while has_ended && running.is_running() {
                // As when a program ends while it is attached to.
                assert!(std::time::Instant::now() < deadline, "{}: {text}", program.name);
            }
            let is_starting = text.contains("not started") || text.contains("no OCaml runtime");
            assert!(has_ended || is_starting || text.contains("glibc"), "{}: {text}", program.name);
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
                    works_again(program, &mut running);
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
