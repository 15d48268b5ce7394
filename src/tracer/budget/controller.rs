//! Which rate keeps a budget: a function of what was measured, without clocks of its own.
//!
//! Rates are on a grid, each a factor of √2 below the one above, so that few different ones occur.
//!
//! - **Down, at once.** Many samples within some milliseconds, at what a sample costs by
//!   experience, are a burst: the rate falls to what fits. So does it when a window has cost much
//!   more than it may.
//! - **Up, slowly.** After a window of at least a second of the program's processor time in which
//!   the next rate would have fitted, too.
//! - **Over time.** What is saved or overspent is a *credit*. In debt a lower share is aimed at, until
//!   the debt is paid. Both are bounded: savings, so that a quiet hour does not allow an expensive
//!   minute; debts, so that what no rate can help does not end the sampling for long.
//! - **Steady.** Between the share at which the rate falls and that at which it rises lies a
//!   factor of 1.9, and a step is one of 1.4.
//!
//! What our threads take while nothing is sampled (they wake to look), and the hooks of collections,
//! depend on no rate. They count, but at least a quarter of the budget is left to samples: otherwise
//! a program that does next to nothing would have none.

use crate::sampling::Rate;

/// What may be spent, and the rate that is enough in any case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Budget {
    /// The cost of tracing by the processor time of the program, above 0.
    pub(crate) share: f64,
    pub(crate) highest: Rate,
}

impl Budget {
    /// The highest rate unless another is asked for.
    pub(crate) const HIGHEST: f64 = 1e-2;

    pub(crate) fn new(share: f64, highest: Option<Rate>) -> Budget {
        let highest = highest.or_else(|| Rate::new(Self::HIGHEST)).unwrap_or(Rate::DEFAULT);
        Budget { share, highest }
    }

    /// The rate to begin with: one per cent allows this rate in a program that does little but
    /// allocate.
    pub(crate) fn first_rate(&self) -> Rate {
        let affordable = (self.share * 1e-2).clamp(Rate::MIN, self.highest.get());
        let grid = Grid::new(self.highest);
        grid.rate(grid.place(affordable).ceil())
    }
}

/// What was counted since the session began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    /// By a clock that never goes back.
    pub(crate) wall_ns: u64,
    /// Processor time of the process.
    pub(crate) process_ns: u64,
    /// Of it, that of our threads.
    pub(crate) threads_ns: u64,
    /// And that of hooks, an estimate.
    pub(crate) hooks_ns: u64,
    /// Sampled blocks.
    pub(crate) samples: u64,
}

/// What was counted in a while.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    wall: f64,
    /// Processor time of the program, without ours.
    program: f64,
    /// Processor time of hooks and of our threads.
    cost: f64,
    samples: f64,
}

impl Spent {
    fn between(from: Reading, to: Reading) -> Spent {
        let since = |from: u64, to: u64| to.saturating_sub(from) as f64;
        let threads = since(from.threads_ns, to.threads_ns);
        let rest = (since(from.process_ns, to.process_ns) - threads).max(0.0);
        // Hooks that did not run took time, but no processor time.
        let hooks = since(from.hooks_ns, to.hooks_ns).min(rest);
        Spent {
            wall: since(from.wall_ns, to.wall_ns),
            program: rest - hooks,
            cost: threads + hooks,
            samples: since(from.samples, to.samples),
        }
    }

    fn add(&mut self, other: Spent) {
        self.wall += other.wall;
        self.program += other.program;
        self.cost += other.cost;
        self.samples += other.samples;
    }
}

/// The rates that occur: numbered from 0, the highest, downwards.
#[derive(Clone, Copy, Debug)]
struct Grid {
    highest: f64,
    lowest_place: f64,
}

impl Grid {
    fn new(highest: Rate) -> Grid {
        let highest = highest.get();
        Grid { highest, lowest_place: (2.0 * (highest / Rate::MIN).log2()).floor() }
    }

    /// Where a rate is, between two numbers unless it is on the grid.
    fn place(self, rate: f64) -> f64 {
        let place = 2.0 * (self.highest / rate).log2();
        // The same rate has the same number after rounding.
        if (place - place.round()).abs() < 1e-6 { place.round() } else { place }
    }

    fn rate(self, place: f64) -> Rate {
        let place = place.clamp(0.0, self.lowest_place);
        let rate = self.highest * (-place / 2.0).exp2();
        Rate::new(rate.max(Rate::MIN)).unwrap_or(Rate::DEFAULT)
    }
}

const SECOND: f64 = 1e9;
const MILLISECOND: f64 = 1e6;

/// For so much of the program's processor time the budget can be saved, or be overspent before that
/// is forgotten.
const SAVINGS: f64 = 5.0 * SECOND;
const DEBTS: f64 = 30.0 * SECOND;

/// A debt is paid within about so much of it.
const PATIENCE: f64 = 10.0 * SECOND;

/// A window takes at least so much of the program's processor time, and until so much may have
/// been spent; or so much time of the wall, if the program computes little.
const WINDOW: f64 = SECOND;
const WINDOW_COST: f64 = 5.0 * MILLISECOND;
const WINDOW_WALL: f64 = 10.0 * SECOND;
const LEAST_PROGRAM: f64 = 50.0 * MILLISECOND;

/// One decision lowers the rate to this part of itself at most. A cost that seems a hundred times too
/// high mostly comes from clocks that were read at different moments, and a rate that is far too low
/// takes seconds to recover. If it is still too high, the next look lowers it again.
const FURTHEST_DOWN: f64 = 1.0 / 16.0;

/// So few samples between two looks cost next to nothing.
const FEW_SAMPLES: f64 = 8.0;

/// Fewer samples are no burst.
const BURST_SAMPLES: f64 = 64.0;

/// The rate falls above this share of what is aimed at.
const TOO_MUCH: f64 = 1.25;
/// It rises if this much more is left than the next rate takes.
const ROOM: f64 = 1.05;

/// The cost of a sample in nanoseconds: before anything is known, and how far it may be believed.
const SAMPLE_COST: f64 = 2_000.0;
const SAMPLE_COSTS: std::ops::RangeInclusive<f64> = 300.0..=1_000_000.0;

/// Chooses the rate.
#[derive(Debug)]
pub(crate) struct Controller {
    budget: Budget,
    grid: Grid,
    /// Of the rate, on the grid.
    place: f64,
    /// `None` before the first.
    last: Option<Reading>,
    /// Since the last decision.
    window: Spent,
    /// What may be spent beyond what the present earns, in nanoseconds; below 0 a debt.
    credit: f64,
    /// Of a sample, by experience.
    sample_cost: f64,
    base: BaseCost,
}

/// What tracing costs apart from samples: our threads look by the wall clock, and the hooks of
/// collections run as often as the program collects. By experience, in nanoseconds for each
/// nanosecond of either.
#[derive(Clone, Copy, Debug, Default)]
struct BaseCost {
    by_wall: f64,
    by_program: f64,
}

impl BaseCost {
    fn of(self, spent: &Spent) -> f64 {
        self.by_wall * spent.wall + self.by_program * spent.program
    }

    /// Learns of what was spent when next to nothing was sampled: normalised least mean squares.
    fn learn(&mut self, spent: &Spent, cost: f64) {
        let Spent { wall, program, .. } = *spent;
        let step = 0.05 * (cost - self.of(spent)) / (wall * wall + program * program);
        self.by_wall = (self.by_wall + step * wall).max(0.0);
        self.by_program = (self.by_program + step * program).max(0.0);
    }
}

impl Controller {
    /// Begins at a rate that need not be on the grid.
    pub(crate) fn new(budget: Budget, rate: Rate) -> Controller {
        let grid = Grid::new(budget.highest);
        Controller {
            budget,
            grid,
            place: grid.place(rate.get()),
            last: None,
            window: Spent::default(),
            credit: 0.0,
            sample_cost: SAMPLE_COST,
            base: BaseCost::default(),
        }
    }

    pub(crate) fn budget(&self) -> Budget {
        self.budget
    }

    /// Takes note of what was counted until now. Returns the rate from now on, if it changes. What
    /// comes before the first call is not the budget's.
    pub(crate) fn observe(&mut self, now: Reading) -> Option<Rate> {
        let spent = Spent::between(self.last.replace(now)?, now);
        let share = self.budget.share;
        self.credit = (self.credit + share * spent.program - spent.cost)
            .clamp(-share * DEBTS, share * SAVINGS);
        // Not by what it costs whether it counts: that would choose the expensive moments.
        if spent.samples <= FEW_SAMPLES && spent.wall > 10.0 * MILLISECOND {
            let of_samples = spent.samples * self.sample_cost;
            self.base.learn(&spent, (spent.cost - of_samples).max(0.0));
        }
        self.window.add(spent);
        let next = self.after_burst(spent).or_else(|| self.after_window())?;
        let next = next.clamp(0.0, self.grid.lowest_place);
        self.window = Spent::default();
        if next == self.place {
            return None;
        }
        self.place = next;
        Some(self.grid.rate(next))
    }

    /// The place that a burst demands.
    fn after_burst(&self, spent: Spent) -> Option<f64> {
        let expected = spent.samples * self.sample_cost;
        let allowed = self.budget.share * spent.program;
        let is_burst = spent.samples >= BURST_SAMPLES
            && expected > 2.0 * allowed
            && self.credit < self.budget.share * SAVINGS / 2.0;
        is_burst.then(|| self.below(0.9 * allowed / expected))
    }

    /// The place after a window, if that is over.
    fn after_window(&mut self) -> Option<f64> {
        let Spent { wall, program, cost, samples } = self.window;
        let share = self.budget.share;
        let overspent = cost - share * program > (share * WINDOW / 2.0).max(3.0 * MILLISECOND);
        let is_long = program >= WINDOW && share * program >= WINDOW_COST
            || wall >= WINDOW_WALL && program >= LEAST_PROGRAM;
        if !overspent && !is_long {
            return None;
        }
        let fixed = self.base.of(&self.window);
        let is_clear = fixed < cost / 2.0;
        // What is left of a small difference says nothing.
        let variable = if is_clear { cost - fixed } else { samples * self.sample_cost };
        if is_clear && samples >= 100.0 {
            // The first samples find locations, which takes long: only repetition is believed.
            let (low, high) = (self.sample_cost / 1.5, self.sample_cost * 1.5);
            let seen = (variable / samples).clamp(low, high);
            self.sample_cost = seen.clamp(*SAMPLE_COSTS.start(), *SAMPLE_COSTS.end());
        }
        let aim = (share * program * self.appetite() - fixed).max(share * program / 4.0);
        if variable > TOO_MUCH * aim {
            return Some(self.below(aim / variable));
        }
        if !is_long {
            return Some(self.place);
        }
        let room = aim / variable.max(1.0) / ROOM;
        let steps = match (2.0 * room.log2()).floor() {
            few if few < 1.0 => 0.0,
            few if few < 4.0 || self.credit < 0.0 => 1.0,
            few if few < 8.0 => 2.0,
            _ => 4.0,
        };
        Some(if steps == 0.0 { self.place } else { self.place.floor() - steps })
    }

    /// How much of what the present earns is aimed at: the less, the greater the debt.
    fn appetite(&self) -> f64 {
        let debt = -self.credit / self.budget.share;
        (1.0 - debt / PATIENCE).clamp(0.25, 1.0)
    }

    /// The first place on the grid below the rate times this factor.
    fn below(&self, factor: f64) -> f64 {
        let down = (-2.0 * factor.max(FURTHEST_DOWN).log2()).max(0.0);
        (self.place + down).ceil().max(self.place.floor() + 1.0)
    }
}

#[cfg(test)]
#[path = "controller_tests.rs"]
mod tests;
