//! Injections at random moments, over and over: the program does what it does without them, each
//! injection is one call, and nothing is left.

use std::time::Duration;

use heaptap_inject::{Injected, Refusal};

use crate::programs;
use crate::target::Program;
use crate::text::differences;
use crate::toolchain::{Random, number};

/// What happened to one program.
#[derive(Default)]
struct Tally {
    runs: u64,
    injected: u64,
    called: u64,
    refused: u64,
    unrestored: u64,
    longest_stop: Duration,
}

#[test]
fn programs_do_what_they_do_without_injections() {
    let mut random = Random::new("moments");
    let programs = programs::all("moments");
    let share = number("HEAPTAP_INJECTIONS", 45).div_ceil(programs.len().max(1) as u64);
    for program in &programs {
        let tally = inject_often(program, share, &mut random);
        println!(
            "{}: {} runs, {} injections, {} ended before, {} with code left, stopped {:?} at most",
            program.name,
            tally.runs,
            tally.injected,
            tally.refused,
            tally.unrestored,
            tally.longest_stop,
        );
        assert!(tally.injected >= share, "{}", program.name);
        assert!(tally.called <= tally.injected + tally.refused, "{}", program.name);
        assert!(tally.unrestored * 10 <= tally.injected, "{}", program.name);
    }
}

fn inject_often(program: &Program, share: u64, random: &mut Random) -> Tally {
    let untouched = program.untouched();
    let mut tally = Tally::default();
    while tally.injected < share {
        let mut running = program.start();
        let mut calls = Vec::new();
        let mut is_restored = true;
        while running.is_running() {
            std::thread::sleep(Duration::from_micros(random.below(40_000)));
            match running.inject(Duration::from_secs(20)) {
                Ok(injected) => {
                    is_restored = injected.restored;
                    calls.push(injected.result);
                    tally.record(&injected);
                }
                // It is starting, or ends, or gets no processor.
                Err(
                    Refusal::Ended
                    | Refusal::Zombie
                    | Refusal::NoProcess
                    | Refusal::NotStarted
                    | Refusal::DoesNotStop
                    | Refusal::NotOcaml
                    | Refusal::NotGlibc,
                ) => tally.refused += 1,
                Err(refusal) => panic!("{}: {refusal}", program.name),
            }
            let is_due = tally.injected % 4 == 0 || tally.injected >= share;
            if is_due && is_restored {
                let differences = differences(running.pid());
                assert!(differences.is_empty(), "{}: {differences:?}", program.name);
            }
            if tally.injected >= share {
                break;
            }
        }
        let recorded = running.calls();
        let pid = i64::from(running.pid());
        let outcome = running.end();
        assert_eq!(outcome, untouched, "{}", program.name);
        assert!(
            recorded.iter().all(|&[process, ..]| process == pid),
            "{}: {recorded:?}",
            program.name
        );
        // Each call is recorded once. One may have been made although the program ended before we
        // saw it.
        let counts: Vec<i32> = recorded.iter().map(|&[.., count]| count as i32).collect();
        assert!(counts.iter().copied().eq(1..=counts.len() as i32), "{}: {counts:?}", program.name);
        assert!(calls.is_sorted_by(|a, b| a < b), "{}: {calls:?}", program.name);
        assert!(calls.last().copied().unwrap_or(0) <= counts.len() as i32, "{}", program.name);
        tally.called += counts.len() as u64;
        tally.runs += 1;
    }
    tally
}

impl Tally {
    fn record(&mut self, injected: &Injected) {
        self.injected += 1;
        self.unrestored += u64::from(!injected.restored);
        self.longest_stop = self.longest_stop.max(injected.stopped);
    }
}
