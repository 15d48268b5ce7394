//! Hot fragments, against a plain count over all stacks.

use std::collections::HashSet;

use heaptap_report::rows::By;
use heaptap_report::{Depth, HotFragment, Metric, Options};
use heaptap_trace::Code;
use proptest::prelude::*;

use crate::made::{CALLERS, Writer, folded, gathered};

fn hot(stacks: &[Vec<Code>], threshold: f64) -> Vec<HotFragment> {
    let mut writer = Writer::new(1.0);
    for (at, stack) in stacks.iter().enumerate() {
        writer.alloc(at as u64, 0, 1, stack);
    }
    let options = Options { depth: Depth::Whole, ..Options::default() };
    let (aggregate, table) = gathered(&writer.finish(), options);
    aggregate.hot(&table, By::Function, Metric::Allocated, threshold, true).found
}

/// The names of a stack's functions, the innermost first, recursion folded.
fn names(stack: &[Code]) -> Vec<String> {
    folded(stack).iter().rev().map(|code| format!("Caller.f{}", code - CALLERS)).collect()
}

fn names_of(hot: &HotFragment) -> Vec<String> {
    hot.sites.iter().map(|site| site.name.clone()).collect()
}

#[test]
fn a_shared_middle_is_found_though_no_leaf_and_no_caller_is_hot() {
    // Many callers lead through 1 → 2 → 3 to many leaves.
    let stacks: Vec<Vec<Code>> = (0..1000)
        .map(|turn| [100 + turn % 97, 1, 2, 3, 300 + turn % 89].map(|f| CALLERS + f).to_vec())
        .collect();
    let found = hot(&stacks, 0.05);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(names_of(&found[0]), ["Caller.f3", "Caller.f2", "Caller.f1"]);
    assert_eq!((found[0].samples.count, found[0].own.count), (1000, 1000));
}

#[test]
fn a_short_fragment_is_reported_for_what_longer_ones_do_not_explain() {
    let long = [1, 2, 3].map(|f| CALLERS + f).to_vec();
    let stacks: Vec<Vec<Code>> = (0..1000)
        .map(|turn| match turn % 10 {
            0..5 => long.clone(),
            _ => [500 + turn % 400, 2, 3].map(|f| CALLERS + f).to_vec(),
        })
        .collect();
    let found: Vec<(Vec<String>, u64, u64)> = hot(&stacks, 0.1)
        .iter()
        .map(|hot| (names_of(hot), hot.samples.count, hot.own.count))
        .collect();
    let name = |numbers: &[u64]| numbers.iter().map(|n| format!("Caller.f{n}")).collect::<Vec<_>>();
    assert_eq!(found, [(name(&[3, 2]), 1000, 500), (name(&[3, 2, 1]), 500, 500)]);
}

#[test]
fn deep_recursion_is_one_function() {
    let deep: Vec<Code> = [CALLERS + 1].into_iter().chain([CALLERS + 2; 5000]).collect();
    let found = hot(&vec![deep; 20], 0.5);
    assert_eq!(names_of(&found[0]), ["Caller.f2", "Caller.f1"]);
    assert_eq!(found[0].repeats, [5000, 1]);
}

#[test]
fn deep_mutual_recursion_is_one_cycle() {
    let cycles = [CALLERS + 2, CALLERS + 3, CALLERS + 4].repeat(5000);
    let deep: Vec<Code> = [CALLERS + 1].into_iter().chain(cycles).collect();
    let found = hot(&vec![deep; 20], 0.5);
    assert_eq!(names_of(&found[0]), ["Caller.f4", "Caller.f3", "Caller.f2", "Caller.f1"]);
    assert_eq!(found[0].repeats, [1, 1, 5000, 1]);
}

proptest! {
    #[test]
    fn weights_are_those_of_a_plain_count(
        stacks in prop::collection::vec(prop::collection::vec(0..6_u64, 1..7), 1..120),
        percent in 5..40_u64,
    ) {
        let stacks: Vec<Vec<Code>> =
            stacks.into_iter().map(|stack| stack.into_iter().map(|f| CALLERS + f).collect()).collect();
        let threshold = percent as f64 / 100.0;
        let found = hot(&stacks, threshold);
        let least = (stacks.len() as f64 * threshold).ceil() as u64;
        let contains = |stack: &Vec<Code>, fragment: &[String]| {
            names(stack).windows(fragment.len()).any(|run| run == fragment)
        };
        let mut seen = HashSet::new();
        for hot in &found {
            let fragment = names_of(hot);
            let count = stacks.iter().filter(|stack| contains(stack, &fragment)).count();
            prop_assert_eq!(hot.samples.count, count as u64, "{:?}", fragment);
            prop_assert!(hot.own.count >= least && hot.own.count <= hot.samples.count);
            prop_assert!(seen.insert(fragment), "reported twice");
        }
        let own: u64 = found.iter().map(|hot| hot.own.count).sum();
        prop_assert!(own <= stacks.len() as u64);
        // What is in no fragment has no function that is hot by itself.
        for function in 0..6_u64 {
            let name = vec![format!("Caller.f{function}")];
            let left = stacks.iter().filter(|stack| {
                contains(stack, &name) && !found.iter().any(|hot| contains(stack, &names_of(hot)))
            });
            prop_assert!((left.count() as u64) < least, "{:?} is missing", name);
        }
    }
}
