//! The distribution of lifetimes, in classes of 3 % width.

use crate::estimate::{Sampled, Scale};

/// Classes for each power of two.
const FINE_BITS: u32 = 5;
const FINE: usize = 1 << FINE_BITS;
const CLASSES: usize = (64 - FINE_BITS as usize + 1) * FINE;

/// Samples by lifetime in microseconds.
#[derive(Clone, Debug)]
pub struct Lifetimes {
    classes: Vec<u64>,
    /// The variances of these, if the trace has several rates.
    variances: Vec<u64>,
    died: Sampled,
    survived: Sampled,
}

/// A lifetime that a given share of the samples does not reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// Microseconds.
    pub micros: f64,
    /// Its standard error.
    pub error: f64,
}

impl Lifetimes {
    pub(crate) fn new() -> Self {
        let none = Sampled::default();
        Lifetimes { classes: vec![0; CLASSES], variances: Vec::new(), died: none, survived: none }
    }

    /// From [`Lifetimes::classes`], [`Lifetimes::variances`] and the survivors; `None` if those
    /// are not classes.
    pub(crate) fn of(classes: &[u64], variances: &[u64], survived: Sampled) -> Option<Self> {
        let mut all = Lifetimes::new();
        if classes.len().max(variances.len()) > CLASSES {
            return None;
        }
        let sum = |of: &[u64]| of.iter().fold(0, |sum: u64, &each| sum.saturating_add(each));
        all.died = Sampled { count: sum(classes), variance: sum(variances) };
        all.classes[..classes.len()].copy_from_slice(classes);
        if !variances.is_empty() {
            all.variances = vec![0; CLASSES];
            all.variances[..variances.len()].copy_from_slice(variances);
        }
        all.survived = survived;
        Some(all)
    }

    /// Samples by class, up to the last class that has any.
    pub(crate) fn classes(&self) -> &[u64] {
        up_to_last(&self.classes)
    }

    /// The variances of these; none if the trace has one rate.
    pub(crate) fn variances(&self) -> &[u64] {
        up_to_last(&self.variances)
    }

    pub(crate) fn died(&mut self, micros: u64, sampled: Sampled) {
        let number = class(micros);
        let class = &mut self.classes[number];
        *class = class.saturating_add(sampled.count);
        if sampled.variance > 0 {
            self.variances.resize(CLASSES, 0);
            let variance = &mut self.variances[number];
            *variance = variance.saturating_add(sampled.variance);
        }
        self.died = self.died.plus(sampled);
    }

    pub(crate) fn set_survivors(&mut self, sampled: Sampled) {
        self.survived = sampled;
    }

    /// What was collected.
    pub fn dead(&self) -> Sampled {
        self.died
    }

    /// That of which the end was not seen.
    pub fn survivors(&self) -> Sampled {
        self.survived
    }

    /// The lifetime that `share` of all samples did not reach; `None` where the
    /// trace ended first. Survivors count as living longest.
    pub fn quantile(&self, share: f64, scale: &Scale) -> Option<Quantile> {
        let all = self.died.count as f64 + self.survived.count as f64;
        let micros = self.at_rank(share * all)?;
        // The rank is binomial; its error is turned into time by the lifetimes at both
        // ends of it.
        let spread = match scale.is_mixed() {
            true => self.rank_variance(share, scale, class(micros as u64)).sqrt(),
            false => (share * (1.0 - share) * all * (1.0 - scale.lowest_rate())).sqrt(),
        };
        let low = self.at_rank(share * all - spread).unwrap_or(micros);
        let high = self.at_rank(share * all + spread).unwrap_or(micros);
        Some(Quantile { micros, error: (high - low) / 2.0 })
    }

    /// The variance of the rank of a lifetime in this class, which `share` of all do not reach. What
    /// lives less and what lives longer were sampled independently, each at rates of its own.
    fn rank_variance(&self, share: f64, scale: &Scale, class: usize) -> f64 {
        let until = |of: &[u64]| {
            of.iter().take(class + 1).fold(0, |sum: u64, &each| sum.saturating_add(each))
        };
        let below = Sampled { count: until(&self.classes), variance: until(&self.variances) };
        let above = self.died.plus(self.survived).without(below);
        scale.variance(below) * (1.0 - share).powi(2) + scale.variance(above) * share.powi(2)
    }

    fn at_rank(&self, rank: f64) -> Option<f64> {
        if self.died.count == 0 || rank > self.died.count as f64 {
            return None;
        }
        let mut below = 0.0;
        for (class, &samples) in self.classes.iter().enumerate() {
            if samples > 0 && below + samples as f64 >= rank {
                let within = ((rank - below) / samples as f64).clamp(0.0, 1.0);
                let (from, to) = (bound(class), bound(class + 1));
                return Some(from + within * (to - 1.0 - from));
            }
            below += samples as f64;
        }
        None
    }
}

/// These up to the last that is not 0.
fn up_to_last(classes: &[u64]) -> &[u64] {
    let last = classes.iter().rposition(|&samples| samples > 0);
    &classes[..last.map_or(0, |last| last + 1)]
}

fn class(micros: u64) -> usize {
    let octave = (64 - micros.leading_zeros()).saturating_sub(FINE_BITS + 1);
    octave as usize * FINE + (micros >> octave) as usize
}

/// The smallest lifetime of a class.
fn bound(class: usize) -> f64 {
    let octave = (class / FINE).saturating_sub(1);
    (class - octave * FINE) as f64 * 2_f64.powi(octave as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_in_order_and_narrow() {
        let mut last = 0;
        for micros in (0..100_000).chain([1 << 40, u64::MAX]) {
            let class = class(micros);
            assert!(class >= last && class < CLASSES);
            assert!(bound(class) <= micros as f64, "{micros}");
            assert!(micros as f64 <= bound(class + 1), "{micros}");
            assert!(bound(class + 1) - bound(class) <= (micros as f64 / 32.0).max(1.0));
            last = class;
        }
    }

    #[test]
    fn quantiles_are_those_of_the_samples() {
        let samples = |count| Sampled { count, variance: 0 };
        let (mut lifetimes, scale) = (Lifetimes::new(), Scale::new(0.01, 8.0));
        for micros in 0..10_000 {
            lifetimes.died(micros, samples(1));
        }
        let median = lifetimes.quantile(0.5, &scale).unwrap();
        assert!((median.micros - 5000.0).abs() < 200.0, "{median:?}");
        assert!((median.error - 50.0).abs() < 10.0, "{median:?}");
        lifetimes.set_survivors(samples(30_000));
        assert!(lifetimes.quantile(0.5, &scale).is_none());
        assert!((lifetimes.quantile(0.2, &scale).unwrap().micros - 8000.0).abs() < 300.0);
    }
}
