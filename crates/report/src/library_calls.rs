//! The library functions through which sites of own code allocate.

use hashbrown::HashMap;
use heaptap_trace::LocationTable;

use crate::aggregate::{Aggregate, Frame, Metric};
use crate::callers::SiteNumbers;
use crate::estimate::Sampled;
use crate::own_code::SiteFrame;
use crate::paths::Node;
use crate::rows::{By, Grouping, Site};

/// A library function that a site calls, and in which blocks are allocated.
#[derive(Clone, Debug)]
pub struct LibraryCall {
    /// The function that own code calls; the one that allocates may be further inside.
    pub site: Site,
    /// What is allocated in it.
    pub samples: Sampled,
}

impl Aggregate {
    /// The library functions through which each of these sites of own code allocates, the
    /// largest first. Needs [`crate::Depth::Whole`].
    pub fn library_calls(
        &self,
        table: &LocationTable,
        by: By,
        metric: Metric,
        of: &[Site],
    ) -> Vec<Vec<LibraryCall>> {
        let mut numbers = SiteNumbers::new(table, Grouping { by, site: SiteFrame::Own });
        let nodes = self.site_nodes(table, SiteFrame::Own);
        let wanted: HashMap<u32, usize> =
            of.iter().enumerate().map(|(at, site)| (numbers.number(site.clone()), at)).collect();
        let mut sums: Vec<HashMap<u32, Sampled>> = vec![HashMap::new(); of.len()];
        for (path, counts) in self.counts.iter().enumerate() {
            let (leaf, samples) = (self.paths.node(path as u32), metric.of(&counts));
            let Some(own) = nodes.own_above(leaf).filter(|_| samples.count > 0) else { continue };
            let site = numbers.site_of(self.frame(own));
            let Some(&at) = site.and_then(|number| wanted.get(&number)) else { continue };
            if let Some(called) = self.called(table, &mut numbers, (own, leaf)) {
                let sum = sums[at].entry(called).or_default();
                *sum = sum.plus(samples);
            }
        }
        let calls = |sums: HashMap<u32, Sampled>| {
            let call = |(number, samples)| LibraryCall {
                site: numbers.sites[number as usize].clone(),
                samples,
            };
            let mut calls: Vec<LibraryCall> = sums.into_iter().map(call).collect();
            calls.sort_by(|one, other| {
                other.samples.count.cmp(&one.samples.count).then_with(|| one.site.cmp(&other.site))
            });
            calls
        };
        sums.into_iter().map(calls).collect()
    }

    /// The function that the site at `own` calls on the way to `leaf`; `None` if it allocates
    /// itself.
    fn called(
        &self,
        table: &LocationTable,
        numbers: &mut SiteNumbers<'_>,
        (own, leaf): (Node, Node),
    ) -> Option<u32> {
        let frame = self.frame(own);
        if let Some(inlined) = numbers.position(frame).checked_sub(1) {
            return numbers.of(frame).get(inlined).copied();
        }
        let up = |&node: &Node| Some(self.paths.parent(node));
        let inside = std::iter::successors(Some(leaf), up).take_while(|&node| node != own);
        // Stubs that the compiler made have no name.
        let is_named = |&node: &Node| match self.frame(node) {
            Frame::Code(code) => table.get(code).is_some_and(|locations| !locations.is_empty()),
            _ => false,
        };
        numbers.of(self.frame(inside.filter(is_named).last()?)).last().copied()
    }
}
