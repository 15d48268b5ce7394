//! Planted leaks are found, steady programs are left in peace.

use heaptap_report::{Leaks, Outlook, SiteFrame};

use crate::blocks::{leaks_of_table, whole};
use crate::made::{Dice, LIBRARY, Writer, gathered_with_blocks, stack};

/// A minute, in microseconds.
const MINUTE: u64 = 60_000_000;
const SITES: u64 = 24;
/// Sampled blocks in the minute: 500 a second.
const BLOCKS: u64 = 30_000;
const LEAKY: u64 = 17;

/// What a site does with its blocks.
#[derive(Clone, Copy, Debug)]
enum Habit {
    /// Most die young.
    Scratch,
    /// They live for a while.
    Session,
    /// They live until their phase ends.
    Phase,
    /// Filled in the first seconds, then kept.
    Cache,
    /// A new one replaces the oldest: lives as long as it takes.
    Ring,
}

const HABITS: [Habit; 5] =
    [Habit::Scratch, Habit::Session, Habit::Phase, Habit::Cache, Habit::Ring];

/// A program of a minute; a site may keep all of the little it allocates.
fn program(seed: u64, leak: Option<f64>) -> Vec<u8> {
    paced_program(seed, leak, STEADY)
}

/// How the minute passes.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// The program has nothing to do for so long, in the middle of the minute. Its collector
    /// goes on.
    pause: u64,
    /// From then on it runs so many times slower: its machine is busy.
    slower: f64,
    /// When it is stopped, as if by SIGSTOP, and for how long. The minute is that much longer.
    stop: (u64, u64),
    /// Whether its sites allocate through a library.
    through_library: bool,
}

const STEADY: Pace = Pace { pause: 0, slower: 1.0, stop: (0, 0), through_library: false };

fn paced_program(seed: u64, leak: Option<f64>, pace: Pace) -> Vec<u8> {
    println!("program of seed {seed}, {pace:?}");
    let Pace { pause, slower, stop, through_library } = pace;
    let clock = |time: u64| if time < stop.0 { time } else { time + stop.1 };
    let mut dice = Dice::new(seed);
    let habits: Vec<Habit> =
        (0..SITES).map(|_| HABITS[dice.below(HABITS.len() as u64) as usize]).collect();
    // The collector comes round every half second to every five.
    let round = 500_000 + dice.below(4_500_000);
    let phase = 3_000_000 + dice.below(9_000_000);
    let mut writer = Writer::new(1e-4);
    let mut due: std::collections::BTreeMap<u64, Vec<(u64, bool)>> = Default::default();
    let mut now = 0;
    for block in 0..BLOCKS {
        let first = (MINUTE - pause) as f64 / BLOCKS as f64 * 2.0 / (1.0 + slower);
        now += dice.wait(if block < BLOCKS / 2 { first } else { first * slower });
        if block == BLOCKS / 2 {
            now += pause;
        }
        while let Some(entry) = due.first_entry()
            && *entry.key() <= now
        {
            let at = clock(*entry.key());
            for (id, dies) in entry.remove() {
                if dies { writer.collect(at, id) } else { writer.promote(at, id) }
            }
        }
        let leaks = leak.is_some_and(|share| dice.unit() < share);
        let site = if leaks { LEAKY } else { dice.below(SITES) };
        let mut frames = stack(site);
        frames.extend(through_library.then_some(LIBRARY));
        let id = writer.alloc(clock(now), 1 + dice.below(30), 1, &frames);
        if leaks {
            due.entry(now + 5000).or_default().push((id, false));
            continue;
        }
        let unreachable = match habits[site as usize] {
            Habit::Scratch => Some(now + dice.wait(3000.0)),
            Habit::Session => Some(now + dice.wait(2_000_000.0)),
            Habit::Phase => Some((now / phase + 1) * phase),
            Habit::Cache if now < MINUTE / 12 => None,
            Habit::Cache => Some(now + 100),
            Habit::Ring => Some(now + 1_500_000),
        };
        let minor = (now / 10_000 + 1) * 10_000;
        match unreachable {
            Some(at) if at < minor => due.entry(minor).or_default().push((id, true)),
            _ => {
                due.entry(minor).or_default().push((id, false));
                if let Some(at) = unreachable {
                    // What is found dead is swept at the end of that round.
                    let swept = (at / round + 2) * round;
                    due.entry(swept).or_default().push((id, true));
                }
            }
        }
    }
    writer.finish()
}

/// The leaks of a trace. Its table of blocks finds the same.
fn leaks(trace: &[u8]) -> Leaks {
    let (aggregate, blocks, table) = gathered_with_blocks(trace, whole());
    let leaks = aggregate.leaks(&table, SiteFrame::Innermost, 3);
    let of_table = leaks_of_table(&aggregate, &blocks, &table, SiteFrame::Innermost, &whole());
    assert_eq!(of_table, format!("{leaks:?}"));
    leaks
}

#[test]
fn a_leak_through_a_library_is_named_after_own_code() {
    for seed in 0..5 {
        let direct = leaks(&program(seed, Some(0.02)));
        let pace = Pace { through_library: true, ..STEADY };
        let trace = paced_program(seed, Some(0.02), pace);
        let (aggregate, blocks, table) = gathered_with_blocks(&trace, whole());
        let own = aggregate.leaks(&table, SiteFrame::Own, 3);
        let of_table = leaks_of_table(&aggregate, &blocks, &table, SiteFrame::Own, &whole());
        assert_eq!(of_table, format!("{own:?}"), "seed {seed}");
        assert!(!own.found.is_empty(), "seed {seed}");
        for leak in &own.found {
            let [call] = &leak.library_calls[..] else { panic!("{:?}", leak.library_calls) };
            assert_eq!(call.site.name, "Stdlib.Bytes.create");
        }
        // But for the library, all is as if there were none.
        let without = |mut leaks: Leaks| {
            leaks.found.iter_mut().for_each(|leak| leak.library_calls.clear());
            format!("{leaks:?}")
        };
        assert_eq!(without(own), without(direct), "seed {seed}");
    }
}

#[test]
fn a_leak_of_one_percent_is_found_in_its_first_minute_and_its_line_named() {
    for seed in 0..30 {
        let found = leaks(&program(seed, Some(0.01)));
        assert_eq!(found.outlook, Outlook::Clear, "seed {seed}");
        let lines: Vec<(&str, u32)> =
            found.found.iter().map(|leak| (leak.site.file.as_str(), leak.site.line)).collect();
        assert_eq!(lines, [("bin/site.ml", LEAKY as u32)], "seed {seed}");
        let leak = &found.found[0];
        assert!(!leak.slowing, "seed {seed}: {leak:?}");
        assert_eq!(leak.callers[0].site.name, format!("Caller.f{}", LEAKY / 4));
        // 1 % of 500 blocks a second, of a sample each: 5 × 8 bytes / 1e-4.
        let (truth, growth) = (5.0 * 8.0 / 1e-4, leak.growth);
        assert!((growth.bytes - truth).abs() < 5.0 * growth.error, "seed {seed}: {growth:?}");
    }
}

#[test]
fn steady_programs_have_no_leaks() {
    for seed in 100..140 {
        let found = leaks(&program(seed, None));
        assert_eq!(found.outlook, Outlook::Clear, "seed {seed}");
        assert!(found.found.is_empty(), "seed {seed}: {:?}", found.found);
    }
}

#[test]
fn a_program_that_pauses_is_judged_by_what_it_allocates() {
    let pauses = || Pace { pause: 12_000_000, ..STEADY };
    for seed in 200..210 {
        let found = leaks(&paced_program(seed, Some(0.01), pauses()));
        let lines: Vec<u32> = found.found.iter().map(|leak| leak.site.line).collect();
        assert_eq!((found.outlook, lines), (Outlook::Clear, vec![LEAKY as u32]), "seed {seed}");
        let found = leaks(&paced_program(seed + 100, None, pauses()));
        assert!(found.found.is_empty(), "seed {seed}: {:?}", found.found);
    }
}

#[test]
fn a_busy_machine_does_not_make_a_leak_look_like_a_cache() {
    let slowing: Vec<bool> = (200..210)
        .flat_map(|seed| {
            let pace = Pace { slower: 3.0, ..STEADY };
            leaks(&paced_program(seed, Some(0.01), pace)).found
        })
        .filter(|leak| leak.site.line == LEAKY as u32)
        .map(|leak| leak.slowing)
        .collect();
    // By time alone one of them is slowing.
    assert!(slowing.len() >= 8 && !slowing.contains(&true), "{slowing:?}");
}

/// By time, its collections are too far apart.
#[test]
fn a_program_that_is_stopped_is_judged_by_what_it_allocates() {
    for (number, at) in [3, 15, 30, 45, 57].into_iter().enumerate() {
        for seconds in [30, 60] {
            let stop = (at * 1_000_000, seconds * 1_000_000);
            let (seed, pace) = (500 + number as u64 * 1000 + seconds, Pace { stop, ..STEADY });
            let found = leaks(&paced_program(seed, Some(0.01), pace));
            let lines: Vec<u32> = found.found.iter().map(|leak| leak.site.line).collect();
            assert_eq!((found.outlook, lines), (Outlook::Clear, vec![LEAKY as u32]), "{pace:?}");
            assert!(!found.found[0].slowing, "{pace:?}");
            let found = leaks(&paced_program(seed + 500, None, pace));
            assert_eq!(found.outlook, Outlook::Clear, "{pace:?}");
            assert!(found.found.is_empty(), "{pace:?}: {:?}", found.found);
        }
    }
    // Beside ten minutes, all that it does is in four points of the time line.
    for at in [30_000_000, 59_000_000] {
        let pace = Pace { stop: (at, 600_000_000), ..STEADY };
        let found = leaks(&paced_program(7, Some(0.01), pace));
        assert_eq!((found.outlook, found.found.len()), (Outlook::RarelyCollected, 0), "{pace:?}");
    }
}

/// A program that fills its tables in ten seconds, while its collector works, and then serves
/// for so many, with this share of its allocations, which are never collected. It may leak while
/// it serves.
fn server(seconds: u64, share: f64, leaks_then: bool) -> Vec<u8> {
    const ALL: u64 = 10_000;
    let served = (ALL as f64 * share) as u64;
    let mut writer = Writer::new(1e-4);
    let mut garbage = Vec::new();
    for turn in 0..ALL - served {
        let at = turn * 10_000_000 / (ALL - served);
        let id = writer.alloc(at, 5, 1, &stack(turn % 4));
        writer.promote(at, id);
        if turn % 4 > 0 {
            garbage.push(id);
        }
        if turn % 300 == 299 {
            garbage.drain(..).for_each(|id| writer.collect(at, id));
        }
    }
    for turn in 0..served {
        let at = 10_000_000 + turn * seconds * 1_000_000 / served;
        let kept = leaks_then && turn % 4 == 0;
        let id = writer.alloc(at, 5, 1, &stack(if kept { LEAKY } else { 5 }));
        writer.promote(at, id);
    }
    writer.finish()
}

/// Nearly all of its allocations are in a fraction of the time: by that clock nearly all of it
/// was seen. But what happened in the rest of the time nobody knows.
#[test]
fn a_program_that_allocates_slowly_is_neither_accused_nor_acquitted() {
    for (seconds, share) in [(12, 0.01), (20, 0.15), (60, 0.1), (60, 0.02), (600, 0.1)] {
        for leaks_then in [false, true] {
            let found = leaks(&server(seconds, share, leaks_then));
            let lines: Vec<u32> = found.found.iter().map(|leak| leak.site.line).collect();
            let what = format!("{seconds} s of service, {share} of all, with a leak: {leaks_then}");
            assert_eq!((found.outlook, lines), (Outlook::RarelyCollected, vec![]), "{what}");
        }
    }
}

/// It serves for a third or a half of the time, in which nothing is collected.
#[test]
fn what_was_built_up_in_the_beginning_is_no_leak() {
    for (seconds, share) in [(5, 0.1), (10, 0.06)] {
        let found = leaks(&server(seconds, share, false));
        assert_eq!(found.outlook, Outlook::Clear, "{seconds} s of service");
        assert!(found.found.is_empty(), "{seconds} s of service: {:?}", found.found);
    }
}

#[test]
fn where_nothing_old_is_collected_nothing_is_claimed() {
    let mut writer = Writer::new(1e-4);
    for turn in 0..5000_u64 {
        let id = writer.alloc(turn * 10_000, 3, 1, &stack(turn % 5));
        writer.promote(turn * 10_000, id);
    }
    let found = leaks(&writer.finish());
    assert_eq!(found.outlook, Outlook::RarelyCollected);
    // All of it is alive, so each site grew by what it allocated since the middle.
    let suspects = &found.suspects;
    assert_eq!((suspects.sites.len(), suspects.others), (5, 0));
    assert!((15_000_000..35_000_000).contains(&suspects.since), "{}", suspects.since);
    let later = (0..5000_u64).filter(|turn| turn * 10_000 >= suspects.since).count() as f64 / 5.0;
    for suspect in &suspects.sites {
        let samples = suspect.growth.bytes * 1e-4 / 8.0;
        assert!((samples - later).abs() <= 1.0, "{samples} of {later}");
        let error = suspect.growth.error * 1e-4 / 8.0;
        assert!((error - later.sqrt()).abs() < 0.5, "{error}");
        assert!(suspect.live.bytes > suspect.growth.bytes);
    }
    assert_eq!(leaks(&Writer::new(1e-4).finish()).outlook, Outlook::TooFew);
}

/// What is garbage in the end grew by no more than chance.
#[test]
fn what_stays_as_it_is_is_no_suspect() {
    let mut writer = Writer::new(1e-4);
    let mut alive = std::collections::VecDeque::new();
    for turn in 0..5000_u64 {
        alive.push_back(writer.alloc(turn * 10_000, 3, 1, &stack(turn % 5)));
        if alive.len() > 500 {
            // They die young, so that nothing old is collected.
            writer.collect(turn * 10_000, alive.pop_front().unwrap());
        }
    }
    let found = leaks(&writer.finish());
    assert_eq!(found.outlook, Outlook::RarelyCollected);
    assert!(found.suspects.sites.is_empty(), "{:?}", found.suspects);
}
