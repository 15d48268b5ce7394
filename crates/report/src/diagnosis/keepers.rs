//! Whose block is it? One holder for each block that is reachable.
//!
//! It is the lowest holder that retains the block: without it the block would be garbage. What a variable holds may be in
//! the hands of a function, too, at the moment of a snapshot, and then neither retains it alone. Such a block is
//! the variable's: the one whose root it is, or that holds the blocks which point to it.

use std::collections::{HashMap, HashSet};

use heaptap_graph::{DominatorTree, HeapAnalysis, HolderId, HolderName, HolderTree, Node};

/// Pointers from a shared block to another one, and so on, are followed so often.
const PASSES: usize = 3;

/// The holder of each block.
pub struct Keepers<'a> {
    dominators: &'a DominatorTree,
    /// By position in the dominator tree.
    holders: Vec<HolderId>,
    /// The highest blocks that several holders share, and the variables that they are counted for.
    adopted: HashMap<u32, HolderId>,
}

impl<'a> Keepers<'a> {
    pub fn new(analysis: &'a HeapAnalysis) -> Keepers<'a> {
        let HeapAnalysis { dominators, holders, .. } = analysis;
        let shared = shared_blocks(analysis);
        let mut adopted = by_roots(holders, &shared);
        let mut found = spread(dominators, &adopted);
        for _ in 0..PASSES {
            let missing = shared.iter().copied().filter(|block| !adopted.contains_key(block));
            let missing: HashSet<u32> = missing.collect();
            if missing.is_empty() {
                break;
            }
            let keepers = Keepers { dominators, holders: found, adopted: HashMap::new() };
            let more = by_referrers(analysis, &keepers, &missing);
            found = keepers.holders;
            if more.is_empty() {
                break;
            }
            adopted.extend(more);
            found = spread(dominators, &adopted);
        }
        Keepers { dominators, holders: found, adopted }
    }

    /// The holder of a block; `None` if the block is garbage.
    pub fn of(&self, block: u32) -> Option<HolderId> {
        let position = self.dominators.position(Node::Block(block))?;
        self.holders.get(position as usize).copied()
    }

    /// What is outside the heap and counted for another holder than the one that retains it: from, to, and bytes.
    pub(super) fn moved_outside(&self) -> impl Iterator<Item = (HolderId, HolderId, u64)> {
        self.adopted.iter().filter_map(|(block, holder)| {
            let position = self.dominators.position(Node::Block(*block))?;
            let Node::Holder(above) = self.dominators.node(self.dominators.dominator(position))
            else {
                return None;
            };
            Some((above, *holder, self.dominators.retained_outside(position).allocated))
        })
    }

    /// Each block that is alive, with its holder.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (u32, HolderId)> {
        (0..).zip(&self.holders).filter_map(|(position, holder)| {
            match self.dominators.node(position) {
                Node::Block(block) => Some((block, *holder)),
                Node::Holder(_) => None,
            }
        })
    }
}

/// The highest blocks that several holders share.
fn shared_blocks(analysis: &HeapAnalysis) -> HashSet<u32> {
    let dominators = &analysis.dominators;
    let mut shared = HashSet::new();
    for position in 0..dominators.len() as u32 {
        if let Node::Block(block) = dominators.node(position)
            && let Node::Holder(above) = dominators.node(dominators.dominator(position))
            && is_common(analysis.holders.name(above))
        {
            shared.insert(block);
        }
    }
    shared
}

/// Whether a holder stands for several below it.
fn is_common(name: HolderName) -> bool {
    matches!(
        name,
        HolderName::Program | HolderName::Kind(_) | HolderName::Module(_) | HolderName::Domain(_)
    )
}

/// The variables whose roots they are, the first of each.
fn by_roots(holders: &HolderTree, shared: &HashSet<u32>) -> HashMap<u32, HolderId> {
    let mut adopted = HashMap::new();
    for holder in holders.ids().filter(|holder| is_variable(holders, *holder)) {
        for block in holders.root_blocks(holder).filter(|block| shared.contains(block)) {
            adopted.entry(block).or_insert(holder);
        }
    }
    adopted
}

fn is_variable(holders: &HolderTree, holder: HolderId) -> bool {
    matches!(holders.name(holder), HolderName::Variable { .. })
}

/// The variables that hold what points to them.
fn by_referrers(
    analysis: &HeapAnalysis,
    keepers: &Keepers<'_>,
    missing: &HashSet<u32>,
) -> HashMap<u32, HolderId> {
    let mut adopted = HashMap::new();
    for (block, holder) in keepers.blocks() {
        if !is_variable(&analysis.holders, holder) {
            continue;
        }
        let targets = analysis.graph.targets(block).iter();
        for target in targets.filter(|target| missing.contains(target)) {
            adopted.entry(*target).or_insert(holder);
        }
    }
    adopted
}

/// The holder of each position: that of its dominator, unless it is adopted.
fn spread(dominators: &DominatorTree, adopted: &HashMap<u32, HolderId>) -> Vec<HolderId> {
    let mut holders: Vec<HolderId> = Vec::with_capacity(dominators.len());
    for position in 0..dominators.len() as u32 {
        let above = || holders.get(dominators.dominator(position) as usize).copied();
        // A dominator comes first.
        holders.push(match dominators.node(position) {
            Node::Holder(holder) => holder,
            Node::Block(block) => {
                adopted.get(&block).copied().or_else(above).unwrap_or(HolderTree::PROGRAM)
            }
        });
    }
    holders
}
