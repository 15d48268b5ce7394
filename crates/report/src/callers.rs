//! The callers of sites.

use std::rc::Rc;

use hashbrown::HashMap;
use heaptap_trace::LocationTable;

use crate::aggregate::{Aggregate, Frame, Metric};
use crate::rows::{By, Site, Sites};

/// Numbers sites, and remembers those of each frame.
pub(crate) struct SiteNumbers<'a> {
    names: Sites<'a>,
    pub(crate) sites: Vec<Site>,
    numbers: HashMap<Site, u32>,
    frames: HashMap<Frame, Rc<[u32]>>,
}

impl<'a> SiteNumbers<'a> {
    pub(crate) fn new(table: &'a LocationTable, by: By) -> Self {
        SiteNumbers {
            names: Sites::new(table, by),
            sites: Vec::new(),
            numbers: HashMap::new(),
            frames: HashMap::new(),
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
    /// Samples of the metric under this caller.
    pub samples: u64,
    /// Its callers, the largest first.
    pub callers: Vec<Caller>,
}

#[derive(Default)]
struct Node {
    samples: u64,
    callers: HashMap<u32, Node>,
}

impl Node {
    fn named(self, sites: &[Site]) -> Vec<Caller> {
        let mut callers: Vec<Caller> = self
            .callers
            .into_iter()
            .map(|(number, node)| Caller {
                site: sites[number as usize].clone(),
                samples: node.samples,
                callers: node.named(sites),
            })
            .collect();
        callers.sort_by(|one, other| {
            other.samples.cmp(&one.samples).then_with(|| one.site.cmp(&other.site))
        });
        callers
    }
}

impl Aggregate {
    /// The callers of each of these sites, up to `levels` levels. Needs
    /// [`crate::Depth::Whole`]. Direct recursion counts as one level.
    pub fn callers(
        &self,
        table: &LocationTable,
        by: By,
        metric: Metric,
        of: &[Site],
        levels: usize,
    ) -> Vec<Vec<Caller>> {
        let mut numbers = SiteNumbers::new(table, by);
        let wanted: HashMap<u32, usize> =
            of.iter().enumerate().map(|(at, site)| (numbers.number(site.clone()), at)).collect();
        let mut trees: Vec<Node> = of.iter().map(|_| Node::default()).collect();
        for (path, counts) in self.paths() {
            let samples = metric.samples(counts);
            let innermost = numbers.of(path.innermost()).first().copied();
            let Some(&at) = innermost.and_then(|number| wanted.get(&number)) else { continue };
            if samples == 0 {
                continue;
            }
            let mut node = &mut trees[at];
            let (mut last, mut level) = (innermost, 0);
            'path: for frame in path.frames() {
                for &number in &*numbers.of(frame) {
                    if last == Some(number) {
                        continue;
                    }
                    if level == levels {
                        break 'path;
                    }
                    node = node.callers.entry(number).or_default();
                    node.samples = node.samples.saturating_add(samples);
                    (last, level) = (Some(number), level + 1);
                }
            }
        }
        trees.into_iter().map(|tree| tree.named(&numbers.sites)).collect()
    }
}
