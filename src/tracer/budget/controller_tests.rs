//! Simulated programs: what they cost, and which rates they are sampled at.

use super::*;

const TICK_NS: u64 = 100_000_000;

/// A stretch of a program's life.
#[derive(Clone, Copy)]
struct Phase {
    seconds: f64,
    /// Processors that it keeps busy.
    load: f64,
    /// Sampled blocks by second of processor time, at rate 1.
    blocks: f64,
    /// What a sample costs, in nanoseconds.
    sample_ns: f64,
}

const BUSY: Phase = Phase { seconds: 5.0, load: 1.0, blocks: 1e8, sample_ns: 1_800.0 };
const QUIET: Phase = Phase { seconds: 5.0, load: 0.02, blocks: 1e7, sample_ns: 2_500.0 };

struct Simulation {
    controller: Controller,
    rate: f64,
    now: Reading,
    /// Fractions that did not count yet.
    rest: [f64; 3],
    changes: Vec<f64>,
    random: u64,
    /// Nanoseconds for each look of the writer.
    wake_ns: f64,
}

fn begun(budget: Budget, rate: Rate, now: Reading) -> Controller {
    let mut controller = Controller::new(budget, rate);
    assert_eq!(controller.observe(now), None);
    controller
}

impl Simulation {
    fn new(share: f64) -> Simulation {
        let budget = Budget { share, highest: Rate::new(Budget::HIGHEST).unwrap() };
        let rate = budget.first_rate();
        let now = Reading::default();
        Simulation {
            controller: begun(budget, rate, now),
            rate: rate.get(),
            now,
            rest: [0.0; 3],
            changes: Vec::new(),
            random: 20_261_119,
            wake_ns: 25_000.0,
        }
    }

    /// Uniform from 0 to 1.
    fn chance(&mut self) -> f64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 11) as f64 / (1u64 << 53) as f64
    }

    fn run(&mut self, phase: Phase) {
        let mut left = phase.seconds * 1e9;
        while left > 0.0 {
            // The writer wakes when much has been sampled: event buffers are full.
            let by_second = phase.load * phase.blocks * self.rate;
            let wall = (TICK_NS as f64).min((20_000.0 / by_second * 1e9).max(5e6)).min(left);
            left -= wall;
            self.tick(wall, phase);
        }
    }

    fn tick(&mut self, wall: f64, phase: Phase) {
        let program = wall * phase.load;
        let expected = program / 1e9 * phase.blocks * self.rate;
        let noise = 1.0 + 0.3 * (self.chance() - 0.5);
        let samples = (expected * noise).max(0.0);
        // Packets are written in lumps.
        let lump = if self.chance() < 0.1 { 10.0 * self.wake_ns } else { 0.0 };
        let cost = samples * phase.sample_ns + self.wake_ns + lump;
        let [program_ns, cost_ns, count] = [program, cost, samples];
        for (rest, more) in self.rest.iter_mut().zip([program_ns, cost_ns, count]) {
            *rest += more;
        }
        let [program_ns, cost_ns, samples] = self.rest.map(|rest| rest as u64);
        // A good half of the cost is that of hooks.
        let threads_ns = cost_ns * 4 / 10;
        let (process_ns, hooks_ns) = (program_ns + cost_ns, cost_ns - threads_ns);

        let wall_ns = self.now.wall_ns + wall as u64;
        self.now = Reading { wall_ns, process_ns, threads_ns, hooks_ns, samples };
        if let Some(rate) = self.controller.observe(self.now) {
            assert_ne!(rate.get(), self.rate, "a change that is none");
            self.rate = rate.get();
            self.changes.push(self.rate);
        }
    }

    fn share_since(&self, since: Reading) -> f64 {
        let spent = Spent::between(since, self.now);
        spent.cost / spent.program
    }
}

#[test]
fn a_steady_program_has_a_steady_rate_and_uses_its_budget() {
    for share in [0.001, 0.01, 0.05] {
        let mut simulation = Simulation::new(share);
        simulation.run(Phase { seconds: 120.0, ..BUSY });
        let (settled, changes) = (simulation.now, simulation.changes.len());
        simulation.run(Phase { seconds: 600.0, ..BUSY });
        let used = simulation.share_since(settled) / share;
        assert!((0.6..1.1).contains(&used), "{share}: {used} of the budget");
        let since = simulation.changes.len() - changes;
        assert!(since <= 8, "{share}: {since} changes of the rate in 10 minutes");
    }
}

#[test]
fn quiet_and_busy_phases_together_stay_within_the_budget() {
    for share in [0.001, 0.01, 0.05] {
        for seconds in [0.5, 5.0, 60.0] {
            let mut simulation = Simulation::new(share);
            for _ in 0..(600.0 / seconds) as u32 {
                simulation.run(Phase { seconds, ..QUIET });
                simulation.run(Phase { seconds, ..BUSY });
            }
            let used = simulation.share_since(Reading::default()) / share;
            assert!((0.4..1.5).contains(&used), "{share}, {seconds} s: {used} of the budget");
        }
    }
}

/// A program that hardly allocates is sampled at the highest rate, and then allocates a thousand
/// times as much.
#[test]
fn a_burst_costs_less_than_was_saved() {
    for share in [0.001, 0.01, 0.05] {
        let mut simulation = Simulation::new(share);
        simulation.run(Phase { seconds: 300.0, blocks: 1e4, ..BUSY });
        assert!(simulation.rate > 1e-3, "{share}: {} before", simulation.rate);
        let before = simulation.now;
        simulation.run(Phase { seconds: 0.2, blocks: 3e8, ..BUSY });
        let cost = Spent::between(before, simulation.now).cost;
        // What 10 ms cost, the shortest time between two looks, at the highest rate; and the savings.
        let most = 40_000.0 * BUSY.sample_ns + share * SAVINGS;
        assert!(cost < 1.5 * most, "{share}: {} ms", cost / 1e6);
        simulation.run(Phase { seconds: 60.0, blocks: 3e8, ..BUSY });
        let used = simulation.share_since(Reading::default()) / share;
        assert!(used < 1.5, "{share}: {used} of the budget");
    }
}

#[test]
fn a_program_that_does_next_to_nothing_is_still_sampled() {
    let mut simulation = Simulation::new(0.01);
    // Our looks alone are more than the budget.
    let idle = Phase { seconds: 3600.0, load: 0.01, blocks: 1e7, sample_ns: 2_000.0 };
    simulation.run(idle);
    let before = simulation.now.samples;
    simulation.run(idle);
    let samples = simulation.now.samples - before;
    assert!(samples > 1_000, "{samples} samples in an hour");
    // And a debt of hours does not end the sampling of what comes then.
    simulation.run(Phase { seconds: 60.0, ..BUSY });
    let settled = simulation.now;
    simulation.run(Phase { seconds: 60.0, ..BUSY });
    let used = simulation.share_since(settled) / 0.01;
    assert!((0.5..1.2).contains(&used), "{used} of the budget");
}

#[test]
fn an_idle_program_changes_nothing() {
    let mut simulation = Simulation::new(0.01);
    simulation.wake_ns = 0.0;
    simulation.run(Phase { seconds: 3600.0, load: 0.0, blocks: 0.0, sample_ns: 0.0 });
    assert_eq!(simulation.changes, []);
}

#[test]
fn rates_are_few_and_within_their_bounds() {
    let highest = 1e-3;
    let budget = Budget { share: 0.01, highest: Rate::new(highest).unwrap() };
    let mut simulation = Simulation::new(0.01);
    simulation.controller = begun(budget, Rate::new(3.3e-5).unwrap(), simulation.now);
    simulation.rate = 3.3e-5;
    for round in 0..200 {
        let blocks = 10f64.powf(simulation.chance() * 8.0 + 2.0);
        let load = if round % 3 == 0 { 0.05 } else { 1.5 };
        simulation.run(Phase { seconds: 3.0, load, blocks, ..BUSY });
    }
    let mut rates = simulation.changes.clone();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    assert!(rates.len() <= 27, "{rates:?}");
    assert!(rates.iter().all(|&rate| (Rate::MIN..=highest).contains(&rate)), "{rates:?}");
    assert!(rates.len() > 5);
}

#[test]
fn clocks_that_jump_do_no_lasting_harm() {
    let mut simulation = Simulation::new(0.01);
    simulation.run(Phase { seconds: 60.0, ..BUSY });
    // Back to nothing, and an hour ahead.
    for wrong in [
        Reading::default(),
        Reading { wall_ns: u64::MAX, samples: u64::MAX, ..simulation.now },
        Reading { process_ns: u64::MAX, threads_ns: u64::MAX, ..simulation.now },
        // A hook that stood still for an hour.
        Reading { hooks_ns: simulation.now.hooks_ns + 3_600_000_000_000, ..simulation.now },
    ] {
        simulation.controller.observe(wrong).inspect(|rate| simulation.rate = rate.get());
        simulation.run(Phase { seconds: 60.0, ..BUSY });
        let settled = simulation.now;
        simulation.run(Phase { seconds: 60.0, ..BUSY });
        let used = simulation.share_since(settled) / 0.01;
        assert!((0.5..1.2).contains(&used), "{used} of the budget after {wrong:?}");
    }
}

#[test]
fn samples_without_work_do_not_end_the_sampling() {
    let mut simulation = Simulation::new(0.2);
    simulation.run(Phase { seconds: 5.0, ..BUSY });
    let (before, now) = (simulation.rate, simulation.now);
    // The samples of a moment whose processor time an earlier look had counted.
    let torn = Reading { samples: now.samples + 5_000, wall_ns: now.wall_ns + 5_000_000, ..now };
    simulation.controller.observe(torn).inspect(|rate| simulation.rate = rate.get());
    assert!(simulation.rate >= before / 32.0, "from {before} to {}", simulation.rate);
}

#[test]
fn a_budget_begins_on_its_grid() {
    for (share, highest) in [(1e-4, 1e-2), (0.01, 1e-2), (0.01, 1e-5), (0.5, 1.0), (0.01, 1e-7)] {
        let budget = Budget { share, highest: Rate::new(highest).unwrap() };
        let rate = budget.first_rate();
        assert!(rate.get() <= highest && rate.get() <= (share * 1e-2).max(Rate::MIN), "{rate:?}");
        let grid = Grid::new(budget.highest);
        assert_eq!(grid.rate(grid.place(rate.get())).bits(), rate.bits());
    }
}
