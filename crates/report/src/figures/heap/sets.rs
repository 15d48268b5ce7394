//! Sets: blocks that are alike and held alike, as nodes of the joined dominator tree; and which sets of two snapshots
//! are the same.
//!
//! Two sets are the same if the names on their paths are, from the last holder down. What grows is copied to bigger
//! blocks, as the array of a hash table is, and then has another name: of the blocks below one set that have no namesake,
//! those of one tag are the same in the order of what they retain.

use std::collections::{BTreeMap, HashMap};

use heaptap_graph::{BlockKind, HeapAnalysis, KindId, RetainedId, RetainedKind};

use super::titles::Titles;

/// The size of a set.
#[derive(Clone, Copy, Debug, Default)]
pub struct SetSize {
    pub blocks: u64,
    /// What its blocks retain.
    pub retained_bytes: u64,
    /// The same outside the heap.
    pub outside_bytes: u64,
}

/// A set in its [`SetTree`].
pub type SetId = u32;

/// A number for each name, the same in both snapshots.
#[derive(Default)]
pub struct SetNames {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
}

impl SetNames {
    fn number(&mut self, name: String) -> u32 {
        let next = self.names.len() as u32;
        *self.numbers.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            next
        })
    }
}

struct SetNode {
    /// A number of [`SetNames`].
    name: u32,
    parent: SetId,
    /// The tag of blocks that differ from others by their size alone.
    tag: Option<u32>,
    /// False for holders, and for what has no name.
    is_set: bool,
    size: SetSize,
}

/// The sets of a snapshot. Sets of one path are added up. Set 0 stands for no holder; holders are below it.
pub struct SetTree {
    nodes: Vec<SetNode>,
    children: HashMap<(SetId, u32), SetId>,
    /// By node of the joined tree.
    set_of: Vec<SetId>,
}

impl SetTree {
    pub fn new(analysis: &HeapAnalysis, names: &mut SetNames) -> SetTree {
        let titles = Titles::new(analysis);
        let top =
            SetNode { name: 0, parent: 0, tag: None, is_set: false, size: SetSize::default() };
        let mut tree = SetTree { nodes: vec![top], children: HashMap::new(), set_of: Vec::new() };
        let mut of_kinds: HashMap<KindId, u32> = HashMap::new();
        for (id, node) in (0..).zip(analysis.retained.nodes()) {
            let parent = tree.set_of.get(node.parent as usize).copied().unwrap_or_default();
            let set = match node.kind {
                RetainedKind::Holder(_) if id == 0 => 0,
                RetainedKind::Holder(_) => {
                    tree.child(0, names.number(titles.retained(id)), None, false)
                }
                RetainedKind::Blocks(kind) if node.pointer.is_some() => {
                    let name = names.number(titles.retained(id));
                    tree.child(parent, name, tag(analysis, kind), true)
                }
                RetainedKind::Blocks(kind) => {
                    let name =
                        *of_kinds.entry(kind).or_insert_with(|| names.number(titles.retained(id)));
                    tree.child(parent, name, tag(analysis, kind), true)
                }
                RetainedKind::Others => {
                    tree.child(parent, names.number(titles.retained(id)), None, false)
                }
            };
            tree.set_of.push(set);
            if let Some(SetNode { size, is_set: true, .. }) = tree.nodes.get_mut(set as usize) {
                size.blocks = size.blocks.saturating_add(node.blocks);
                size.retained_bytes = size.retained_bytes.saturating_add(node.retained);
                size.outside_bytes = size.outside_bytes.saturating_add(node.outside.allocated);
            }
        }
        tree
    }

    fn child(&mut self, parent: SetId, name: u32, tag: Option<u32>, is_set: bool) -> SetId {
        let next = self.nodes.len() as SetId;
        let id = *self.children.entry((parent, name)).or_insert(next);
        if id == next {
            self.nodes.push(SetNode { name, parent, tag, is_set, size: SetSize::default() });
        }
        id
    }

    pub fn size(&self, set: SetId) -> SetSize {
        self.nodes.get(set as usize).map(|node| node.size).unwrap_or_default()
    }

    /// The set of a node of the joined tree.
    pub fn set_of(&self, node: RetainedId) -> Option<SetId> {
        self.set_of.get(node as usize).copied()
    }

    /// The names from the holder down.
    pub fn path<'a>(&self, names: &'a SetNames, set: SetId) -> Vec<&'a str> {
        let mut path = Vec::new();
        let mut at = set;
        while let Some(node) = self.nodes.get(at as usize).filter(|_| at != 0) {
            path.extend(names.names.get(node.name as usize).map(String::as_str));
            at = node.parent;
        }
        path.reverse();
        path
    }
}

/// The tag of blocks whose kind is tag and size.
fn tag(analysis: &HeapAnalysis, kind: KindId) -> Option<u32> {
    match analysis.kinds.kind(kind) {
        Some(BlockKind::Shape { tag, .. }) => Some(tag),
        _ => None,
    }
}

/// A set of the earlier snapshot and one of the later, of which at least one is there.
pub type SetPair = (Option<SetId>, Option<SetId>);

/// All sets of two snapshots, those that are the same as pairs.
pub fn pairs(before: &SetTree, after: &SetTree) -> Vec<SetPair> {
    let mut earlier: Vec<Option<SetId>> = vec![None; after.nodes.len()];
    let mut is_paired = vec![false; before.nodes.len()];
    let mut pair = |old: SetId, new: SetId, earlier: &mut Vec<Option<SetId>>| {
        if let (Some(place), Some(is_paired)) =
            (earlier.get_mut(new as usize), is_paired.get_mut(old as usize))
        {
            *place = Some(old);
            *is_paired = true;
        }
    };
    pair(0, 0, &mut earlier);
    let (of_before, of_after) = (before.by_parent(), after.by_parent());
    // A parent has a lower number, so that it is paired before its children.
    for new in 0..after.nodes.len() as SetId {
        let Some(old) = earlier.get(new as usize).copied().flatten() else { continue };
        let (news, olds) = (of_after.get(&new), of_before.get(&old));
        let (Some(news), Some(olds)) = (news, olds) else { continue };
        let mut unpaired: BTreeMap<u32, [Vec<SetId>; 2]> = BTreeMap::new();
        let mut same: HashMap<u32, SetId> = olds.iter().map(|id| (before.name(*id), *id)).collect();
        for &id in news {
            match same.remove(&after.name(id)) {
                Some(namesake) => pair(namesake, id, &mut earlier),
                None => {
                    let tag = after.nodes.get(id as usize).and_then(|node| node.tag);
                    tag.into_iter().for_each(|tag| unpaired.entry(tag).or_default()[1].push(id));
                }
            }
        }
        for id in same.into_values() {
            let tag = before.nodes.get(id as usize).and_then(|node| node.tag);
            tag.into_iter().for_each(|tag| unpaired.entry(tag).or_default()[0].push(id));
        }
        for [mut olds, mut news] in unpaired.into_values() {
            olds.sort_by_key(|id| (std::cmp::Reverse(before.size(*id).retained_bytes), *id));
            news.sort_by_key(|id| (std::cmp::Reverse(after.size(*id).retained_bytes), *id));
            olds.into_iter().zip(news).for_each(|(old, new)| pair(old, new, &mut earlier));
        }
    }
    let is_set =
        |tree: &SetTree, id: SetId| tree.nodes.get(id as usize).is_some_and(|node| node.is_set);
    let news = (0..).zip(earlier).filter(|(new, _)| is_set(after, *new));
    let gone = (0..).zip(is_paired).filter(|(old, paired)| !paired && is_set(before, *old));
    news.map(|(new, old)| (old, Some(new))).chain(gone.map(|(old, _)| (Some(old), None))).collect()
}

impl SetTree {
    fn name(&self, set: SetId) -> u32 {
        self.nodes.get(set as usize).map_or(0, |node| node.name)
    }

    fn by_parent(&self) -> HashMap<SetId, Vec<SetId>> {
        let mut children: HashMap<SetId, Vec<SetId>> = HashMap::new();
        for (id, node) in (0..).zip(&self.nodes).skip(1) {
            children.entry(node.parent).or_default().push(id);
        }
        children
    }
}

/// The change from one number to another.
pub fn change(before: u64, after: u64) -> i64 {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    signed(after).saturating_sub(signed(before))
}
