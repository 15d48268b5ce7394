//! Verdicts by the collector's cycles, of programs whose truth is known.
//!
//! Each program has a ring, whose blocks live for two seconds, and the site that is judged. Its
//! collector works as that of OCaml 4 does: a cycle takes the longer the more is reachable, so that
//! there are few of them in a heap that grows.

use heaptap_report::{Leaks, Options, Shape, SiteFrame, Truth, Truths, Verdict};

use crate::blocks::whole;
use crate::made::{Dice, Writer, stack};
use crate::rates::gathered_mixed;

const SECOND: f64 = 1e6;
/// For ever.
const KEPT: f64 = 1e9;
const SITE: u64 = 17;
/// The most blocks of a site in a second.
const MOST: f64 = 60.0;
const SEEDS: std::ops::Range<u64> = 0..8;

/// A site: how many of a hundred blocks it allocates at a time, and how long one that is allocated then
/// is reachable; in seconds.
struct Site {
    busy: fn(f64) -> f64,
    life: fn(&mut Dice, f64) -> f64,
}

/// A block: when it is allocated, and when it is not reachable any more.
type Life = (f64, f64);

fn lives(dice: &mut Dice, site: &Site, end: f64) -> Vec<Life> {
    let (mut now, mut lives) = (0.0, Vec::new());
    loop {
        now += dice.wait(SECOND / MOST) as f64 / SECOND;
        if now >= end {
            return lives;
        }
        if dice.unit() < (site.busy)(now) {
            let life = (site.life)(dice, now);
            lives.push((now, now + life));
        }
    }
}

/// How a run is traced.
#[derive(Clone, Copy)]
struct Trace {
    end: f64,
    /// The rate at which what is born at this part of the run is sampled, as a part of the usual one.
    rate: fn(f64) -> f64,
    /// Whether the collector runs at all.
    collects: bool,
    /// The seconds of a cycle, for what the site allocates in a second.
    slowness: f64,
    /// The parts of the run at which heap snapshots are taken.
    snapshots: &'static [f64],
}

impl Trace {
    /// A run of so many seconds at one rate.
    fn of(end: f64) -> Trace {
        Trace { end, rate: |_| 1.0, collects: true, slowness: 0.5, snapshots: &[] }
    }
}

/// When each cycle begins and when its marking is done.
fn cycles(lives: &[Life], end: f64, slowness: f64) -> Vec<(f64, f64)> {
    let (mut now, mut cycles) = (0.3, Vec::new());
    while now < end {
        let reachable = lives.iter().filter(|life| life.0 <= now && life.1 > now).count() as f64;
        let period = (slowness * reachable / MOST).max(0.1);
        cycles.push((now, now + period / 2.0));
        now += period;
    }
    cycles
}

/// What is said of a run of the program.
fn leaks(seed: u64, site: &Site, trace: Trace) -> Leaks {
    println!("seed {seed}");
    let Trace { end, rate, collects, slowness, snapshots } = trace;
    let mut dice = Dice::new(seed);
    let ring = Site { busy: |_| 1.0, life: |_, _| 2.0 };
    let of = [(3, lives(&mut dice, &ring, end)), (SITE, lives(&mut dice, site, end))];
    let all: Vec<Life> = of.iter().flat_map(|(_, lives)| lives.clone()).collect();
    let cycles = if collects { cycles(&all, end, slowness) } else { Vec::new() };
    // A death is found by the first cycle that begins after it. Births come first.
    let mut events: Vec<(u64, bool, u64, u64)> = Vec::new();
    let us = |time: f64| (time * SECOND) as u64;
    let (mut block, mut deaths) = (0, Vec::new());
    let is_sampled = |dice: &mut Dice, life: &Life| dice.unit() < rate(life.0 / end);
    for (number, lives) in &of {
        for &(birth, death) in lives.iter().filter(|life| is_sampled(&mut dice, life)) {
            deaths.push((us(birth), us(death)));
            events.push((us(birth), false, block, *number));
            let by = cycles.iter().find(|cycle| cycle.0 > death);
            events.extend(by.map(|cycle| (us(cycle.1), true, block, *number)));
            block += 1;
        }
    }
    events.sort_unstable();
    let mut writer = Writer::new(1e-3);
    let (mut ids, mut rates) = (vec![None; block as usize], Vec::new());
    for (time, is_death, block, number) in events.into_iter().filter(|event| event.0 < us(end)) {
        match (is_death, ids[block as usize]) {
            (false, _) => {
                let id = writer.alloc(time, 30, 1, &stack(number));
                writer.promote(time, id);
                ids[block as usize] = Some(id);
                rates.push(1e-3 * rate(time as f64 / SECOND / end));
            }
            (true, Some(id)) => writer.collect(time, id),
            (true, None) => {}
        }
    }
    let known = cycles.iter().filter(|cycle| cycle.1 < end);
    let truths = Truths::new(known.map(|cycle| Truth { at: us(cycle.0), known: us(cycle.1) + 1 }));
    let truths = truths.with_snapshots(snapshots.iter().map(|part| {
        let at = us(part * end);
        let dead = ids.iter().zip(&deaths).filter(|(_, life)| life.0 < at && life.1 < at);
        (at, dead.filter_map(|(id, _)| *id).collect())
    }));
    let options = Options { truths, ..whole() };
    let (aggregate, _, table) = gathered_mixed(&(writer.finish(), rates), options);
    let leaks = aggregate.leaks(&table, SiteFrame::Innermost, 2);
    // What was reachable, of all sites, is what it was.
    let by_cycles = leaks.by_cycles.as_ref().expect("moments");
    let is_of_one_rate = (0..10).all(|part| rate(f64::from(part) / 10.0) == 1.0);
    for (truth, size) in by_cycles.reachable.iter().filter(|_| is_of_one_rate) {
        let at = truth.at as f64 / SECOND;
        let reachable = all.iter().filter(|life| life.0 < at && life.1 > at).count() as f64;
        let samples = size.bytes * 1e-3 / 8.0;
        assert!((samples - reachable).abs() <= 2.0, "{samples} of {reachable} at {at}");
    }
    leaks
}

/// The verdicts on the site in each run; the ring is never accused.
fn verdicts(site: &Site, trace: Trace) -> Vec<(Verdict, Option<Shape>)> {
    SEEDS
        .filter_map(|seed| {
            let found = leaks(seed, site, trace);
            let judged = found.found.iter().map(|leak| (&leak.site, &leak.judged));
            let suspects = found.suspects.sites.iter();
            let judged = judged.chain(suspects.map(|suspect| (&suspect.site, &suspect.judged)));
            let mut own = None;
            for (site, judged) in judged {
                let verdict = judged.as_ref().map(|judged| judged.judgement)?;
                if site.line == SITE as u32 {
                    own = Some((verdict.verdict, verdict.shape));
                } else {
                    assert_ne!(verdict.verdict, Verdict::KeepsGrowing, "{site:?}");
                }
            }
            own
        })
        .collect()
}

/// In how many of the runs the verdict is one of these.
fn runs_with(site: &Site, end: f64, wanted: &[Verdict]) -> usize {
    traced_with(site, Trace::of(end), wanted)
}

/// The same of runs that are traced in another way.
fn traced_with(site: &Site, trace: Trace, wanted: &[Verdict]) -> usize {
    let found = verdicts(site, trace);
    println!("{found:?}");
    found.iter().filter(|(verdict, _)| wanted.contains(verdict)).count()
}

const GROWING: [Verdict; 2] = [Verdict::KeepsGrowing, Verdict::WasGrowing];

#[test]
fn a_heap_that_doubles_grows() {
    let cache = Site { busy: |_| 1.0, life: |_, _| KEPT };
    for end in [20.0, 60.0] {
        assert_eq!(runs_with(&cache, end, &GROWING), SEEDS.count(), "{end} s");
    }
}

#[test]
fn a_leak_that_begins_late_grows() {
    let late = Site { busy: |now| if now < 10.0 { 0.0 } else { 1.0 }, life: |_, _| KEPT };
    assert_eq!(runs_with(&late, 60.0, &GROWING), SEEDS.count());
}

#[test]
fn a_queue_with_a_backlog_grows() {
    // Half of what comes is served: what is allocated at t goes at 2t.
    let queue = Site { busy: |_| 1.0, life: |_, now| now };
    assert_eq!(runs_with(&queue, 60.0, &GROWING), SEEDS.count());
}

#[test]
fn a_leak_that_shares_its_site_with_blocks_that_are_freed_grows() {
    let shared = Site {
        busy: |_| 1.0,
        life: |dice, _| if dice.unit() < 0.3 { KEPT } else { dice.wait(SECOND) as f64 / SECOND },
    };
    assert_eq!(runs_with(&shared, 60.0, &GROWING), SEEDS.count());
}

/// Programs that do not leak.
fn steady() -> [(&'static str, Site); 6] {
    [
        (
            "a table that is full",
            Site { busy: |now| if now < 15.0 { 1.0 } else { 0.0 }, life: |_, _| KEPT },
        ),
        (
            "a cache with eviction",
            Site { busy: |_| 1.0, life: |dice, _| dice.wait(4.0 * SECOND) as f64 / SECOND },
        ),
        ("a cache of the last", Site { busy: |_| 1.0, life: |_, _| 10.0 }),
        ("a sawtooth", Site { busy: |_| 1.0, life: |_, now| 6.0 - now % 6.0 }),
        ("sessions", Site { busy: |_| 1.0, life: |dice, _| 2.0 + 13.0 * dice.unit() }),
        (
            "batches",
            Site {
                busy: |now| if now % 5.0 < 1.0 { 1.0 } else { 0.0 },
                life: |_, now| 4.0 - now % 5.0,
            },
        ),
    ]
}

#[test]
fn what_fills_and_what_turns_over_is_no_leak() {
    for (name, site) in steady() {
        assert_eq!(runs_with(&site, 60.0, &GROWING), 0, "{name}");
    }
}

/// The last cycle of a slow collector may begin when much of what is there has just become old, or when
/// nothing has.
#[test]
fn what_is_dropped_by_its_age_is_no_leak_whenever_the_last_cycle_begins() {
    let dropped = [
        ("a window", Site { busy: |_| 1.0, life: |_, _| 12.0 }),
        ("two generations", Site { busy: |_| 1.0, life: |_, now| 20.0 - now % 10.0 }),
    ];
    for (name, site) in dropped {
        for end in (45..75).step_by(3) {
            let trace = Trace { slowness: 0.8, ..Trace::of(f64::from(end)) };
            let found = verdicts(&site, trace);
            let is_accused = found.iter().any(|(verdict, _)| GROWING.contains(verdict));
            assert!(!is_accused, "{name}, {end} s: {found:?}");
        }
    }
}

#[test]
fn a_change_of_the_rate_is_no_growth_and_no_end_of_it() {
    let leak = Site { busy: |_| 1.0, life: |_, _| KEPT };
    let rates: [fn(f64) -> f64; 3] = [
        |part| if part < 0.5 { 1.0 } else { 0.1 },
        |part| if part < 0.5 { 0.1 } else { 1.0 },
        |part| if ((part * 10.0) as u64).is_multiple_of(2) { 1.0 } else { 0.2 },
    ];
    for (number, rate) in rates.into_iter().enumerate() {
        let trace = Trace { rate, ..Trace::of(60.0) };
        for (name, site) in steady() {
            let accused = traced_with(&site, trace, &[Verdict::KeepsGrowing]);
            assert_eq!(accused, 0, "{name} at rates {number}");
        }
        let acquitted = [Verdict::Stopped, Verdict::TurnsOver];
        assert_eq!(traced_with(&leak, trace, &acquitted), 0, "at rates {number}");
        assert!(traced_with(&leak, trace, &GROWING) >= 7, "at rates {number}");
    }
}

#[test]
fn two_snapshots_tell_where_nothing_is_collected() {
    // The second two are when what goes up and down is lowest, and when it is highest.
    let pairs: [&[f64]; 2] = [&[0.42, 0.93], &[24.1 / 60.0, 53.9 / 60.0]];
    let leak = Site { busy: |_| 1.0, life: |_, _| KEPT };
    for snapshots in pairs {
        let trace = Trace { collects: false, snapshots, ..Trace::of(60.0) };
        for (name, site) in steady() {
            assert_eq!(traced_with(&site, trace, &GROWING), 0, "{name}");
        }
        assert_eq!(traced_with(&leak, trace, &[Verdict::KeepsGrowing]), SEEDS.count());
    }
}

#[test]
fn a_snapshot_says_whether_growth_goes_on() {
    // Of a heap that doubles, the last cycle is long ago.
    let leak = Site { busy: |_| 1.0, life: |_, _| KEPT };
    let full = Site { busy: |now| if now < 15.0 { 1.0 } else { 0.0 }, life: |_, _| KEPT };
    let trace = Trace { snapshots: &[0.95], ..Trace::of(60.0) };
    assert_eq!(traced_with(&leak, trace, &[Verdict::KeepsGrowing]), SEEDS.count());
    assert_eq!(traced_with(&full, trace, &GROWING), 0);
}

#[test]
fn a_memory_of_results_grows_less_and_less() {
    let memo = Site { busy: |now| 1.0 / (1.0 + now / 4.0), life: |_, _| KEPT };
    let found = runs_with(&memo, 60.0, &[Verdict::KeepsGrowing]);
    assert_eq!(found, 0);
}
