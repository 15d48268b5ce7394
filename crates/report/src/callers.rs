//! The callers of sites.

use std::rc::Rc;

use hashbrown::HashMap;
use heaptap_trace::LocationTable;

use crate::aggregate::{Aggregate, Frame, Metric};
use crate::estimate::Sampled;
use crate::library_runs::library_parts;
use crate::paths::{Node, ROOT};
use crate::rows::{Grouping, Site, Sites};
use crate::site_nodes::SiteNodes;

/// Numbers sites, and remembers those of each frame.
pub(crate) struct SiteNumbers<'a> {
    names: Sites<'a>,
    pub(crate) sites: Vec<Site>,
    numbers: HashMap<Site, u32>,
    frames: HashMap<Frame, Rc<[u32]>>,
    /// Which of the sites of a frame stands for it.
    positions: HashMap<Frame, usize>,
}

impl<'a> SiteNumbers<'a> {
    pub(crate) fn new(table: &'a LocationTable, grouping: impl Into<Grouping>) -> Self {
        SiteNumbers {
            names: Sites::new(table, grouping),
            sites: Vec::new(),
            numbers: HashMap::new(),
            frames: HashMap::new(),
            positions: HashMap::new(),
        }
    }

    /// The sites of a frame, the innermost first.
    pub(crate) fn of(&mut self, frame: Frame) -> Rc<[u32]> {
        if let Some(known) = self.frames.get(&frame) {
            return Rc::clone(known);
        }
        let sites: Rc<[u32]> =
            self.names.inlined(frame).into_iter().map(|site| self.number(site)).collect();
        self.frames.insert(frame, Rc::clone(&sites));
        sites
    }

    /// The site of the paths that are counted at a frame.
    pub(crate) fn site_of(&mut self, frame: Frame) -> Option<u32> {
        let at = self.position(frame);
        self.of(frame).get(at).copied()
    }

    /// Which of the sites of a frame that is.
    pub(crate) fn position(&mut self, frame: Frame) -> usize {
        *self.positions.entry(frame).or_insert_with(|| self.names.position(frame))
    }

    pub(crate) fn number(&mut self, site: Site) -> u32 {
        let sites = &mut self.sites;
        *self.numbers.entry(site).or_insert_with_key(|site| {
            sites.push(site.clone());
            sites.len() as u32 - 1
        })
    }
}

/// A caller, and its callers in turn.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The caller.
    pub site: Site,
    /// Whether it is library code, and stands for all library code between two frames of own code:
    /// it is the function that own code calls.
    pub library: bool,
    /// What is under this caller.
    pub samples: Sampled,
    /// Its callers, the largest first.
    pub callers: Vec<Caller>,
}

#[derive(Default)]
struct Branch {
    samples: Sampled,
    callers: HashMap<Step, Branch>,
}

/// A call on the way outwards.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Step {
    /// The number of the caller's site.
    site: u32,
    library: bool,
}

impl Branch {
    fn named(self, sites: &[Site]) -> Vec<Caller> {
        let mut callers: Vec<Caller> = self
            .callers
            .into_iter()
            .map(|(Step { site, library }, branch)| Caller {
                site: sites[site as usize].clone(),
                library,
                samples: branch.samples,
                callers: branch.named(sites),
            })
            .collect();
        callers.sort_by(|one, other| {
            let by_samples = other.samples.count.cmp(&one.samples.count);
            by_samples
                .then_with(|| one.site.cmp(&other.site))
                .then_with(|| one.library.cmp(&other.library))
        });
        callers
    }
}

/// The steps outwards from the sites of paths.
struct Outwards<'a> {
    aggregate: &'a Aggregate,
    table: &'a LocationTable,
    numbers: SiteNumbers<'a>,
    nodes: SiteNodes,
    /// For each function of a frame, whether it is library code.
    library: HashMap<Frame, Rc<[bool]>>,
}

impl<'a> Outwards<'a> {
    fn new(aggregate: &'a Aggregate, table: &'a LocationTable, grouping: Grouping) -> Self {
        Outwards {
            aggregate,
            table,
            numbers: SiteNumbers::new(table, grouping),
            nodes: aggregate.site_nodes(table, grouping.site),
            library: HashMap::new(),
        }
    }

    fn library(&mut self, frame: Frame) -> Rc<[bool]> {
        let parts = || library_parts(frame, self.table).into();
        Rc::clone(self.library.entry(frame).or_insert_with(parts))
    }

    /// The callers of the site of a path that ends at `leaf`, up to `levels` of them. If the site
    /// is own code, what library code is between two frames of own code is one step.
    fn steps(&mut self, leaf: Node, levels: usize, steps: &mut Vec<Step>) {
        steps.clear();
        let folds = self.nodes.own_above(leaf).is_some();
        let mut node = self.nodes.of(leaf);
        let mut inside = self.numbers.position(self.aggregate.frame(node)) + 1;
        while node != ROOT {
            let frame = self.aggregate.frame(node);
            let sites = self.numbers.of(frame);
            let library = if folds { Some(self.library(frame)) } else { None };
            for at in inside..sites.len() {
                // A frame of which nothing is known names no run.
                let is_library = match &library {
                    Some(parts) if parts.is_empty() && matches!(frame, Frame::Code(_)) => continue,
                    Some(parts) => parts.get(at).copied().unwrap_or(false),
                    None => false,
                };
                let step = Step { site: sites[at], library: is_library };
                let is_full = steps.len() > levels;
                match steps.last_mut() {
                    Some(last) if last.library && is_library => *last = step,
                    Some(last) if *last == step => {}
                    _ if is_full => return,
                    _ => steps.push(step),
                }
            }
            (node, inside) = (self.aggregate.paths.parent(node), 0);
        }
    }
}

impl Aggregate {
    /// The callers of each of these sites, up to `levels` levels. Needs
    /// [`crate::Depth::Whole`]. Direct recursion counts as one level.
    pub fn callers(
        &self,
        table: &LocationTable,
        grouping: impl Into<Grouping>,
        metric: Metric,
        of: &[Site],
        levels: usize,
    ) -> Vec<Vec<Caller>> {
        let mut outwards = Outwards::new(self, table, grouping.into());
        let numbers = &mut outwards.numbers;
        let wanted: HashMap<u32, usize> =
            of.iter().enumerate().map(|(at, site)| (numbers.number(site.clone()), at)).collect();
        let mut trees: Vec<Branch> = of.iter().map(|_| Branch::default()).collect();
        let mut steps = Vec::new();
        for (path, counts) in self.counts.iter().enumerate() {
            let samples = metric.of(&counts);
            let leaf = self.paths.node(path as u32);
            let site = outwards.numbers.site_of(self.frame(outwards.nodes.of(leaf)));
            let Some(&at) = site.and_then(|number| wanted.get(&number)) else { continue };
            if samples.count == 0 {
                continue;
            }
            outwards.steps(leaf, levels, &mut steps);
            let mut branch = &mut trees[at];
            for &step in steps.iter().skip_while(|step| Some(step.site) == site).take(levels) {
                branch = branch.callers.entry(step).or_default();
                branch.samples = branch.samples.plus(samples);
            }
        }
        trees.into_iter().map(|tree| tree.named(&outwards.numbers.sites)).collect()
    }
}
