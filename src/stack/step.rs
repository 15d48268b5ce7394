//! How to get from a frame to its caller, packed in a word for the table and the
//! walk's cache.

use std::ptr;
use std::sync::OnceLock;

use super::formats::neutral::{HIDDEN_LINK, LINK};
use super::formats::{Caller, CrossingRule, FrameRecord, TableDefect};

/// - a positive multiple of 8: add that many bytes to `sp`;
/// - [`CROSS_NEUTRAL`] or [`CROSS_NEUTRAL_HIDDEN`]: a boundary of the neutral format;
/// - up to 7: a boundary whose rule has this number in [`CrossingRules`];
/// - 0: the address is in no table.
pub(super) type Step = u64;

/// A neutral boundary that is itself a frame of the backtrace.
pub(super) const CROSS_NEUTRAL: Step = 1;
/// A neutral boundary without a place, which is not shown in the backtrace.
pub(super) const CROSS_NEUTRAL_HIDDEN: Step = 2;
/// The first number of a rule that a runtime brings.
const FIRST_RULE: usize = 3;
/// How many numbers there are for those.
const RULES: usize = 8 - FIRST_RULE;

/// Whether a step is a plain distance.
pub(super) const fn is_distance(step: Step) -> bool {
    step != 0 && step.is_multiple_of(8)
}

/// One return address, as the tables hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) return_address: u64,
    pub(super) step: Step,
    /// The address of the host's own record of it.
    pub(super) record: u64,
}

/// The rules of all formats whose tables were added. Numbers are given once and
/// never change.
pub(super) struct CrossingRules([OnceLock<&'static CrossingRule>; RULES]);

impl CrossingRules {
    pub(super) const fn new() -> Self {
        Self([const { OnceLock::new() }; RULES])
    }

    /// The rule of a step that is neither a distance nor neutral. Mutators.
    #[inline]
    pub(super) fn get(&self, step: Step) -> Option<&'static CrossingRule> {
        self.0.get((step as usize).wrapping_sub(FIRST_RULE))?.get().copied()
    }

    /// A record with its caller as a step, whose rule gets a number if it has none.
    /// Not inside a hook.
    pub(super) fn entry(&self, frame: &FrameRecord) -> Result<Entry, TableDefect> {
        let &FrameRecord { return_address, caller, record } = frame;
        let step = match caller {
            Caller::Distance(size) if is_distance(size) => size,
            Caller::Distance(size) => {
                let size = u32::try_from(size).unwrap_or(u32::MAX);
                return Err(TableDefect::FrameSize { return_address, size });
            }
            Caller::Beyond(rule) => self.number(rule).ok_or(TableDefect::Rules(return_address))?,
        };
        Ok(Entry { return_address, step, record })
    }

    fn number(&self, rule: &'static CrossingRule) -> Option<Step> {
        if ptr::eq(rule, &LINK) {
            return Some(CROSS_NEUTRAL);
        }
        if ptr::eq(rule, &HIDDEN_LINK) {
            return Some(CROSS_NEUTRAL_HIDDEN);
        }
        let place = self.0.iter().position(|place| ptr::eq(*place.get_or_init(|| rule), rule));
        place.map(|place| (FIRST_RULE + place) as Step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(rules: &CrossingRules, caller: Caller) -> Result<Step, TableDefect> {
        let frame = FrameRecord { return_address: 0x5000, caller, record: 0 };
        rules.entry(&frame).map(|entry| entry.step)
    }

    #[test]
    fn each_rule_has_one_number() {
        static RULE: [CrossingRule; RULES + 1] =
            [const { CrossingRule { offset: 0, end: 0, cross: |_, _, _| None } }; RULES + 1];
        let rules = CrossingRules::new();
        assert!(rules.get(3).is_none());
        for rule in RULE.iter().take(RULES).chain(RULE.iter().take(RULES)) {
            let step = step(&rules, Caller::Beyond(rule)).unwrap();
            assert!(step < 8 && !is_distance(step));
            assert!(ptr::eq(rules.get(step).unwrap(), rule));
        }
        let full = step(&rules, Caller::Beyond(&RULE[RULES]));
        assert_eq!(full, Err(TableDefect::Rules(0x5000)));
        assert_eq!(step(&rules, Caller::Beyond(&LINK)), Ok(CROSS_NEUTRAL));
        assert_eq!(step(&rules, Caller::Beyond(&HIDDEN_LINK)), Ok(CROSS_NEUTRAL_HIDDEN));
        assert!([0, 1, 2, 8, u64::MAX].into_iter().all(|step| rules.get(step).is_none()));
    }

    #[test]
    fn a_distance_is_a_positive_multiple_of_8() {
        let rules = CrossingRules::new();
        assert_eq!(step(&rules, Caller::Distance(24)), Ok(24));
        for (distance, size) in [(0, 0), (12, 12), (u64::MAX, u32::MAX)] {
            let refused = step(&rules, Caller::Distance(distance));
            assert_eq!(refused, Err(TableDefect::FrameSize { return_address: 0x5000, size }));
        }
    }
}
