//! The walk and the naive walk find the same, whatever happened in between.

use proptest::prelude::*;

use super::super::naive::{self, NaiveWalker};
use super::super::{End, Markers, SMALL_STACK};
use super::machine::Machine;
use super::{Receiver, act, action, assert_streaks_are, format, label_code, walker};

/// More frames than the machine has room for.
const ALL: usize = 100_000;

/// How a sample is taken after an action.
#[derive(Clone, Copy, Debug)]
enum Sample {
    None,
    /// By the walk for small stacks, if it expects one.
    Small,
    Received,
    /// The receiver gets no more than this many codes behind the prefix.
    Lost(usize),
}

fn sample() -> impl Strategy<Value = Sample> {
    prop_oneof![
        1 => Just(Sample::None),
        1 => Just(Sample::Small),
        4 => Just(Sample::Received),
        1 => (0..20_usize).prop_map(Sample::Lost),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn walks_equal_naive_walks(
        format in format(),
        max_frames in prop_oneof![Just(1000_usize), 4..60_usize],
        actions in prop::collection::vec((action(), sample()), 1..80),
    ) {
        let mut machine = Machine::new(format);
        let (mut walker, mut naive) = (walker(max_frames), NaiveWalker::default());
        let mut receiver = Receiver { stack: Vec::new(), in_step: true };
        let mut small = [0; SMALL_STACK];
        let mut label = None;
        for (action, sample) in actions {
            act(&mut machine, &mut label, &action);
            let (memory, tables, start) = (&machine.memory, &machine.tables, machine.start());
            let (all, naive_end) = naive::walk(memory, tables, start, ALL);
            match sample {
                Sample::None => continue,
                Sample::Small if walker.expects_small() => {
                    if let Some(count) = walker.walk_small_in(memory, tables, start, &mut small) {
                        small[..count].reverse();
                        prop_assert_eq!(&small[..count], &all);
                        prop_assert_eq!(naive_end, End::Complete);
                        naive.rewind(0);
                        receiver.stack.clear();
                        continue;
                    }
                }
                _ => {}
            }
            let markers =
                Markers { label: label_code(label).unwrap_or(0), cut: 98 << 50, unknown: 99 << 50 };
            let walk = walker.walk_in(memory, tables, start, markers);
            let end = walk.end;
            // Where exactly a stack is cut is the walker's choice, within these bounds.
            let depth = if end == End::Cut {
                let marks = 1 + usize::from(label.is_some());
                let depth = walk.depth() - marks;
                prop_assert!((max_frames / 2..=max_frames).contains(&depth), "{depth} frames");
                prop_assert!(depth <= all.len());
                depth
            } else {
                prop_assert_eq!(end, naive_end);
                prop_assert!(all.len() <= max_frames);
                all.len()
            };
            let (expected, prefix) = naive.report(&all[all.len() - depth..], markers.codes(end));
            prop_assert_eq!(walk.prefix, prefix);
            receiver.receive(&walk);
            prop_assert_eq!(&receiver.stack, &expected);
            if let Sample::Lost(received) = sample {
                let codes = (prefix + received).min(expected.len());
                walker.rewind(codes);
                naive.rewind(codes);
                receiver.stack.truncate(codes);
            }
            assert_streaks_are(&walker);
        }
    }
}
