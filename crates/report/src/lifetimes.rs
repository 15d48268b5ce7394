//! The distribution of lifetimes, in classes of 3 % width.

/// Classes for each power of two.
const FINE_BITS: u32 = 5;
const FINE: usize = 1 << FINE_BITS;
const CLASSES: usize = (64 - FINE_BITS as usize + 1) * FINE;

/// Samples by lifetime in microseconds.
#[derive(Clone, Debug)]
pub struct Lifetimes {
    classes: Vec<u64>,
    died: u64,
    survived: u64,
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
        Lifetimes { classes: vec![0; CLASSES], died: 0, survived: 0 }
    }

    /// From [`Lifetimes::classes`] and the survivors; `None` if those are not classes.
    pub(crate) fn of(classes: &[u64], survived: u64) -> Option<Self> {
        let mut all = Lifetimes::new();
        if classes.len() > CLASSES {
            return None;
        }
        all.died = classes.iter().fold(0, |sum, &samples| sum.saturating_add(samples));
        all.classes[..classes.len()].copy_from_slice(classes);
        all.survived = survived;
        Some(all)
    }

    /// Samples by class, up to the last class that has any.
    pub(crate) fn classes(&self) -> &[u64] {
        let last = self.classes.iter().rposition(|&samples| samples > 0);
        &self.classes[..last.map_or(0, |last| last + 1)]
    }

    pub(crate) fn died(&mut self, micros: u64, samples: u64) {
        let class = &mut self.classes[class(micros)];
        *class = class.saturating_add(samples);
        self.died = self.died.saturating_add(samples);
    }

    pub(crate) fn set_survivors(&mut self, samples: u64) {
        self.survived = samples;
    }

    /// Samples that were collected.
    pub fn dead(&self) -> u64 {
        self.died
    }

    /// Samples whose end was not seen.
    pub fn survivors(&self) -> u64 {
        self.survived
    }

    /// The lifetime that `share` of all samples did not reach; `None` where the
    /// trace ended first. Survivors count as living longest.
    pub fn quantile(&self, share: f64, rate: f64) -> Option<Quantile> {
        let all = self.died as f64 + self.survived as f64;
        let micros = self.at_rank(share * all)?;
        // The rank is binomial; its error is turned into time by the lifetimes at both
        // ends of it.
        let spread = (share * (1.0 - share) * all * (1.0 - rate)).sqrt();
        let low = self.at_rank(share * all - spread).unwrap_or(micros);
        let high = self.at_rank(share * all + spread).unwrap_or(micros);
        Some(Quantile { micros, error: (high - low) / 2.0 })
    }

    fn at_rank(&self, rank: f64) -> Option<f64> {
        if self.died == 0 || rank > self.died as f64 {
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
        let mut lifetimes = Lifetimes::new();
        for micros in 0..10_000 {
            lifetimes.died(micros, 1);
        }
        let median = lifetimes.quantile(0.5, 0.01).unwrap();
        assert!((median.micros - 5000.0).abs() < 200.0, "{median:?}");
        assert!((median.error - 50.0).abs() < 10.0, "{median:?}");
        lifetimes.set_survivors(30_000);
        assert!(lifetimes.quantile(0.5, 0.01).is_none());
        assert!((lifetimes.quantile(0.2, 0.01).unwrap().micros - 8000.0).abs() < 300.0);
    }
}
