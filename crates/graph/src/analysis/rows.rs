//! Tables.

use super::heap_analysis::HeapAnalysis;
use super::kind_row::KindRow;
use crate::dominators::{DominatorTree, Node};
use crate::graph::{OutsideBytes, Reach};
use crate::holders::{HolderId, HolderName, Share};
use crate::kinds::KindId;

/// Which holders a table lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Kinds of roots.
    Kind,
    /// Modules; other kinds of roots as they are.
    Module,
    /// Variables of modules; of other kinds of roots the last holders.
    Variable,
    /// Domains; other kinds of roots as they are.
    Domain,
    /// Threads, and the values of domains; other kinds of roots as they are.
    Thread,
    /// What threads consist of: frames of stacks, handlers of fibers, local variables of C code;
    /// other kinds of roots as they are.
    Frame,
}

impl Level {
    /// Whether a holder is the last that this table shows, and not those below it.
    fn ends_at(self, name: HolderName) -> bool {
        match self {
            Level::Kind => matches!(name, HolderName::Kind(_)),
            Level::Module => matches!(name, HolderName::Module(_)),
            Level::Domain => matches!(name, HolderName::Domain(_)),
            Level::Thread => matches!(name, HolderName::Thread(_) | HolderName::DomainLocal(_)),
            Level::Frame => matches!(
                name,
                HolderName::Frame { .. }
                    | HolderName::Handlers { .. }
                    | HolderName::LocalC
                    | HolderName::DomainLocal(_)
            ),
            Level::Variable => false,
        }
    }
}

/// A holder in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HolderRow {
    /// The holder.
    pub holder: HolderId,
    /// How many roots it has.
    pub roots: u64,
    /// The bytes that would be freed without it.
    pub exclusive: u64,
    /// Bytes outside the heap that would be freed without it.
    pub outside: OutsideBytes,
    /// What it reaches and no holder before it does.
    pub first_reached: Share,
}

impl HolderRow {
    /// What it counts for among the rows: all that it holds alone, or first. What two variables share neither
    /// holds alone, and a table has to show it too.
    fn weight(&self) -> u64 {
        let alone = self.exclusive.saturating_add(self.outside.allocated);
        let Share { reach, outside } = self.first_reached;
        alone.max(reach.bytes.saturating_add(outside.allocated))
    }
}

impl HeapAnalysis {
    /// The holders of a level, those that hold most alone or first at the top. Each root is below one of them.
    pub fn holder_rows(&self, level: Level) -> Vec<HolderRow> {
        let mut rows: Vec<HolderRow> =
            self.ends(level).into_iter().map(|holder| self.holder_row(holder)).collect();
        rows.sort_by_key(|row| {
            std::cmp::Reverse((row.weight(), row.exclusive, row.outside.mapped))
        });
        rows
    }

    fn holder_row(&self, holder: HolderId) -> HolderRow {
        let position = self.dominators.position(Node::Holder(holder));
        HolderRow {
            holder,
            roots: self.holders.roots(holder),
            exclusive: self.dominators.retained_by(holder),
            outside: position
                .map(|position| self.dominators.retained_outside(position))
                .unwrap_or_default(),
            first_reached: self.share(holder),
        }
    }

    fn share(&self, holder: HolderId) -> Share {
        self.shares.get(holder as usize).copied().unwrap_or_default()
    }

    /// The holders at which a level ends; of a path without it, the kind, or for
    /// variables the last holder.
    fn ends(&self, level: Level) -> Vec<HolderId> {
        let mut ends = Vec::new();
        let mut has_children = vec![false; self.holders.len()];
        for holder in self.holders.ids().skip(1) {
            if let Some(place) = has_children.get_mut(self.holders.parent(holder) as usize) {
                *place = true;
            }
        }
        for holder in self.holders.ids().skip(1) {
            let is_last = !has_children.get(holder as usize).copied().unwrap_or(false);
            let on_path = || {
                let path = self.holders.path(holder);
                path.iter().find(|id| level.ends_at(self.holders.name(**id))).copied()
            };
            if is_last {
                let kind = || self.holders.path(holder).first().copied();
                let end = match level {
                    Level::Variable => Some(holder),
                    _ => on_path().or_else(kind),
                };
                ends.extend(end);
            }
        }
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// All kinds, those that retain most first.
    pub fn kind_rows(&self) -> &[KindRow] {
        self.kind_rows.get_or_init(|| self.count_kinds())
    }

    fn count_kinds(&self) -> Vec<KindRow> {
        let row = |kind| KindRow { kind, ..KindRow::default() };
        let mut rows: Vec<KindRow> = (0..self.kinds.len() as KindId).map(row).collect();
        self.count_own(&mut rows);
        self.count_retained(&mut rows);
        rows.retain(|row| row.own.blocks > 0);
        rows.sort_by_key(|row| {
            let size = row.at_least.max(row.own.bytes).saturating_add(row.outside.allocated);
            std::cmp::Reverse((size, row.own.bytes, row.outside.mapped))
        });
        rows
    }

    /// What each of these holders reaches.
    pub fn reachable_from_holders(&self, holders: &[HolderId]) -> Vec<Reach> {
        let roots = holders.iter().map(|holder| self.holders.all_root_blocks(*holder));
        self.reachable_from_each(&roots.collect::<Vec<_>>())
    }

    /// What is reachable from the blocks of each of these kinds that are alive, with these blocks.
    pub fn reachable_from_kinds(&self, kinds: &[KindId]) -> Vec<Reach> {
        let mut sets = vec![Vec::new(); kinds.len()];
        let mut set_of = vec![None; self.kinds.len()];
        for (set, kind) in kinds.iter().enumerate() {
            if let Some(place) = set_of.get_mut(*kind as usize) {
                *place = Some(set);
            }
        }
        for position in 0..self.dominators.len() as u32 {
            if let Node::Block(block) = self.dominators.node(position)
                && let Some(Some(set)) = set_of.get(self.kind(block) as usize)
                && let Some(set) = sets.get_mut(*set)
            {
                set.push(block);
            }
        }
        self.reachable_from_each(&sets)
    }

    fn count_own(&self, rows: &mut [KindRow]) {
        for position in 0..self.dominators.len() as u32 {
            let Node::Block(block) = self.dominators.node(position) else { continue };
            if let Some(row) = rows.get_mut(self.kind(block) as usize) {
                row.own = row.own.plus(Reach::of(&self.graph, block));
            }
        }
        self.count_outside(rows);
    }

    /// An area counts once for each kind that has blocks which keep it.
    fn count_outside(&self, rows: &mut [KindRow]) {
        let is_alive = |block: u32| self.dominators.position(Node::Block(block)).is_some();
        let kept = self.graph.kept_areas().iter().filter(|(block, _)| is_alive(*block));
        let mut kept: Vec<_> = kept.map(|&(block, area)| (self.kind(block), area)).collect();
        kept.sort_unstable();
        kept.dedup();
        for (kind, area) in kept {
            if let Some(row) = rows.get_mut(kind as usize) {
                row.outside = row.outside.plus(self.graph.area_bytes(area));
            }
        }
    }

    /// A block counts with what it retains, unless a block of its kind retains it.
    fn count_retained(&self, rows: &mut [KindRow]) {
        let children = self.dominators.children();
        let mut above = vec![0u32; rows.len()];
        // Positions that are entered, and with `true` those that are left.
        let mut stack = vec![(DominatorTree::PROGRAM, false)];
        while let Some((position, is_left)) = stack.pop() {
            let kind = match self.dominators.node(position) {
                Node::Block(block) => Some(self.kind(block) as usize),
                Node::Holder(_) => None,
            };
            let count = kind.and_then(|kind| above.get_mut(kind));
            if is_left {
                if let Some(count) = count {
                    *count -= 1;
                }
                continue;
            }
            if let Some(count) = count {
                if *count == 0
                    && let Some(row) = kind.and_then(|kind| rows.get_mut(kind))
                {
                    let retained = self.dominators.retained(position);
                    row.at_least = row.at_least.saturating_add(retained);
                }
                *count += 1;
                stack.push((position, true));
            }
            stack.extend(children.of(position).iter().map(|child| (*child, false)));
        }
    }
}
