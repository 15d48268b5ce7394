//! Counts by domain and source, beside those by call path.
//!
//! A reading that makes a table of blocks keeps them, so that tables by domain and by
//! source count every block even if the table is thinned. A class is a domain with a
//! source. Its number is in each live object, which has [`CLASS_BITS`] for it; a trace
//! with more classes has none of these counts.

use heaptap_trace::Source;

use crate::counts::{Counts, Tallies, Tally};
use crate::estimate::Sampled;

/// The bits of the number of a class.
pub(crate) const CLASS_BITS: u32 = 9;

/// Stands for the class of a block whose class is not counted.
pub(crate) const NO_CLASS: u16 = (1 << CLASS_BITS) - 1;

const SOURCES: usize = 3;

/// The classes of a trace, with their counts.
#[derive(Clone, Default)]
pub(crate) struct Classes {
    is_kept: bool,
    /// The number of each class, at [`SOURCES`] × domain + source.
    numbers: Vec<u16>,
    /// By number: at most [`NO_CLASS`].
    classes: Vec<(u16, Source)>,
    counts: Tallies,
}

impl Classes {
    /// Classes that are counted; those of `default()` are not.
    pub(crate) fn kept(are_mixed: bool) -> Self {
        Classes { is_kept: true, counts: Tallies::new(are_mixed), ..Classes::default() }
    }

    /// Classes with their counts, from an archive; `None` if there are too many.
    pub(crate) fn of(classes: Vec<(u16, Source)>, counts: Tallies) -> Option<Self> {
        let is_one = classes.len() == counts.len() && classes.len() <= NO_CLASS as usize;
        is_one.then(|| Classes { is_kept: true, numbers: Vec::new(), classes, counts })
    }

    /// Whether every block is counted.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// The number of a class, which is assigned on first use.
    pub(crate) fn number(&mut self, domain: u16, source: Source) -> u16 {
        if !self.is_kept {
            return NO_CLASS;
        }
        let at = usize::from(domain) * SOURCES + source as usize;
        match self.numbers.get(at) {
            Some(&number) if number != NO_CLASS => number,
            _ => self.add(at, domain, source),
        }
    }

    fn add(&mut self, at: usize, domain: u16, source: Source) -> u16 {
        let number = self.classes.len() as u16;
        if number == NO_CLASS {
            *self = Classes::default();
            return NO_CLASS;
        }
        if self.numbers.len() <= at {
            self.numbers.resize(at + 1, NO_CLASS);
        }
        self.numbers[at] = number;
        self.classes.push((domain, source));
        self.counts.resize(self.classes.len());
        number
    }

    /// The class of blocks of this class after their promotion.
    pub(crate) fn promoted(&mut self, class: u16) -> u16 {
        match self.classes.get(usize::from(class)) {
            Some(&(domain, _)) => self.number(domain, Source::Major),
            None => class,
        }
    }

    /// Changes the counts of a class, unless it is not counted.
    #[inline]
    pub(crate) fn change(&mut self, class: u16, by: Sampled, change: impl Fn(&mut Counts, u64)) {
        self.counts.change(usize::from(class), by, change);
    }

    /// The counts of all classes, and their variances.
    pub(crate) fn counts_mut(&mut self) -> impl Iterator<Item = &mut Counts> {
        self.counts.all_mut()
    }

    /// All classes with their counts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, Source, Tally)> {
        let tallies = self.classes.iter().zip(self.counts.iter());
        tallies.map(|(&(domain, source), tally)| (domain, source, tally))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_numbered_until_there_are_too_many() {
        let mut classes = Classes::kept(false);
        assert_eq!(classes.number(7, Source::Major), 0);
        assert_eq!(classes.number(7, Source::Minor), 1);
        assert_eq!(classes.number(7, Source::Major), 0);
        for domain in 1000..1000 + NO_CLASS - 2 {
            assert_ne!(classes.number(domain, Source::Minor), NO_CLASS);
        }
        assert!(classes.is_kept() && classes.iter().count() == usize::from(NO_CLASS));
        assert_eq!(classes.number(3, Source::External), NO_CLASS);
        assert!(!classes.is_kept() && classes.iter().next().is_none());
        for class in [0, NO_CLASS] {
            classes.change(class, Sampled::default(), |_, _| panic!("it is not counted"));
        }
        assert_eq!(Classes::default().number(0, Source::Minor), NO_CLASS);
    }
}
