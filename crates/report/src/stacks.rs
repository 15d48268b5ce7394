//! Call paths with their sites in place of frames: what exporters write.
//!
//! They are made one at a time, so that a writer needs no more memory than the
//! tree does.

use std::rc::Rc;

use hashbrown::HashMap;
use heaptap_trace::LocationTable;

use crate::aggregate::{Aggregate, Frame, Metric};
use crate::callers::SiteNumbers;
use crate::counts::Counts;
use crate::functions::{FunctionTree, Recursion};
use crate::rows::{By, Site};

/// The call paths of an aggregate.
pub struct Stacks<'a> {
    aggregate: &'a Aggregate,
    sites: Vec<Site>,
    frames: HashMap<Frame, Rc<[u32]>>,
}

impl Aggregate {
    /// All call paths, inlined calls spread out. Needs whole stacks.
    pub fn stacks(&self, table: &LocationTable, by: By) -> Stacks<'_> {
        let mut numbers = SiteNumbers::new(table, by);
        for node in 1..self.paths.len() as u32 {
            numbers.of(self.frame(node));
        }
        let SiteNumbers { sites, frames, .. } = numbers;
        Stacks { aggregate: self, sites, frames }
    }

    /// Shows every different stack of functions, the outermost first, with the
    /// samples of a metric at its end: stacks that differ in lines only are one.
    pub fn each_stack_of_functions<E>(
        &self,
        table: &LocationTable,
        metric: Metric,
        mut visit: impl FnMut(&[&Site], u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let tree = FunctionTree::new(self, table, By::Function, metric, Recursion::Spread);
        let mut stack: Vec<(u32, &Site)> = Vec::new();
        let mut sites: Vec<&Site> = Vec::new();
        for node in 1..tree.sites.len() as u32 {
            while stack.last().is_some_and(|&(end, _)| end <= node) {
                stack.pop();
            }
            stack.push((tree.ends[node as usize], &tree.names[tree.sites[node as usize] as usize]));
            let own = tree.own(node);
            if own > 0 {
                sites.clear();
                sites.extend(stack.iter().map(|&(_, site)| site));
                visit(&sites, own)?;
            }
        }
        Ok(())
    }
}

impl Stacks<'_> {
    /// The sites that occur.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// Every path: the numbers of its sites, the innermost first, and its counts.
    pub fn iter(&self) -> impl Iterator<Item = (Vec<u32>, &Counts)> {
        self.aggregate.paths().map(|(path, counts)| {
            let sites = path.frames().filter_map(|frame| self.frames.get(&frame));
            (sites.flat_map(|sites| sites.iter().copied()).collect(), counts)
        })
    }
}
