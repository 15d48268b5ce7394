//! Folded and cut stacks, against a plain folding of each stack by itself.

use std::collections::BTreeMap;

use heaptap_report::rows::By;
use heaptap_report::{Aggregate, Depth, Metric, Omitted, Options, StackShape};
use heaptap_trace::{Code, LocationTable};
use proptest::prelude::*;

use crate::made::{CALLERS, Writer, folded, gathered};

const FOLDED: StackShape = StackShape { fold: true, frames: None };

fn aggregate(stacks: &[Vec<Code>]) -> (Aggregate, LocationTable) {
    let mut writer = Writer::new(1.0);
    for (at, stack) in stacks.iter().enumerate() {
        writer.alloc(at as u64, 0, 1, stack);
    }
    gathered(&writer.finish(), Options { depth: Depth::Whole, ..Options::default() })
}

/// The samples of each stack, its names from the outermost on, and what was left out.
fn shaped(stacks: &[Vec<Code>], shape: StackShape) -> (BTreeMap<Vec<String>, u64>, Omitted) {
    let (aggregate, table) = aggregate(stacks);
    let found = aggregate.stacks(&table, By::Function, shape);
    let mut sums = BTreeMap::new();
    for stack in found.iter() {
        let name = |site: u32| found.sites()[site as usize].name.clone();
        let names: Vec<String> = stack.sites().into_iter().rev().map(name).collect();
        let samples = Metric::Allocated.samples(&stack.counts);
        assert!(sums.insert(names, samples).is_none(), "a stack came twice");
    }
    (sums, found.omitted())
}

fn is_marker(name: &str) -> bool {
    name.starts_with('(')
}

fn names(stack: &[Code]) -> Vec<String> {
    stack.iter().map(|code| format!("Caller.f{}", code - CALLERS)).collect()
}

/// The expected samples of each stack, without markers.
fn expected(stacks: &[Vec<Code>]) -> BTreeMap<Vec<String>, u64> {
    let mut sums = BTreeMap::new();
    for stack in stacks {
        *sums.entry(names(&folded(stack))).or_default() += 1;
    }
    sums
}

#[test]
fn a_folded_cycle_has_its_count_above_it() {
    let f = CALLERS + 1;
    let direct = [vec![CALLERS, f], vec![CALLERS; 1], [vec![CALLERS], vec![f; 9]].concat()];
    let (found, omitted) = shaped(&direct, FOLDED);
    let deep = ["Caller.f0", "(repeated up to ×9)", "Caller.f1"].map(String::from).to_vec();
    assert_eq!(found, BTreeMap::from([(names(&[CALLERS]), 1), (deep, 2)]));
    assert_eq!((omitted.paths, omitted.folded.paths, omitted.folded.frames), (3, 1, 8));

    let mutual = [[vec![CALLERS], [f, f + 1, f + 2].repeat(50), vec![f + 3]].concat()];
    let (found, omitted) = shaped(&mutual, FOLDED);
    let cycle = "(3 frames repeated up to ×50)";
    let names = ["Caller.f0", cycle, "Caller.f1", "Caller.f2", "Caller.f3", "Caller.f4"];
    assert_eq!(found.into_keys().collect::<Vec<_>>(), [names]);
    assert_eq!((omitted.folded.paths, omitted.folded.frames), (1, 147));
}

#[test]
fn cycles_in_cycles_keep_both_counts() {
    let f = CALLERS + 1;
    let inner = [vec![f; 4], vec![f + 1]].concat();
    let (found, _) = shaped(&[inner.repeat(6)], FOLDED);
    // Both begin with the same function: the larger count is shown.
    let stack = ["(2 frames repeated up to ×6)", "Caller.f1", "Caller.f2"];
    assert_eq!(found.into_keys().collect::<Vec<_>>(), [stack]);
    let inner = [vec![f], vec![f + 1; 9]].concat();
    let (found, _) = shaped(&[inner.repeat(6)], FOLDED);
    let outer = "(2 frames repeated up to ×6)";
    let stack = [outer, "Caller.f1", "(repeated up to ×9)", "Caller.f2"];
    assert_eq!(found.into_keys().collect::<Vec<_>>(), [stack]);
}

#[test]
fn a_cut_stack_keeps_both_ends() {
    let stacks = [(0..100).map(|f| CALLERS + f).collect::<Vec<_>>(), vec![CALLERS; 1]];
    let (found, omitted) = shaped(&stacks, StackShape { fold: true, frames: Some(5) });
    let cut = ["Caller.f0", "Caller.f1", "(frames left out)"];
    let cut = cut.into_iter().chain(["Caller.f97", "Caller.f98", "Caller.f99"]);
    let cut: Vec<String> = cut.map(String::from).collect();
    assert_eq!(found, BTreeMap::from([(names(&[CALLERS]), 1), (cut, 1)]));
    assert_eq!((omitted.cut.paths, omitted.cut.frames), (1, 95));
}

/// 2,000 stacks of up to 20,000 frames would be 20 million if they were spelled out.
#[test]
fn deep_recursion_leaves_a_small_tree() {
    let deep = |depth: usize| [vec![CALLERS], vec![CALLERS + 1; depth], vec![CALLERS + 2]].concat();
    let stacks: Vec<Vec<Code>> = (1..=200).map(|turn| deep(100 * turn)).collect();
    let (aggregate, table) = aggregate(&stacks);
    let found = aggregate.stacks(&table, By::Function, FOLDED);
    assert_eq!((found.iter().count(), found.nodes().len()), (1, 4));
    assert_eq!(found.omitted().folded.frames, (1..=200).map(|turn| 100 * turn - 1).sum::<u64>());
}

fn stacks(functions: u64, longest: usize) -> impl Strategy<Value = Vec<Vec<Code>>> {
    let frame = (0..functions).prop_map(|f| CALLERS + f);
    prop::collection::vec(prop::collection::vec(frame, 1..longest), 1..60)
}

proptest! {
    #[test]
    fn folding_is_that_of_each_stack_and_loses_no_sample(
        stacks in prop_oneof![stacks(2, 40), stacks(3, 80), stacks(6, 12)],
    ) {
        let (found, omitted) = shaped(&stacks, FOLDED);
        let mut plain: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        let mut marked = 0;
        for (stack, samples) in &found {
            prop_assert!(!is_marker(stack.last().unwrap()), "{:?}", stack);
            let names: Vec<String> =
                stack.iter().filter(|name| !is_marker(name)).cloned().collect();
            marked += u64::from(names.len() < stack.len());
            *plain.entry(names).or_default() += samples;
        }
        prop_assert_eq!(plain, expected(&stacks));
        prop_assert_eq!(found.values().sum::<u64>(), stacks.len() as u64);
        prop_assert_eq!(marked > 0, omitted.folded.frames > 0);
        let distinct: std::collections::BTreeSet<_> = stacks.iter().collect();
        let lost = distinct.iter().map(|stack| (stack.len() - folded(stack).len()) as u64);
        prop_assert_eq!(omitted.folded.frames, lost.sum::<u64>());
    }

    #[test]
    fn without_folding_nothing_is_left_out(stacks in stacks(3, 30)) {
        let (found, omitted) = shaped(&stacks, StackShape::default());
        let mut plain: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        for stack in &stacks {
            *plain.entry(names(stack)).or_default() += 1;
        }
        prop_assert_eq!(found, plain);
        prop_assert_eq!((omitted.folded.frames, omitted.cut.frames), (0, 0));
    }

    #[test]
    fn cut_stacks_are_short_and_lose_no_sample(
        stacks in stacks(9, 40), fold in any::<bool>(), most in 2..20_usize,
    ) {
        let (found, _) = shaped(&stacks, StackShape { fold, frames: Some(most) });
        prop_assert_eq!(found.values().sum::<u64>(), stacks.len() as u64);
        for stack in found.keys() {
            let cut = stack.iter().filter(|name| *name == "(frames left out)").count();
            prop_assert!(cut <= 1 && stack.len() - cut <= most, "{:?}", stack);
            prop_assert_eq!(cut == 1 , stack.len() == most + 1);
        }
    }
}
