//! The call tree in an archive.
//!
//! Nodes are in preorder, siblings by their frames. Each is one number or two: how far the way
//! to its parent is up, if its parent is not the node before, and its frame, as its rank among the
//! [`Callees`] of the caller. What is called for the first time is in a list of its own. Paths
//! are numbered in the order of their ends. A node without a path below it is left out.
//!
//! So a tree of three million nodes takes 5 bits for each, compressed.

use super::bytes::{ArchiveError, Reader, Writer};
use super::callees::Callees;
use crate::paths::{Bounds, LIGHT, NOWHERE, Node, Paths, ROOT};

/// Stands for the frame of the root and for no node.
const NONE: u32 = u32::MAX;

/// A frame as the archive has it: the ones that stand for others, which are the largest numbers,
/// wrap to the smallest.
fn number_of(frame: u32) -> u32 {
    frame.wrapping_add(3)
}

fn frame_of(number: u32) -> u32 {
    number.wrapping_sub(3)
}

/// The order in which an archive has the paths of a tree.
pub(super) struct PathOrder {
    /// The paths of the tree.
    pub(super) paths: Vec<u32>,
    /// The number in the archive of each path of the tree.
    pub(super) numbers: Vec<u32>,
}

/// Writes a tree, and returns the order of its paths.
pub(super) fn write(out: &mut Writer, tree: &Paths) -> PathOrder {
    let mut writer = TreeWriter::new(tree);
    let children = Children::of_paths(tree, &writer.ends);
    let count = children.walk(tree, |step| writer.node(step));
    out.number(tree.missing());
    out.number(u64::from(tree.table_lacks_callers()));
    out.list(&writer.first_calls, |out, &frame| out.number(u64::from(frame)));
    out.number(count as u64);
    out.0.append(&mut writer.nodes.0);
    out.list(&writer.inner_ends, |out, &gap| out.number(gap));
    writer.order
}

/// What a walk finds at a node.
#[derive(Clone, Copy)]
struct Step {
    node: Node,
    /// How many steps up from the node before the parent is.
    up: u64,
    has_children: bool,
}

/// The children of each node, in the order of their frames.
struct Children {
    first: Vec<Node>,
    next: Vec<Node>,
}

impl Children {
    /// Of the nodes that lead to an end of a path.
    fn of_paths(tree: &Paths, ends: &[u32]) -> Children {
        let mut leads: Vec<bool> = ends.iter().map(|&end| end != NONE).collect();
        // The number of a parent is below those of its children.
        for node in (1..leads.len()).rev() {
            leads[tree.parent(node as Node) as usize] |= leads[node];
        }
        let mut children = Children { first: vec![NONE; tree.len()], next: vec![NONE; tree.len()] };
        for node in by_frame(tree).into_iter().rev().filter(|&node| leads[node as usize]) {
            let first = &mut children.first[tree.parent(node) as usize];
            children.next[node as usize] = std::mem::replace(first, node);
        }
        children
    }

    /// Visits all nodes but the root in preorder, and returns how many these are.
    fn walk(&self, tree: &Paths, mut visit: impl FnMut(Step)) -> usize {
        let (mut node, mut up, mut count) = (ROOT, 0, 0);
        loop {
            let mut next = self.first[node as usize];
            while next == NONE {
                if node == ROOT {
                    return count;
                }
                next = self.next[node as usize];
                node = tree.parent(node);
                up += 1;
            }
            visit(Step { node: next, up, has_children: self.first[next as usize] != NONE });
            (node, up, count) = (next, 0, count + 1);
        }
    }
}

/// All nodes but the root in the order of their frames, which are counted: sorting millions of
/// nodes would take longer than all else.
fn by_frame(tree: &Paths) -> Vec<Node> {
    let number = |node: Node| number_of(tree.frame(node)) as usize;
    let all = || 1..tree.len() as Node;
    let mut starts = vec![0; all().map(number).max().map_or(0, |most| most + 1)];
    all().for_each(|node| starts[number(node)] += 1);
    let mut before = 0;
    for start in &mut starts {
        before += std::mem::replace(start, before);
    }
    let mut nodes = vec![ROOT; tree.len() - 1];
    for node in all() {
        let start = &mut starts[number(node)];
        nodes[*start] = node;
        *start += 1;
    }
    nodes
}

/// The columns of a tree that is being written.
struct TreeWriter<'a> {
    tree: &'a Paths,
    /// The path that ends at each node.
    ends: Vec<u32>,
    callees: Callees,
    nodes: Writer,
    /// Frames that no rank names.
    first_calls: Vec<u32>,
    /// Where a path ends above others: how many such nodes do not end one in between.
    inner_ends: Vec<u64>,
    inner: u64,
    order: PathOrder,
}

impl<'a> TreeWriter<'a> {
    fn new(tree: &'a Paths) -> Self {
        let mut ends = vec![NONE; tree.len()];
        for path in 0..tree.count() as u32 {
            ends[tree.node(path) as usize] = path;
        }
        TreeWriter {
            tree,
            ends,
            callees: Callees::default(),
            nodes: Writer::default(),
            first_calls: Vec::new(),
            inner_ends: Vec::new(),
            inner: 0,
            order: PathOrder { paths: Vec::new(), numbers: vec![NONE; tree.count()] },
        }
    }

    fn node(&mut self, step: Step) {
        let frame = number_of(self.tree.frame(step.node));
        let caller = number_of(self.tree.frame(self.tree.parent(step.node)));
        if step.up > 0 {
            self.nodes.number(2 * step.up - 1);
        }
        match self.callees.rank(caller, frame) {
            Some(rank) => self.nodes.number(2 * (rank as u64 + 1)),
            None => {
                self.nodes.number(0);
                self.first_calls.push(frame);
            }
        }
        let path = self.ends[step.node as usize];
        if path != NONE {
            self.order.numbers[path as usize] = self.order.paths.len() as u32;
            self.order.paths.push(path);
        }
        if step.has_children {
            self.inner += 1;
            if path != NONE {
                self.inner_ends.push(std::mem::take(&mut self.inner));
            }
        }
    }
}

/// Reads a tree of at most so many frames.
pub(super) fn read(from: &mut Reader<'_>, frames: usize) -> Result<Paths, ArchiveError> {
    let missing = from.number()?;
    let table_lacks_callers = from.number()? != 0;
    let first_calls = from.list(|from| {
        let number = from.small::<u32>()?;
        let frame = frame_of(number);
        let is_known = (frame as usize) < frames || frame == LIGHT || frame == NOWHERE;
        if is_known { Ok(number) } else { Err(from.error("a frame has no location")) }
    })?;
    let mut tree = Paths::new(Bounds::USUAL);
    nodes(from, &first_calls, &mut tree)?;
    let inner_ends = from.list(Reader::number)?;
    if !add_paths(&mut tree, &inner_ends) {
        return Err(from.error("a call path has no end"));
    }
    tree.set_missing(missing, table_lacks_callers);
    Ok(tree)
}

fn nodes(from: &mut Reader<'_>, first_calls: &[u32], tree: &mut Paths) -> Result<(), ArchiveError> {
    let mut callees = Callees::default();
    let mut first_calls = first_calls.iter();
    let mut parent = ROOT;
    for node in 1..=from.length()? as u32 {
        let mut number = from.number()?;
        if number % 2 == 1 {
            for _ in 0..number.div_ceil(2) {
                if parent == ROOT {
                    return Err(from.error("a call has no caller"));
                }
                parent = tree.parent(parent);
            }
            number = from.number()?;
        }
        let caller = number_of(tree.frame(parent));
        let callee = match number.checked_sub(2) {
            Some(rank) => {
                usize::try_from(rank / 2).ok().and_then(|rank| callees.at_rank(caller, rank))
            }
            None => first_calls.next().copied().inspect(|&callee| callees.add(caller, callee)),
        };
        let callee = callee.filter(|_| number % 2 == 0).ok_or(from.error("a call has no frame"))?;
        tree.append(parent, frame_of(callee));
        parent = node;
    }
    Ok(())
}

/// Adds the paths: to all nodes that have no children, and to some of the others. Whether there
/// are such.
fn add_paths(tree: &mut Paths, inner_ends: &[u64]) -> bool {
    let mut has_children = vec![false; tree.len()];
    for node in 1..tree.len() as Node {
        has_children[tree.parent(node) as usize] = true;
    }
    let mut gaps = inner_ends.iter();
    let mut gap = gaps.next();
    let mut inner = 0;
    for node in 1..tree.len() as Node {
        if has_children[node as usize] {
            inner += 1;
            if gap != Some(&inner) {
                continue;
            }
            (gap, inner) = (gaps.next(), 0);
        }
        tree.path(node);
    }
    gap.is_none()
}
