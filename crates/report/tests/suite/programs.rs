//! Made programs, of which every word is known: how long their blocks live and
//! how large they are.

use crate::made::{Dice, Life};

/// How many sites allocate.
pub(crate) const SITES: u64 = 8;

/// What a program does with its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As much dies as is born, on average: the peak is anywhere.
    Wavering,
    /// Exactly as much dies as is born.
    Flat,
    /// Everything lives to the end.
    Ramp,
    /// Much is built up, dropped, and a little built again.
    Hill,
    /// A compiler's way: the same is built up and dropped ten times.
    Phases,
    /// A server's way: much for a moment, some for as long as a session, and more
    /// to do in the middle of the run.
    Sessions,
    /// Most dies at once, little lives very long; most is small, little is huge.
    HeavyTails,
    /// Almost nothing, but for a moment.
    Spike,
}

/// A program of this shape; different seeds give different ones.
pub(crate) fn program(shape: Shape, seed: u64) -> Vec<Life> {
    let mut dice = Dice::new(seed);
    (0..3000_u64)
        .map(|turn| {
            let born = turn * 100;
            let (length, dies) = (length(shape, &mut dice), dies(shape, turn, born, &mut dice));
            let promoted = dies.is_none_or(|at| at > born + 2000).then_some(born + 2000);
            Life { length, site: turn % SITES, born, promoted, dies }
        })
        .collect()
}

fn length(shape: Shape, dice: &mut Dice) -> u64 {
    match shape {
        Shape::Flat => 15,
        Shape::Sessions => [2, 3, 5, 9, 17, 129][dice.below(6) as usize],
        Shape::HeavyTails => (1.0 / (1.0 - dice.unit()).powf(0.8)).min(3000.0) as u64,
        // Mostly small blocks, some of which have many samples.
        _ if dice.below(50) == 0 => 200 + dice.below(400),
        _ => 1 + dice.below(20),
    }
}

fn dies(shape: Shape, turn: u64, born: u64, dice: &mut Dice) -> Option<u64> {
    match shape {
        Shape::Wavering => Some(born + dice.wait(30_000.0)),
        Shape::Flat => Some(born + 30_000),
        Shape::Ramp => None,
        Shape::Hill if turn < 1800 => Some(180_000 + dice.below(9000)),
        Shape::Hill => Some(born + dice.wait(3000.0)),
        Shape::Phases => Some((born / 30_000 + 1) * 30_000 + dice.below(3000)),
        Shape::Sessions => {
            let busy = 1.0 + (std::f64::consts::PI * born as f64 / 300_000.0).sin();
            let long = dice.below(4) == 0;
            Some(born + dice.wait(if long { 30_000.0 * busy } else { 500.0 }))
        }
        Shape::HeavyTails if dice.below(100) == 0 => None,
        Shape::HeavyTails => Some(born + (200.0 / (1.0 - dice.unit()).powf(1.2)) as u64),
        Shape::Spike if (1500..1900).contains(&turn) => Some(190_000),
        Shape::Spike => Some(born + dice.wait(300.0)),
    }
}
