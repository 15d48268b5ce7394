//! The call tree, from the outermost calls inwards or from the allocations outwards.

use std::collections::HashMap;

use heaptap_report::figures::Sum;
use heaptap_report::rows::Site;
use heaptap_report::{CallTree, Estimate, Sampled};
use serde::Serialize;

use crate::answer::{Stated, json};
use crate::report::needs_frames;
use crate::request::{TraceRequest, TreeShape};
use crate::totals::{Called, Counted};
use crate::traces::Traces;

/// The most cells of an answer.
const MOST_CELLS: usize = 200_000;
/// The deepest level of an answer.
const DEEPEST: u32 = 2000;

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct TreeAnswer {
    total: Sum,
    focus_total: Sum,
    sites: Vec<Site>,
    cells: Cells,
    depth: u32,
    /// The standard error of `samples` is √(a·samples + b·samples²) bytes; of several rates, at most that.
    error_of: ErrorOf,
    /// Bytes for each of `samples`, which are a count that is no number of samples if the trace has several rates.
    scale: f64,
    /// Frames that were folded away.
    omitted: u64,
}

#[derive(Clone, Copy, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct ErrorOf {
    #[cfg_attr(test, ts(type = "number | null"))]
    a: f64,
    b: f64,
}

impl ErrorOf {
    /// `spread`: that of one sample.
    pub(crate) fn of(spread: f64) -> ErrorOf {
        ErrorOf { a: spread.powi(2), b: 0.0 }
    }
}

/// The standard error of what a cell has.
type ErrorOfCell<'a> = dyn Fn(Sampled) -> f64 + 'a;

/// Cells in preorder: column by column.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Cells {
    pub(crate) parent: Vec<u32>,
    /// The number of the site; −1 for small cells that are joined.
    pub(crate) site: Vec<i64>,
    pub(crate) samples: Vec<u64>,
    #[serde(rename = "self")]
    pub(crate) own: Vec<u64>,
    /// If the trace has several rates, and no error follows from a number of samples: the standard error of
    /// each cell in bytes, and of what is at it itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<f64>>"))]
    errors: Vec<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<f64>>"))]
    self_errors: Vec<f64>,
    /// How many cells are joined; 1 for others.
    pub(crate) count: Vec<u32>,
    pub(crate) repeats: Vec<u32>,
}

impl Cells {
    pub(crate) fn len(&self) -> usize {
        self.parent.len()
    }

    fn push(&mut self, parent: u32, node: &Node, error: Option<&ErrorOfCell<'_>>) {
        self.parent.push(parent);
        self.site.push(node.site.map_or(-1, i64::from));
        self.samples.push(node.samples.count);
        self.own.push(node.own.count);
        if let Some(error) = error {
            self.errors.push(error(node.samples));
            self.self_errors.push(error(node.own));
        }
        self.count.push(1);
        self.repeats.push(node.repeats);
    }

    /// Numbers the sites that occur anew, and returns them.
    fn number_sites(&mut self, all: &[Site]) -> Vec<Site> {
        let mut numbers: Vec<Option<i64>> = vec![None; all.len()];
        let mut sites = Vec::new();
        for number in &mut self.site {
            let Some(site) = usize::try_from(*number).ok() else { continue };
            *number = *numbers[site].get_or_insert_with(|| {
                sites.push(all[site].clone());
                sites.len() as i64 - 1
            });
        }
        sites
    }

    /// Small cells under one caller, as one.
    fn push_joined(
        &mut self,
        parent: u32,
        samples: Sampled,
        count: u32,
        error: Option<&ErrorOfCell<'_>>,
    ) {
        let own = Sampled::default();
        let node = Node { site: None, samples, own, repeats: 1, below: Below::Joined };
        self.push(parent, &node, error);
        if let Some(last) = self.count.last_mut() {
            *last = count;
        }
    }
}

/// A node of the tree that is shown.
pub(crate) struct Node {
    pub(crate) site: Option<u32>,
    pub(crate) samples: Sampled,
    own: Sampled,
    repeats: u32,
    below: Below,
}

/// Where the nodes below come from.
enum Below {
    /// The calls of a node.
    Calls(u32),
    /// The callers of these nodes, with the samples that each passes on.
    Callers(Vec<(u32, Sampled)>),
    Joined,
}

pub(crate) fn tree(
    traces: &mut Traces,
    of: &TraceRequest,
    shape: &TreeShape,
) -> Result<String, String> {
    needs_frames(of.by)?;
    let found = traces.find(of)?;
    let counted = Counted::of(traces, of, &found)?.ok();
    let calls = traces.shape(of.trace, of.grouping(), shape.fold)?;
    let figures = traces.figures(of, &found)?;
    let archive = traces.archive(of.trace)?;
    let metric = of.metric;
    let called = Called::new(figures.aggregate, metric, counted.as_ref(), archive);
    let tree = called.aggregate.call_tree(&calls, metric);
    let walk = Walk { tree: &tree, spread: called.spread(), scale: called.unit() };
    let root = walk.focused(shape)?;
    // In the unit of the cells, of which they are the whole.
    let sum = |sampled: Sampled, size: Estimate| Sum {
        samples: sampled.count,
        ..called.sum(sampled, size)
    };
    let total = sum(tree.samples(0), called.all());
    let focus_total = match shape.focus.is_empty() {
        true => total,
        false => sum(root.samples, called.estimate(root.samples)),
    };
    let error = |sampled| called.estimate(sampled).error;
    let are_several = called.aggregate.rates().are_several();
    let error = are_several.then_some(&error as &ErrorOfCell<'_>);
    let (mut cells, depth) = walk.cells(root, shape, error);
    let sites = cells.number_sites(tree.sites());
    let answer = TreeAnswer {
        total,
        focus_total,
        sites,
        cells,
        depth,
        error_of: ErrorOf::of(called.spread()),
        scale: called.unit(),
        omitted: tree.folded_frames(),
    };
    let exact = found.exact && counted.is_none_or(|counted| counted.is_exact());
    json(&Stated { answer, exact })
}

/// Walks a call tree in either direction.
pub(crate) struct Walk<'a> {
    pub(crate) tree: &'a CallTree,
    /// The standard error of one sample, and the bytes of it.
    pub(crate) spread: f64,
    pub(crate) scale: f64,
}

impl Walk<'_> {
    fn root(&self, invert: bool) -> Node {
        let tree = self.tree;
        let below = if invert {
            let ends = (1..tree.len()).map(|node| (node, tree.own_samples(node)));
            Below::Callers(ends.filter(|&(_, own)| own.count > 0).collect())
        } else {
            Below::Calls(0)
        };
        let own = Sampled::default();
        Node { site: None, samples: tree.samples(0), own, repeats: 1, below }
    }

    /// The node at the end of the path that is asked for.
    pub(crate) fn focused(&self, shape: &TreeShape) -> Result<Node, String> {
        let mut node = self.root(shape.invert);
        for wanted in &shape.focus {
            let inside = self.below(&node, shape.invert && node.site.is_none());
            let found = inside.into_iter().find(|child| self.site(child) == Some(wanted));
            node = found.ok_or_else(|| {
                format!("{} is not called there: its blocks are not selected", wanted.name)
            })?;
        }
        Ok(node)
    }

    fn site(&self, node: &Node) -> Option<&Site> {
        self.tree.sites().get(node.site? as usize)
    }

    /// The nodes below a node, in no order. `innermost`: the sites of the nodes
    /// themselves, not of their callers.
    pub(crate) fn below(&self, node: &Node, innermost: bool) -> Vec<Node> {
        let tree = self.tree;
        match &node.below {
            Below::Joined => Vec::new(),
            Below::Calls(at) => {
                let child = |child: u32| Node {
                    site: tree.site(child),
                    samples: tree.samples(child),
                    own: tree.own_samples(child),
                    repeats: tree.repeats(child),
                    below: Below::Calls(child),
                };
                tree.children(*at).map(child).filter(|child| child.samples.count > 0).collect()
            }
            Below::Callers(nodes) => {
                let mut groups: HashMap<u32, Vec<(u32, Sampled)>> = HashMap::new();
                for &(node, samples) in nodes {
                    let at = if innermost { node } else { tree.parent(node) };
                    if let Some(site) = tree.site(at) {
                        groups.entry(site).or_default().push((at, samples));
                    }
                }
                let group = |(site, nodes): (u32, Vec<(u32, Sampled)>)| {
                    let all = nodes.iter().map(|&(_, samples)| samples);
                    let ends = nodes.iter().filter(|&&(node, _)| tree.parent(node) == 0);
                    Node {
                        site: Some(site),
                        samples: all.sum(),
                        own: ends.map(|&(_, samples)| samples).sum(),
                        repeats: nodes
                            .iter()
                            .map(|&(node, _)| tree.repeats(node))
                            .max()
                            .unwrap_or(1),
                        below: Below::Callers(nodes),
                    }
                };
                groups.into_iter().map(group).collect()
            }
        }
    }

    /// The cells of a subtree, and how deep it goes. Cells that are too small are
    /// joined, never dropped.
    fn cells(
        &self,
        root: Node,
        shape: &TreeShape,
        error: Option<&ErrorOfCell<'_>>,
    ) -> (Cells, u32) {
        let most = shape.most.clamp(1, MOST_CELLS);
        let least = (root.samples.count as f64 * shape.min_share.clamp(0.0, 1.0)).max(1.0);
        let mut cells = Cells::default();
        let mut deepest = 0;
        // Children are pushed in reverse, so that the first is next: preorder.
        let mut stack: Vec<(u32, u32, Next)> = vec![(0, 0, Next::Node(root))];
        while let Some((parent, depth, next)) = stack.pop() {
            let number = cells.len() as u32;
            deepest = deepest.max(depth);
            let node = match next {
                Next::Joined(samples, count) => {
                    cells.push_joined(parent, samples, count, error);
                    continue;
                }
                Next::Node(node) => node,
            };
            cells.push(parent, &node, error);
            let below = self.below(&node, shape.invert && depth == 0 && node.site.is_none());
            let full = cells.len() + stack.len() + below.len() > most || depth >= DEEPEST;
            let (mut shown, small): (Vec<Node>, Vec<Node>) =
                below.into_iter().partition(|child| !full && child.samples.count as f64 >= least);
            self.order(&mut shown);
            if !small.is_empty() {
                let samples = small.iter().map(|child| child.samples).sum();
                stack.push((number, depth + 1, Next::Joined(samples, small.len() as u32)));
            }
            let shown = shown.into_iter().rev();
            stack.extend(shown.map(|child| (number, depth + 1, Next::Node(child))));
        }
        (cells, deepest)
    }

    /// The largest first; those that differ by no more than chance by name, so that a
    /// picture does not change without reason.
    pub(crate) fn order(&self, nodes: &mut [Node]) {
        let by_name = |one: &Node, other: &Node| self.site(one).cmp(&self.site(other));
        nodes.sort_by(|one, other| {
            other.samples.count.cmp(&one.samples.count).then_with(|| by_name(one, other))
        });
        let spread = (self.spread / self.scale).powi(2);
        let mut from = 0;
        while from < nodes.len() {
            let first = nodes[from].samples.count as f64;
            let alike = |node: &Node| {
                let apart = first - node.samples.count as f64;
                apart * apart <= 4.0 * spread * (first + node.samples.count as f64)
            };
            let length = nodes[from..].iter().take_while(|node| alike(node)).count().max(1);
            nodes[from..from + length].sort_by(by_name);
            from += length;
        }
    }
}

/// What comes next in preorder.
enum Next {
    Node(Node),
    Joined(Sampled, u32),
}
