use super::*;
use proptest::prelude::*;

/// A machine whose time the test advances.
#[derive(Clone, Debug)]
struct Machine {
    /// The counter.
    ticks: u64,
    /// The monotonic clock.
    ns: u64,
    wall_us: u64,
    /// Ticks per 1000 ns.
    rate: u64,
    preemption: Option<Preemption>,
    readings: u64,
}

/// Delays every `every`-th reading of the counter by `ns`.
#[derive(Clone, Copy, Debug)]
struct Preemption {
    every: u64,
    ns: u64,
}

impl Machine {
    fn new(rate: u64) -> Self {
        Self {
            ticks: 1 << 40,
            ns: 5_000_000_000,
            wall_us: 1_700_000_000_000_000,
            rate,
            preemption: None,
            readings: 0,
        }
    }

    fn pass(&mut self, ns: u64) {
        self.ns += ns;
        self.ticks += ns * self.rate / 1000;
    }
}

impl ClockSource for Machine {
    fn ticks(&mut self) -> u64 {
        self.readings += 1;
        if let Some(preemption) = self.preemption
            && self.readings.is_multiple_of(preemption.every)
        {
            self.pass(preemption.ns);
        }
        self.ticks
    }

    fn monotonic_ns(&mut self) -> u64 {
        self.ns
    }

    fn wall_us(&mut self) -> u64 {
        self.wall_us
    }

    fn sleep_ns(&mut self, ns: u64) {
        self.pass(ns);
    }
}

const START: u64 = 1_700_000_000_000_000;
const SECOND: u64 = 1_000_000_000;

fn started(rate: u64) -> Clock<Machine> {
    Clock::with_source(Machine::new(rate))
}

/// The time of a stamp taken now.
fn now(clock: &mut Clock<Machine>) -> u64 {
    let ticks = clock.source.ticks;
    clock.micros(ticks)
}

#[test]
fn a_stamp_is_the_wall_clock_at_the_start_plus_the_time_since() {
    for rate in [1, 24, 1000, 2_893, 5_000] {
        let mut clock = started(rate);
        clock.source.pass(SECOND);
        let stamp = clock.source.ticks;
        clock.source.pass(SECOND);
        clock.observe();
        assert!(clock.micros(stamp).abs_diff(START + 1_000_000) <= 1, "rate {rate}");
        assert!(now(&mut clock).abs_diff(START + 2_000_000) <= 1, "rate {rate}");
        clock.source.pass(SECOND / 10);
        assert!(now(&mut clock).abs_diff(START + 2_100_000) <= 1, "rate {rate}");
        let length = clock.nanoseconds(rate * 1000);
        assert!(length.abs_diff(1_000_000) <= 1_000, "rate {rate}: {length}");
    }
}

#[test]
fn a_conversion_right_after_the_start_waits_for_a_slope() {
    let mut clock = started(2_000);
    clock.observe();
    assert!(now(&mut clock).abs_diff(START + 1_000) <= 1);
}

#[test]
fn the_wall_clock_is_read_once() {
    let mut clock = started(3_000);
    clock.source.pass(SECOND);
    clock.observe();
    let before = now(&mut clock);
    clock.source.wall_us -= 3_600_000_000;
    clock.source.pass(SECOND);
    clock.observe();
    assert!(now(&mut clock).abs_diff(before + 1_000_000) <= 1);
}

#[test]
fn a_drifting_counter_is_followed() {
    let mut clock = started(2_000);
    for round in 0..600 {
        // The rate alternates by 500 ppm.
        clock.source.rate = if round % 2 == 0 { 2_000 } else { 2_001 };
        clock.source.pass(SECOND / 10);
        clock.observe();
    }
    let passed = (clock.source.ns - 5 * SECOND) / 1000;
    assert!(now(&mut clock).abs_diff(START + passed) <= 1);
}

#[test]
fn a_preempted_reading_is_not_used() {
    let mut machine = Machine::new(2_000);
    machine.preemption = Some(Preemption { every: 4, ns: 40_000_000 });
    let mut clock = Clock::with_source(machine);
    for _ in 0..20 {
        clock.source.pass(SECOND / 10);
        clock.observe();
    }
    let length = clock.nanoseconds(2_000_000);
    assert!(length.abs_diff(1_000_000) <= 10, "{length}");
}

#[test]
fn suspending_the_machine_adds_no_time() {
    let mut clock = started(2_000);
    for _ in 0..10 {
        clock.source.pass(SECOND / 10);
        clock.observe();
    }
    let before = now(&mut clock);
    // The counter advances by an hour, the monotonic clock does not.
    clock.source.ticks += 3600 * 2 * SECOND;
    clock.source.pass(SECOND / 100);
    assert!(now(&mut clock).abs_diff(before + 10_000) <= 1, "noticed by the conversion itself");
    for _ in 0..10 {
        clock.source.pass(SECOND / 10);
        clock.observe();
    }
    assert!(now(&mut clock).abs_diff(before + 1_010_000) <= 1);
    assert!(clock.nanoseconds(2_000_000).abs_diff(1_000_000) <= 10, "the slope is the old one");
}

#[test]
fn a_counter_that_is_set_back_does_not_set_the_time_back() {
    let mut clock = started(2_000);
    for _ in 0..10 {
        clock.source.pass(SECOND / 10);
        clock.observe();
    }
    let stale = clock.source.ticks;
    let before = now(&mut clock);
    clock.source.ticks = 1000;
    clock.source.pass(SECOND / 10);
    clock.observe();
    assert!(now(&mut clock).abs_diff(before + 100_000) <= 1);
    assert!(clock.micros(stale).abs_diff(before + 100_000) <= 1, "an old stamp, converted late");
    clock.source.pass(SECOND / 10);
    assert!(now(&mut clock).abs_diff(before + 200_000) <= 1);
}

#[test]
fn the_systems_clock_is_near_the_wall_clock() {
    let ticks = TickSource::detect();
    let mut clock = Clock::start(ticks);
    clock.observe();
    let stamp = ticks.now();
    let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let apart = u128::from(clock.micros(stamp)).abs_diff(wall.as_micros());
    // Ten minutes: the wall clock may be set while this test runs.
    assert!(apart < 600_000_000, "{apart} µs apart");
}

#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Observe,
    Stamp,
    /// Converts the stamp that is this many before the newest.
    Convert(usize),
    Rate(u64),
    Suspend(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..SECOND / 5).prop_map(Step::Pass),
        4 => Just(Step::Observe),
        8 => Just(Step::Stamp),
        8 => (0_usize..20).prop_map(Step::Convert),
        1 => (1_990_u64..2_010).prop_map(Step::Rate),
        1 => (0..1000 * SECOND).prop_map(Step::Suspend),
    ]
}

proptest! {
    /// Whatever happens and whenever stamps are converted: a later stamp never has an
    /// earlier time, and a stamp always has the same time, cached or not.
    #[test]
    fn time_does_not_run_backwards(steps in proptest::collection::vec(step(), 0..100)) {
        let mut clock = started(2_000);
        clock.observe();
        let mut stamps = vec![clock.source.ticks];
        let mut converted = std::collections::BTreeMap::new();
        for step in steps {
            match step {
                Step::Pass(ns) => clock.source.pass(ns),
                Step::Observe => clock.observe(),
                Step::Stamp => stamps.push(clock.source.ticks),
                Step::Rate(rate) => clock.source.rate = rate,
                Step::Suspend(ticks) => clock.source.ticks += ticks,
                Step::Convert(back) => {
                    let stamp = stamps[stamps.len().saturating_sub(back + 1)];
                    if let Some(ns) = clock.cached.ns(stamp) {
                        prop_assert_eq!(ns, clock.find_ns(stamp));
                    }
                    let time = clock.micros(stamp);
                    if let Some(before) = converted.insert(stamp, time) {
                        prop_assert_eq!(before, time);
                    }
                }
            }
        }
        prop_assert!(converted.values().is_sorted(), "{converted:?}");
    }
}
