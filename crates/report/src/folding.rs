//! The call tree by site, with recursion folded.
//!
//! Sites are pushed onto stacks from the outermost to the innermost. With folding,
//! a stack whose end repeats a cycle of up to [`LONGEST_CYCLE`] functions loses one
//! of the two copies as soon as the second is complete, so that no stack holds the
//! same cycle twice in a row. The inner copy is the one that stays: it has the
//! location of the allocation and those of the calls that lead to it.
//!
//! A fold moves to another node of the same tree, and the result depends only on
//! the node and the pushed site. It is looked up once and remembered, so that the
//! work is linear in the number of pushes and the tree is never larger than the
//! folded stacks.

mod children;

use hashbrown::HashMap;

use crate::rows::Site;
use children::Children;

/// The most functions in a cycle that is recognised.
pub(crate) const LONGEST_CYCLE: usize = 32;

const NONE: u32 = u32::MAX;

/// How often a cycle of functions was repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Repeats {
    /// The most iterations in any stack.
    pub(crate) count: u32,
    /// The functions in the cycle.
    pub(crate) period: u32,
}

/// A stack that sites are pushed onto.
#[derive(Clone, Copy)]
pub(crate) struct StackState {
    /// The node of its innermost site. Node 0 is the root.
    pub(crate) node: u32,
    /// The sites that were pushed, those that are folded away included.
    pub(crate) pushed: u32,
    /// The innermost run that it is in, or `NONE`.
    run: u32,
}

impl StackState {
    pub(crate) const EMPTY: StackState = StackState { node: 0, pushed: 0, run: NONE };
}

/// A cycle that a stack repeats.
#[derive(Clone, Copy)]
struct Run {
    /// The sites above the cycle.
    above: u32,
    repeats: Repeats,
    /// The run around it, or `NONE`.
    outer: u32,
}

/// Where a push leads.
#[derive(Clone, Copy)]
struct Step {
    node: u32,
    /// The length of the cycle that was folded, or 0.
    period: u32,
}

/// A tree of sites.
pub(crate) struct SiteTree {
    fold: bool,
    /// Parent and site of each node. Parents precede their children.
    pub(crate) nodes: Vec<(u32, u32)>,
    /// The number of sites from the root to each node.
    depths: Vec<u32>,
    children: Children,
    /// Where a push leads that completes a cycle. Other pushes lead to a child.
    folds: HashMap<(u32, u32), Step>,
    /// The function of each site: sites of one function are equal to folding.
    functions: Vec<u32>,
    function_numbers: HashMap<(String, String), u32>,
    runs: Vec<Run>,
    /// By the node above a cycle and the cycle's first function.
    repeats: HashMap<(u32, u32), Repeats>,
    tail: Tail,
}

/// The functions at the inner end of one stack, the innermost last: enough of them to
/// find a cycle. Most sites are pushed onto the stack that was pushed onto last.
#[derive(Default)]
struct Tail {
    /// The node at which the stack ends.
    node: u32,
    functions: Vec<u32>,
}

impl SiteTree {
    pub(crate) fn new(fold: bool) -> SiteTree {
        SiteTree {
            fold,
            nodes: vec![(0, NONE)],
            depths: vec![0],
            children: Children::default(),
            folds: HashMap::new(),
            functions: Vec::new(),
            function_numbers: HashMap::new(),
            runs: Vec::new(),
            repeats: HashMap::new(),
            tail: Tail::default(),
        }
    }

    /// Makes sites known, before they are pushed: all that there are so far.
    pub(crate) fn know(&mut self, sites: &[Site]) {
        for site in &sites[self.functions.len()..] {
            let next = self.function_numbers.len() as u32;
            let key = (site.name.clone(), site.file.clone());
            self.functions.push(*self.function_numbers.entry(key).or_insert(next));
        }
    }

    /// The stack with one more site.
    pub(crate) fn push(&mut self, stack: StackState, site: u32) -> StackState {
        let Step { node, period } = self.step(stack.node, site);
        let run = if period == 0 { stack.run } else { self.repeat(stack.run, node, period) };
        StackState { node, pushed: stack.pushed + 1, run }
    }

    /// The number of sites from the root to a node.
    pub(crate) fn depth(&self, node: u32) -> u32 {
        self.depths[node as usize]
    }

    /// How often the cycle that begins with this node is repeated, if it is.
    pub(crate) fn repeats(&self, node: u32) -> Option<Repeats> {
        let (parent, site) = self.nodes[node as usize];
        self.repeats.get(&(parent, self.functions[site as usize])).copied()
    }

    /// The function of a node's site.
    pub(crate) fn function(&self, node: u32) -> u32 {
        self.functions[self.nodes[node as usize].1 as usize]
    }

    fn step(&mut self, node: u32, site: u32) -> Step {
        if let Some(child) = self.children.find(&self.nodes, node, site) {
            return Step { node: child, period: 0 };
        }
        if let Some(&known) = self.folds.get(&(node, site)) {
            return known;
        }
        match if self.fold { self.cycle(node, site) } else { 0 } {
            0 => Step { node: self.add(node, site), period: 0 },
            period => {
                let step = Step { node: self.replaced(node, site, period), period: period as u32 };
                self.folds.insert((node, site), step);
                step
            }
        }
    }

    /// Adds a child that is not there.
    fn add(&mut self, node: u32, site: u32) -> u32 {
        let child = self.children.add(&mut self.nodes, node, site);
        self.depths.push(self.depths[node as usize] + 1);
        if self.tail.node == node {
            self.tail.node = child;
            self.tail.functions.push(self.functions[site as usize]);
        }
        child
    }

    /// The length of the cycle that the stack ends with twice once `site` is pushed,
    /// or 0.
    fn cycle(&mut self, node: u32, site: u32) -> usize {
        if self.tail.node != node {
            self.fill_tail(node);
        }
        let (tail, function) = (&self.tail.functions[..], self.functions[site as usize]);
        let length = tail.len();
        let is_cycle = |&period: &usize| {
            let again = length - period;
            tail[again] == function && tail[again - (period - 1)..again] == tail[again + 1..]
        };
        (1..=LONGEST_CYCLE.min(length.div_ceil(2))).find(is_cycle).unwrap_or(0)
    }

    /// Takes the functions of the stack that ends at this node.
    fn fill_tail(&mut self, node: u32) {
        let mut functions = std::mem::take(&mut self.tail.functions);
        functions.clear();
        let mut above = node;
        while above != 0 && functions.len() < 2 * LONGEST_CYCLE {
            functions.push(self.function(above));
            above = self.nodes[above as usize].0;
        }
        functions.reverse();
        self.tail = Tail { node, functions };
    }

    /// The node of the stack that ends with `site` after its last cycle has taken
    /// the place of the one before.
    ///
    /// The functions of the result are those of a stack that is in the tree already,
    /// so that no step on the way folds.
    fn replaced(&mut self, node: u32, site: u32, period: usize) -> u32 {
        let mut cycle = [site; LONGEST_CYCLE];
        let mut above = node;
        for at in (0..period - 1).rev() {
            (above, cycle[at]) = self.nodes[above as usize];
        }
        let mut end = self.ancestor(above, period);
        for &site in &cycle[..period] {
            end = self.step(end, site).node;
        }
        end
    }

    fn ancestor(&self, mut node: u32, generations: usize) -> u32 {
        for _ in 0..generations {
            node = self.nodes[node as usize].0;
        }
        node
    }

    /// Counts one more iteration of the cycle that ends at `node`. Returns its run.
    fn repeat(&mut self, mut run: u32, node: u32, period: u32) -> u32 {
        let above = self.depth(node) - period;
        let mut count = 2;
        // Runs inside the copy of the cycle that went away are over.
        while let Some(&Run { above: start, repeats, outer }) = self.runs.get(run as usize)
            && start >= above
        {
            run = outer;
            if (start, repeats.period) == (above, period) {
                count = repeats.count.saturating_add(1);
                break;
            }
        }
        let repeats = Repeats { count, period };
        let head = self.ancestor(node, period as usize - 1);
        let key = (self.nodes[head as usize].0, self.function(head));
        let most = self.repeats.entry(key).or_insert(repeats);
        *most = repeats.max(*most);
        self.runs.push(Run { above, repeats, outer: run });
        self.runs.len() as u32 - 1
    }
}

/// Which nodes are on a stack that ends at one of `ends`. In a tree that folds, others
/// were on one only until a later site was pushed.
pub(crate) fn used(nodes: &[(u32, u32)], ends: impl Iterator<Item = u32>) -> Vec<bool> {
    let mut used = vec![false; nodes.len()];
    for end in ends {
        used[end as usize] = true;
    }
    for node in (1..used.len()).rev() {
        if used[node] {
            used[nodes[node].0 as usize] = true;
        }
    }
    used
}
