//! Hot fragments: runs of calls that much is allocated under.
//!
//! A fragment is a run of functions, each called by the one before, anywhere in
//! a stack. Those are hierarchical heavy hitters over all fragments: the longest
//! come first, and a fragment is hot if what is allocated under it, and not
//! under a longer hot one, is at least the threshold. So of a hundred callers
//! that all lead to the same place one fragment is told, and a short fragment
//! only for what no longer one explains. There are at most 1/threshold of them.
//!
//! The stream is summed up in the bounded call tree ([`crate::paths`]); a
//! fragment's weight is short by at most what that tree is.

use hashbrown::HashMap;
use heaptap_trace::LocationTable;

use crate::aggregate::{Aggregate, Metric};
use crate::functions::FunctionTree;
use crate::rows::{By, Site};

/// Longer fragments are not looked for.
const LONGEST: usize = 48;

/// How many steps the search may take; then it goes no deeper.
const MOST_STEPS: u64 = 100_000_000;

/// A run of calls under which much is allocated.
#[derive(Clone, Debug)]
pub struct Hot {
    /// The functions, the innermost first.
    pub sites: Vec<Site>,
    /// Samples allocated under it.
    pub samples: u64,
    /// Those that no longer hot fragment has.
    pub own: u64,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct HotFragments {
    /// The fragments, the largest first.
    pub found: Vec<Hot>,
    /// Whether all were looked for. If not, some may go on further than is told.
    pub complete: bool,
}

/// A fragment that is heavy enough.
struct Candidate {
    sites: Vec<u32>,
    /// The nodes of its innermost function, none below another.
    tops: Vec<u32>,
    weight: u64,
}

/// An occurrence: the nodes of the outermost and the innermost function.
type Occurrence = (u32, u32);

struct Search<'a> {
    tree: &'a FunctionTree,
    least: u64,
    found: Vec<Candidate>,
    /// Steps left.
    steps: u64,
    complete: bool,
}

impl Aggregate {
    /// The hot fragments. Needs whole stacks. `threshold` is a share of all that
    /// the metric counts.
    pub fn hot(
        &self,
        table: &LocationTable,
        by: By,
        metric: Metric,
        threshold: f64,
    ) -> HotFragments {
        self.hot_within(table, by, metric, (threshold, MOST_STEPS))
    }

    fn hot_within(
        &self,
        table: &LocationTable,
        by: By,
        metric: Metric,
        (threshold, steps): (f64, u64),
    ) -> HotFragments {
        let tree = FunctionTree::new(self, table, by, metric);
        let least = ((tree.weights[0] as f64 * threshold).ceil() as u64).max(1);
        let mut search = Search { tree: &tree, least, found: Vec::new(), steps, complete: true };
        search.run();
        let complete = search.complete;
        let mut hot = select(&tree, search.found, least);
        hot.sort_by(|one, other| {
            (other.own, other.samples)
                .cmp(&(one.own, one.samples))
                .then_with(|| one.sites.cmp(&other.sites))
        });
        HotFragments { found: hot, complete }
    }
}

impl Search<'_> {
    fn run(&mut self) {
        let mut starts: HashMap<u32, Vec<Occurrence>> = HashMap::new();
        for node in 1..self.tree.sites.len() as u32 {
            starts.entry(self.tree.sites[node as usize]).or_default().push((node, node));
        }
        for (site, occurrences) in in_order(starts) {
            let (tops, weight) = self.tops(&occurrences);
            if weight >= self.least {
                self.grow(&mut vec![site], &occurrences, (tops, weight));
            }
        }
    }

    /// Takes a heavy fragment, and the heavy ones that go on from it.
    fn grow(
        &mut self,
        sites: &mut Vec<u32>,
        occurrences: &[Occurrence],
        (tops, weight): (Vec<u32>, u64),
    ) {
        // Always called by the same: the fragment with that caller says more.
        if sites.len() >= LONGEST || self.has_one_caller(occurrences) {
            return;
        }
        let mut longer: HashMap<u32, Vec<Occurrence>> = HashMap::new();
        for &(first, last) in occurrences {
            for child in self.tree.children(last) {
                self.steps = self.steps.saturating_sub(1);
                longer.entry(self.tree.sites[child as usize]).or_default().push((first, child));
            }
        }
        let mut says_more = false;
        for (site, mut occurrences) in in_order(longer) {
            occurrences.sort_unstable_by_key(|&(_, last)| last);
            let (tops, longer_weight) = self.tops(&occurrences);
            if longer_weight < self.least {
                continue;
            }
            if self.steps == 0 {
                self.complete = false;
            } else {
                says_more |= longer_weight == weight;
                sites.push(site);
                self.grow(sites, &occurrences, (tops, longer_weight));
                sites.pop();
            }
        }
        if !says_more {
            self.found.push(Candidate { sites: sites.clone(), tops, weight });
        }
    }

    /// The nodes that no other occurrence is above, and what they weigh.
    fn tops(&self, occurrences: &[Occurrence]) -> (Vec<u32>, u64) {
        let (mut tops, mut weight, mut end) = (Vec::new(), 0_u64, 0);
        for &(_, last) in occurrences {
            if last >= end {
                end = self.tree.ends[last as usize];
                weight = weight.saturating_add(self.tree.weights[last as usize]);
                tops.push(last);
            }
        }
        (tops, weight)
    }

    fn has_one_caller(&self, occurrences: &[Occurrence]) -> bool {
        let caller = |&(first, _): &Occurrence| {
            let parent = self.tree.parents[first as usize];
            (parent != 0).then(|| self.tree.sites[parent as usize])
        };
        let mut callers = occurrences.iter().map(caller);
        match callers.next() {
            Some(Some(one)) => callers.all(|caller| caller == Some(one)),
            _ => false,
        }
    }
}

/// By site: where the search ends early, it always ends at the same place.
fn in_order(occurrences: HashMap<u32, Vec<Occurrence>>) -> Vec<(u32, Vec<Occurrence>)> {
    let mut ordered: Vec<_> = occurrences.into_iter().collect();
    ordered.sort_unstable_by_key(|&(site, _)| site);
    ordered
}

/// From the longest to the shortest: those that are heavy by themselves.
fn select(tree: &FunctionTree, mut candidates: Vec<Candidate>, least: u64) -> Vec<Hot> {
    candidates.sort_by(|one, other| {
        (other.sites.len(), other.weight, &one.sites).cmp(&(
            one.sites.len(),
            one.weight,
            &other.sites,
        ))
    });
    let mut open = tree.weights.clone();
    let mut hot = Vec::new();
    for Candidate { sites, tops, weight } in candidates {
        let own = tops.iter().fold(0_u64, |sum, &top| sum.saturating_add(open[top as usize]));
        if own < least {
            continue;
        }
        for &top in &tops {
            let taken = open[top as usize];
            let mut above = tree.parents[top as usize];
            loop {
                open[above as usize] = open[above as usize].saturating_sub(taken);
                if above == 0 {
                    break;
                }
                above = tree.parents[above as usize];
            }
            open[top as usize..tree.ends[top as usize] as usize].fill(0);
        }
        let sites = sites.iter().rev().map(|&site| tree.names[site as usize].clone());
        hot.push(Hot { sites: sites.collect(), samples: weight, own });
    }
    hot
}

#[cfg(test)]
mod tests {
    use heaptap_trace::{Allocation, Backtrace, Event, EventKind, Source, TraceInfo};

    use super::*;
    use crate::aggregator::{Aggregator, Depth, Options};

    #[test]
    fn a_search_that_ends_early_says_so() {
        let info = TraceInfo {
            sample_rate: 1.0,
            word_size: 64,
            executable: Vec::new(),
            host: Vec::new(),
            runtime_params: Vec::new(),
            pid: 1,
            context: Vec::new(),
            start_time: 0,
            domain: 0,
        };
        let options = Options { depth: Depth::Whole, ..Options::default() };
        let mut aggregator = Aggregator::new(&info, options);
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
        let found =
            |steps| aggregate.hot_within(&table, By::Location, Metric::Allocated, (0.5, steps));
        let (short, whole) = (found(2), found(100));
        assert!(!short.complete && whole.complete);
        assert_eq!(whole.found[0].sites.len(), 4);
        assert!(short.found[0].sites.len() < 4);
        assert_eq!(short.found[0].samples, 200);
    }
}
