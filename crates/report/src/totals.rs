//! The totals of sites: all that is allocated while a site is anywhere on the stack, whatever it
//! calls. Recursion counts once.
//!
//! Where a site occurs first on the way inwards depends on the calls of a trace alone, not on what is
//! counted of them. So that is found once, and serves all metrics and all selections from a
//! table of blocks.

use hashbrown::HashMap;
use heaptap_trace::LocationTable;

use crate::aggregate::{Aggregate, Frame, Metric};
use crate::counts::{Counts, Tallies};
use crate::estimate::{Estimate, Sampled};
use crate::library_runs::library_parts;
use crate::paths::{Node, ROOT};
use crate::rows::{By, Site, Sites};

/// The nodes of a call tree at which a site occurs and above which it does not, for many sites.
pub struct Occurrences {
    /// How many sites there are.
    sites: usize,
    /// Nodes with the number of a site.
    first: Vec<(Node, u32)>,
}

/// Every site of a trace that is on any stack, with its [`Occurrences`].
pub struct StackSites {
    /// The sites by number.
    pub sites: Vec<Site>,
    /// For each site, whether it is the program's own code.
    pub own: Vec<bool>,
    /// Where they occur.
    pub occurrences: Occurrences,
}

/// A source file and its lines as sites, with their [`Occurrences`].
pub struct FileLines {
    /// The lines. The number of the first is 1: 0 is the whole file.
    pub lines: Vec<u32>,
    /// Where they occur.
    pub occurrences: Occurrences,
}

/// What one of these sites has in total.
#[derive(Clone, Copy, Debug, Default)]
pub struct SiteTotal {
    /// What it has of the metric.
    pub samples: Sampled,
    /// Of these, what was carried over from one file to the next.
    carried: Sampled,
}

impl SiteTotal {
    /// Samples of which none were carried over.
    pub fn of_samples(samples: Sampled) -> SiteTotal {
        SiteTotal { samples, carried: Sampled::default() }
    }
}

impl StackSites {
    /// Those of rows that are frames. Needs [`crate::Depth::Whole`].
    pub fn new(whole: &Aggregate, table: &LocationTable, by: By) -> StackSites {
        let names = Sites::new(table, by);
        let (mut sites, mut own) = (Vec::new(), Vec::new());
        let mut numbers: HashMap<Site, u32> = HashMap::new();
        let mut of_frames: HashMap<Frame, Vec<u32>> = HashMap::new();
        for node in 1..whole.paths.len() as Node {
            let frame = whole.frame(node);
            of_frames.entry(frame).or_insert_with(|| {
                let library = library_parts(frame, table);
                let number = |(at, site): (usize, Site)| {
                    let number = *numbers.entry(site).or_insert_with_key(|site| {
                        sites.push(site.clone());
                        own.push(false);
                        sites.len() as u32 - 1
                    });
                    own[number as usize] |= library.get(at) == Some(&false);
                    number
                };
                names.inlined(frame).into_iter().enumerate().map(number).collect()
            });
        }
        let occurrences = Occurrences::new(whole, sites.len(), &of_frames);
        StackSites { sites, own, occurrences }
    }
}

impl FileLines {
    /// Those of a file. Needs [`crate::Depth::Whole`].
    pub fn new(whole: &Aggregate, table: &LocationTable, file: &str) -> FileLines {
        let mut lines = Vec::new();
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        let mut of_frames: HashMap<Frame, Vec<u32>> = HashMap::new();
        for code in whole.codes() {
            let number = |line| {
                *numbers.entry(line).or_insert_with(|| {
                    lines.push(line);
                    lines.len() as u32
                })
            };
            let inside = table.resolve(code).filter(|location| location.file == file.as_bytes());
            let mut of_frame: Vec<u32> = inside.map(|location| location.line).map(number).collect();
            if !of_frame.is_empty() {
                of_frame.push(0);
                of_frames.insert(Frame::Code(code), of_frame);
            }
        }
        let occurrences = Occurrences::new(whole, lines.len() + 1, &of_frames);
        FileLines { lines, occurrences }
    }
}

impl Occurrences {
    /// `of_frames`: the sites of each frame that has any.
    fn new(whole: &Aggregate, sites: usize, of_frames: &HashMap<Frame, Vec<u32>>) -> Occurrences {
        let (order, ends) = preorder(whole);
        let mut first = Vec::new();
        // How often each site is on the stack, and the stack: the place in preorder after the subtree
        // of a node, and its sites.
        let mut on_stack = vec![0_u32; sites];
        let mut stack: Vec<(u32, &[u32])> = Vec::new();
        for (place, &node) in order.iter().enumerate().skip(1) {
            while let Some(&(_, left)) = stack.last().filter(|(end, _)| *end <= place as u32) {
                left.iter().for_each(|&site| on_stack[site as usize] -= 1);
                stack.pop();
            }
            let Some(of_frame) = of_frames.get(&whole.frame(node)) else { continue };
            for &site in of_frame {
                if on_stack[site as usize] == 0 {
                    first.push((node, site));
                }
                on_stack[site as usize] += 1;
            }
            stack.push((ends[place], of_frame));
        }
        first.shrink_to_fit();
        Occurrences { sites, first }
    }

    /// The total of each site, by its number. `aggregate` is the one that these were made of,
    /// or a selection from its table of blocks with whole stacks.
    pub fn totals(&self, aggregate: &Aggregate, metric: Metric) -> Vec<SiteTotal> {
        let samples = self.sampled(aggregate, |counts| metric.samples(counts));
        let carried = match aggregate.is_carried_over() {
            true => self.sampled(aggregate, |counts| counts.carried),
            false => vec![Sampled::default(); samples.len()],
        };
        let total = |(samples, carried)| SiteTotal { samples, carried };
        samples.into_iter().zip(carried).map(total).collect()
    }

    /// The sums of each site with their variances.
    fn sampled(&self, aggregate: &Aggregate, of_path: impl Fn(&Counts) -> u64) -> Vec<Sampled> {
        let Tallies { counts, variances, .. } = &aggregate.counts;
        let counts = self.sums(aggregate, counts, &of_path);
        let variances = match aggregate.counts.are_mixed() {
            true => self.sums(aggregate, variances, &of_path),
            false => vec![0; counts.len()],
        };
        let sampled = |(count, variance)| Sampled { count, variance };
        counts.into_iter().zip(variances).map(sampled).collect()
    }

    fn sums(
        &self,
        aggregate: &Aggregate,
        counts: &[Counts],
        of_path: impl Fn(&Counts) -> u64,
    ) -> Vec<u64> {
        let mut weights = vec![0_u64; aggregate.paths.len()];
        for (path, counts) in counts.iter().enumerate() {
            let weight = &mut weights[aggregate.paths.node(path as u32) as usize];
            *weight = weight.saturating_add(of_path(counts));
        }
        // The number of a parent is below those of its children.
        for node in (1..weights.len()).rev() {
            let parent = aggregate.paths.parent(node as Node) as usize;
            weights[parent] = weights[parent].saturating_add(weights[node]);
        }
        let mut sums = vec![0_u64; self.sites];
        for &(node, site) in &self.first {
            let sum = &mut sums[site as usize];
            *sum = sum.saturating_add(weights[node as usize]);
        }
        sums
    }
}

impl Aggregate {
    /// The bytes of a total.
    pub fn size_of_total(&self, metric: Metric, total: SiteTotal) -> Estimate {
        self.carried_size(metric, total.samples, total.carried)
    }
}

/// The nodes of a call tree in preorder, and for each place the one after the node's subtree.
fn preorder(whole: &Aggregate) -> (Vec<Node>, Vec<u32>) {
    let paths = &whole.paths;
    let mut sizes = vec![1_u32; paths.len()];
    // Parents come before their children, so sizes are sums from the end.
    for node in (1..paths.len()).rev() {
        sizes[paths.parent(node as Node) as usize] += sizes[node];
    }
    let (mut order, mut ends) = (vec![ROOT; paths.len()], vec![0; paths.len()]);
    // The place of the next child of each node.
    let mut free = vec![1_u32; paths.len()];
    for node in 1..paths.len() {
        let parent = paths.parent(node as Node) as usize;
        let place = free[parent];
        free[parent] += sizes[node];
        free[node] = place + 1;
        order[place as usize] = node as Node;
        ends[place as usize] = place + sizes[node];
    }
    (order, ends)
}
