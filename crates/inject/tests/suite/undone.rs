//! A program that does not allocate: everything is taken back, to the word.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use heaptap_inject::Refusal;

use crate::target::{Program, Running};
use crate::text::{differences, symbol};
use crate::toolchain::{compile, directory, have};

/// Words of the runtime's state, and the one that asks for a minor collection (4.13, 4.14).
const STATE_WORDS: usize = 54;
const REQUESTED_MINOR_GC: usize = 35;

pub(crate) fn sleeper(test: &str) -> Option<Running> {
    have(&["ocamlopt", "gcc", "nm", "readelf"]).then(|| {
        let directory = directory(test);
        let program = compile(&directory, "sleeper");
        let command = [program.to_str().expect("a plain path")];
        let mut running = Program::new("sleeper", &directory, &command).start_with(Stdio::piped());
        running.await_output("ready");
        running
    })
}

fn state(pid: i32) -> Vec<u64> {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).expect("a program");
    let program = program.to_str().expect("a plain path");
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("maps");
    let base = maps.split('-').next().and_then(|base| u64::from_str_radix(base, 16).ok());
    let memory = File::open(format!("/proc/{pid}/mem")).expect("memory");
    let read =
        |address: u64, bytes: &mut [u8]| memory.read_exact_at(bytes, address).expect("a word");
    let mut pointer = [0; 8];
    read(base.expect("a base") + symbol(program, "Caml_state").expect("a runtime"), &mut pointer);
    let mut words = vec![0; STATE_WORDS * 8];
    read(u64::from_le_bytes(pointer), &mut words);
    words.chunks(8).map(|word| u64::from_le_bytes(word.try_into().expect("a word"))).collect()
}

#[test]
fn a_program_that_sleeps_is_as_it_was() {
    let Some(mut running) = sleeper("asleep") else { return };
    let before = state(running.pid());
    for _ in 0..3 {
        let refusal = running.inject(Duration::from_millis(50)).expect_err("it sleeps");
        assert!(matches!(refusal, Refusal::Asleep { .. }), "{refusal}");
        assert!(refusal.to_string().contains("longer timeout"), "{refusal}");
        assert_eq!(differences(running.pid()), [""; 0]);
        let mut after = state(running.pid());
        // One collection is done early.
        after[REQUESTED_MINOR_GC] = before[REQUESTED_MINOR_GC];
        assert_eq!(after, before);
    }
    running.say("morning");
    let calls = running.calls();
    assert_eq!(calls, [[0; 3]; 0]);
    assert!(running.written().starts_with("ready"));
    running.await_output("morning 5888890");
}

#[test]
fn a_program_that_wakes_up_in_time_calls_the_entry() {
    let Some(mut running) = sleeper("awake") else { return };
    let (pid, log) = (running.pid(), running.log().to_owned());
    let injection = std::thread::spawn(move || crate::children::inject(pid, &log, 20_000));
    std::thread::sleep(Duration::from_millis(150));
    running.say("morning");
    let injected = injection.join().expect("no panic");
    assert!(injected.status.success(), "{injected:?}");
    running.await_output("morning 5888890");
    assert_eq!(running.calls().len(), 1);
}

#[test]
fn a_stopped_program_stays_stopped() {
    let Some(mut running) = sleeper("stopped") else { return };
    let signal = |name: &str| {
        let pid = running.pid().to_string();
        let status = std::process::Command::new("kill").args(["-s", name, &pid]).status();
        assert!(status.expect("kill").success());
    };
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", running.pid())).expect("stat");
        stat.rsplit(") ").next().and_then(|rest| rest.chars().next())
    };
    let await_stop = || {
        let deadline = Instant::now() + Duration::from_secs(20);
        while state() != Some('T') {
            assert!(Instant::now() < deadline, "{:?}", state());
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    signal("STOP");
    await_stop();
    let refusal = running.inject(Duration::from_millis(50)).expect_err("it is stopped");
    assert!(matches!(refusal, Refusal::Asleep { .. }), "{refusal}");
    // It wakes for a moment, in the kernel, to stop again.
    await_stop();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(state(), Some('T'));
    signal("CONT");
    running.say("morning");
    running.await_output("morning 5888890");
}
