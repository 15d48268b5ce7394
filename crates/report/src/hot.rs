//! Hot fragments: runs of calls under which much is allocated.
//!
//! A fragment is a run of functions, each called by the one before, anywhere in a
//! stack. Hot fragments are the hierarchical heavy hitters among all fragments:
//! from the longest to the shortest, a fragment is hot if at least the threshold
//! is allocated under it and not under a longer hot one. So a hundred callers of
//! the same code yield one fragment, and a short fragment is reported only for
//! what no longer one explains. There are at most 1/threshold of them.
//!
//! The weights come from the bounded call tree ([`crate::paths`]); that of a
//! fragment is too low by at most what is missing from that tree.

use std::cmp::Reverse;

use hashbrown::HashMap;
use heaptap_trace::LocationTable;

use crate::aggregate::{Aggregate, Metric};
use crate::estimate::Sampled;
use crate::functions::FunctionTree;
use crate::rows::{By, Site};
use crate::stacks::Omitted;

/// The length of the longest fragments that are searched for.
const LONGEST: usize = 48;

/// The steps of a search. When they are used up, it goes no deeper.
const MOST_STEPS: u64 = 100_000_000;

/// A run of calls under which much is allocated.
#[derive(Clone, Debug)]
pub struct HotFragment {
    /// The functions, the innermost first.
    pub sites: Vec<Site>,
    /// For each function, the most iterations of the recursion that begins with it and
    /// is folded into it and the functions that it calls; 1 if there is none.
    pub repeats: Vec<u32>,
    /// What is allocated under it.
    pub samples: Sampled,
    /// The part that is under no longer hot fragment.
    pub own: Sampled,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct HotFragments {
    /// The fragments, the largest first.
    pub found: Vec<HotFragment>,
    /// Whether the search came to its end. If not, some may be longer than reported.
    pub complete: bool,
    /// The recursion that was folded away.
    pub omitted: Omitted,
}

/// A fragment that is heavy enough.
struct Candidate {
    sites: Vec<u32>,
    tops: Tops,
}

/// The innermost nodes of a fragment's occurrences, none below another, and their
/// weight together.
struct Tops {
    nodes: Vec<u32>,
    weight: u64,
}

/// An occurrence: the nodes of the outermost and the innermost function.
type Occurrence = (u32, u32);

struct Search<'a> {
    tree: &'a FunctionTree,
    /// The rank of each site by name: where fragments are alike, the choice does not depend on the
    /// order in which a tree has its calls.
    ranks: &'a [u32],
    least: u64,
    found: Vec<Candidate>,
    /// Steps left.
    steps: u64,
    complete: bool,
}

impl Aggregate {
    /// The hot fragments. Needs whole stacks. `threshold` is a share of all that
    /// the metric counts. With `fold`, repeated cycles of functions count as one.
    pub fn hot(
        &self,
        table: &LocationTable,
        by: By,
        metric: Metric,
        threshold: f64,
        fold: bool,
    ) -> HotFragments {
        search(&FunctionTree::new(self, table, by, metric, fold), threshold, MOST_STEPS)
    }
}

/// The hot fragments of a tree, found in at most `steps` steps.
fn search(tree: &FunctionTree, threshold: f64, steps: u64) -> HotFragments {
    let least = ((tree.weights[0] as f64 * threshold).ceil() as u64).max(1);
    let ranks = ranks(&tree.shape.names);
    let mut search =
        Search { tree, ranks: &ranks, least, found: Vec::new(), steps, complete: true };
    search.run();
    let complete = search.complete;
    let mut hot = select(tree, &ranks, search.found, least);
    hot.sort_by(|one, other| {
        (other.own.count, other.samples.count)
            .cmp(&(one.own.count, one.samples.count))
            .then_with(|| one.sites.cmp(&other.sites))
    });
    HotFragments { found: hot, complete, omitted: tree.omitted }
}

fn ranks(sites: &[Site]) -> Vec<u32> {
    let mut ordered: Vec<u32> = (0..).take(sites.len()).collect();
    ordered.sort_by_key(|&site| &sites[site as usize]);
    let mut ranks = vec![0; sites.len()];
    (0..).zip(ordered).for_each(|(rank, site)| ranks[site as usize] = rank);
    ranks
}

impl Search<'_> {
    fn run(&mut self) {
        let mut starts: HashMap<u32, Vec<Occurrence>> = HashMap::new();
        for node in 1..self.tree.shape.sites.len() as u32 {
            starts.entry(self.tree.shape.sites[node as usize]).or_default().push((node, node));
        }
        for (site, occurrences) in self.in_order(starts) {
            let tops = self.tops(&occurrences);
            if tops.weight >= self.least {
                self.grow(&mut vec![site], &occurrences, tops);
            }
        }
    }

    /// Collects a heavy fragment, and the heavy ones that extend it.
    fn grow(&mut self, sites: &mut Vec<u32>, occurrences: &[Occurrence], tops: Tops) {
        // If its caller is always the same, the fragment with that caller says more.
        if sites.len() >= LONGEST || self.has_one_caller(occurrences) {
            return;
        }
        let mut longer: HashMap<u32, Vec<Occurrence>> = HashMap::new();
        for &(first, last) in occurrences {
            for child in self.tree.shape.children(last) {
                self.steps = self.steps.saturating_sub(1);
                longer
                    .entry(self.tree.shape.sites[child as usize])
                    .or_default()
                    .push((first, child));
            }
        }
        let mut says_more = false;
        for (site, mut occurrences) in self.in_order(longer) {
            occurrences.sort_unstable_by_key(|&(_, last)| last);
            let longer = self.tops(&occurrences);
            if longer.weight < self.least {
                continue;
            }
            if self.steps == 0 {
                self.complete = false;
            } else {
                says_more |= longer.weight == tops.weight;
                sites.push(site);
                self.grow(sites, &occurrences, longer);
                sites.pop();
            }
        }
        if !says_more {
            self.found.push(Candidate { sites: sites.clone(), tops });
        }
    }

    /// The innermost nodes that are not below those of another occurrence.
    fn tops(&self, occurrences: &[Occurrence]) -> Tops {
        let (mut nodes, mut weight, mut end) = (Vec::new(), 0_u64, 0);
        for &(_, last) in occurrences {
            if last >= end {
                end = self.tree.shape.ends[last as usize];
                weight = weight.saturating_add(self.tree.weights[last as usize]);
                nodes.push(last);
            }
        }
        Tops { nodes, weight }
    }

    /// Ordered by site, so that a search that ends early always ends at the same point.
    fn in_order(&self, occurrences: HashMap<u32, Vec<Occurrence>>) -> Vec<(u32, Vec<Occurrence>)> {
        let mut ordered: Vec<_> = occurrences.into_iter().collect();
        ordered.sort_unstable_by_key(|&(site, _)| self.ranks[site as usize]);
        ordered
    }

    fn has_one_caller(&self, occurrences: &[Occurrence]) -> bool {
        let caller = |&(first, _): &Occurrence| {
            let parent = self.tree.shape.parents[first as usize];
            (parent != 0).then(|| self.tree.shape.sites[parent as usize])
        };
        let mut callers = occurrences.iter().map(caller);
        match callers.next() {
            Some(Some(one)) => callers.all(|caller| caller == Some(one)),
            _ => false,
        }
    }
}

/// Chooses, from the longest to the shortest, those that are heavy by themselves.
fn select(
    tree: &FunctionTree,
    ranks: &[u32],
    mut candidates: Vec<Candidate>,
    least: u64,
) -> Vec<HotFragment> {
    let ranks = |candidate: &Candidate| -> Vec<u32> {
        candidate.sites.iter().map(|&site| ranks[site as usize]).collect()
    };
    candidates.sort_by_cached_key(|candidate| {
        (Reverse((candidate.sites.len(), candidate.tops.weight)), ranks(candidate))
    });
    let (mut open, mut open_variances) = (tree.weights.clone(), tree.variances.clone());
    let mut hot = Vec::new();
    for Candidate { sites, tops } in candidates {
        let count = sum_of(&open, &tops);
        if count < least {
            continue;
        }
        let own = Sampled { count, variance: sum_of(&open_variances, &tops) };
        take(tree, &tops, &mut open);
        take(tree, &tops, &mut open_variances);
        let repeats = repeats(tree, &tops, sites.len());
        let sites = sites.iter().rev().map(|&site| tree.shape.names[site as usize].clone());
        let samples = Sampled { count: tops.weight, variance: sum_of(&tree.variances, &tops) };
        hot.push(HotFragment { sites: sites.collect(), repeats, samples, own });
    }
    hot
}

/// What these nodes have together.
fn sum_of(weights: &[u64], tops: &Tops) -> u64 {
    let of_node = |&top: &u32| weights.get(top as usize).copied().unwrap_or(0);
    tops.nodes.iter().map(of_node).fold(0, u64::saturating_add)
}

/// Takes what these nodes have from them and from all above them. There is nothing to take if the
/// trace has no variances.
fn take(tree: &FunctionTree, tops: &Tops, open: &mut [u64]) {
    if open.is_empty() {
        return;
    }
    for &top in &tops.nodes {
        let taken = open[top as usize];
        let mut above = tree.shape.parents[top as usize];
        loop {
            open[above as usize] = open[above as usize].saturating_sub(taken);
            if above == 0 {
                break;
            }
            above = tree.shape.parents[above as usize];
        }
        open[top as usize..tree.shape.ends[top as usize] as usize].fill(0);
    }
}

/// The most iterations at each function of a fragment, the innermost first.
fn repeats(tree: &FunctionTree, tops: &Tops, length: usize) -> Vec<u32> {
    let mut most = vec![1; length];
    for &top in &tops.nodes {
        let mut node = top;
        for most in &mut most {
            *most = tree.shape.repeats[node as usize].max(*most);
            node = tree.shape.parents[node as usize];
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use heaptap_trace::{Allocation, Backtrace, Event, EventKind, Source};

    use super::*;
    use crate::aggregator::Aggregator;
    use crate::aggregator::tests::info;
    use crate::depth::Depth;
    use crate::options::Options;

    #[test]
    fn a_search_that_ends_early_says_so() {
        let options = Options { depth: Depth::Whole, ..Options::default() };
        let mut aggregator = Aggregator::new(&info(1.0), options);
        let table = LocationTable::default();
        for id in 0..100 {
            let frames = [1, 2, 3, 4];
            let backtrace = Backtrace { frames: &frames, common_prefix: 0, new: &frames };
            let source = Source::Minor;
            let kind =
                EventKind::Alloc(Allocation { id, length: 1, samples: 2, source, backtrace });
            aggregator.event(&Event { time: id, domain: 0, kind }, &table);
        }
        let aggregate = aggregator.finish();
        let tree = FunctionTree::new(&aggregate, &table, By::Location, Metric::Allocated, true);
        let (short, whole) = (search(&tree, 0.5, 2), search(&tree, 0.5, 100));
        assert!(!short.complete && whole.complete);
        assert_eq!(whole.found[0].sites.len(), 4);
        assert!(short.found[0].sites.len() < 4);
        assert_eq!(short.found[0].samples.count, 200);
    }
}
