//! From one chunk of managed frames to the next, past the C code or the change of
//! stack in between, by the rules that formats bring.
//!
//! A crossing is recorded with the words that its rule read, in that order: as long
//! as they are unchanged, the crossing is.

pub(super) use super::super::formats::Crossing;
use super::super::formats::neutral::LINK;
use super::super::formats::{CrossingRule, MAX_WITNESSES, StackReader};
use super::super::memory::Memory;
use super::super::step::{CROSS_NEUTRAL, CROSS_NEUTRAL_HIDDEN, Step};
use super::super::table::FrameTables;

/// Whether the stack ends at a boundary frame whose stack pointer is `sp`.
#[inline]
pub(super) fn ends<M: Memory>(memory: &M, tables: &FrameTables, step: Step, sp: u64) -> bool {
    let ends = |rule: &CrossingRule| {
        sp.checked_add(rule.offset).and_then(|at| memory.word(at)) == Some(rule.end)
    };
    rule_of(tables, step).is_some_and(ends)
}

/// Crosses at a boundary frame whose stack pointer is `sp`. `None` if the words make
/// no sense.
pub(super) fn cross<M: Memory>(
    memory: &M,
    tables: &FrameTables,
    step: Step,
    sp: u64,
    witnesses: &mut Witnesses,
) -> Option<Crossing> {
    rule_of(tables, step)?.apply(sp, &mut Recorded { memory, witnesses })
}

#[inline]
fn rule_of(tables: &FrameTables, step: Step) -> Option<&'static CrossingRule> {
    match step {
        CROSS_NEUTRAL | CROSS_NEUTRAL_HIDDEN => Some(&LINK),
        _ => tables.rule(step),
    }
}

/// The address of a word, and the word.
pub(super) type Witness = (u64, u64);

/// The words that one crossing depends on.
#[derive(Default)]
pub(super) struct Witnesses {
    words: [Witness; MAX_WITNESSES],
    count: usize,
}

impl Witnesses {
    pub(super) fn iter(&self) -> impl Iterator<Item = Witness> {
        self.words.iter().take(self.count).copied()
    }
}

/// Reads and records.
struct Recorded<'a, M> {
    memory: &'a M,
    witnesses: &'a mut Witnesses,
}

impl<M: Memory> StackReader for Recorded<'_, M> {
    fn word(&mut self, address: u64) -> Option<u64> {
        let word = self.memory.word(address)?;
        let Witnesses { words, count } = self.witnesses;
        *words.get_mut(*count)? = (address, word);
        *count += 1;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::memory::Words;
    use super::*;

    fn crossed(words: Vec<u64>, step: Step, sp: u64) -> (Option<Crossing>, Vec<Witness>) {
        let memory = Words { base: 0x1000, words };
        let mut witnesses = Witnesses::default();
        let crossing = cross(&memory, &FrameTables::new(), step, sp, &mut witnesses);
        (crossing, witnesses.iter().collect())
    }

    #[test]
    fn a_neutral_link_lies_at_sp() {
        let (crossing, witnesses) = crossed(vec![0, 0x2000, 0xC0DE], CROSS_NEUTRAL, 0x1008);
        let return_address = 0xC0DE;
        assert_eq!(crossing, Some(Crossing::Frame { sp: 0x2000, return_address, read_at: 0x1010 }));
        assert_eq!(witnesses, [(0x1010, 0xC0DE), (0x1008, 0x2000)]);
        assert_eq!(crossed(vec![0x2000, 0], CROSS_NEUTRAL_HIDDEN, 0x1000).0, Some(Crossing::End));
        assert_eq!(crossed(vec![0x2000], CROSS_NEUTRAL, 0x1000).0, None);
    }

    #[test]
    fn a_step_without_a_rule_leads_nowhere() {
        assert_eq!(crossed(vec![0x2000, 0], 3, 0x1000), (None, vec![]));
    }
}
