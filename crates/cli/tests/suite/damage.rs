//! Random damage, repaired.

use std::fs;

use heaptap_trace::Format;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::program::{Place, assert_sound, heaptap};
use crate::traces::{packets, workload};

/// Overwrites, removes or inserts bytes somewhere behind the first packet.
fn damage(trace: &[u8], random: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let mut below = |limit: usize| (random.next_u64() % limit as u64) as usize;
    let mut damaged = trace.to_vec();
    let (_, first) = packets(trace)[0];
    for _ in 0..1 + below(3) {
        let at = first + below(damaged.len() - first);
        let count = (1 + below(200)).min(damaged.len() - at);
        match below(4) {
            0 => damaged[at] ^= 1 << below(8),
            1 => damaged[at..at + count].fill_with(|| below(256) as u8),
            2 => _ = damaged.drain(at..at + count),
            _ => {
                let noise: Vec<u8> = (0..count).map(|_| below(256) as u8).collect();
                damaged.splice(at..at, noise);
            }
        }
    }
    damaged
}

const REWRITING: [&str; 5] =
    ["recode", "recode --format 2", "recode --format 3", "thin --rate 0.005 --seed 1", "anonymise"];

/// Damages a trace in many ways, and repairs it.
pub(crate) fn damage_and_repair(trace: &[u8], seeds: std::ops::Range<u64>) {
    let place = Place::new();
    let output = place.path("repaired.ctf");
    for seed in seeds {
        println!("damage of seed {seed}");
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let input = place.file("damaged.ctf", &damage(trace, &mut random));
        for call in ["info", "dump", "dump --merge", "report --callers 2", "hot", "leaks"] {
            let run = heaptap(call, &[&input]);
            assert!(run.status <= 1, "{call} ended with {}: {}", run.status, run.err);
        }
        for call in REWRITING {
            let run = heaptap(call, &[&input, &output]);
            assert!(run.status <= 1, "{call} ended with {}: {}", run.status, run.err);
            assert_sound(&output);
            fs::remove_file(&output).unwrap();
        }
    }
}

#[test]
fn whatever_is_left_of_a_damaged_trace_can_be_made_a_sound_one() {
    damage_and_repair(&workload(Format::V2, 1, 6000, 20), 0..15);
    damage_and_repair(&workload(Format::V3, 1, 6000, 21), 15..30);
}
