//! The kind of a block.

use std::collections::HashMap;

use heaptap_heap::MetaKey;

use crate::graph::{BlockShape, GivenName, HeapGraph};

/// The number of a kind in its [`Kinds`].
pub type KindId = u32;

/// OCaml's tags (`runtime/caml/mlvalues.h`, 4.13.1 and 5.3.0).
pub(super) mod tag {
    pub(in crate::kinds) const CONT: u32 = 245;
    pub(in crate::kinds) const LAZY: u32 = 246;
    pub(in crate::kinds) const CLOSURE: u32 = 247;
    pub(in crate::kinds) const OBJECT: u32 = 248;
    pub(in crate::kinds) const INFIX: u32 = 249;
    pub(in crate::kinds) const FORWARD: u32 = 250;
    pub(in crate::kinds) const ABSTRACT: u32 = 251;
    pub(in crate::kinds) const STRING: u32 = 252;
    pub(in crate::kinds) const DOUBLE: u32 = 253;
    pub(in crate::kinds) const DOUBLE_ARRAY: u32 = 254;
    pub(in crate::kinds) const CUSTOM: u32 = 255;
}

/// The words of blocks that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SizeRange {
    /// Any size.
    Any,
    /// This size.
    Exactly(u64),
    /// More than 2^n - 1 words and less than 2^(n + 1).
    PowerOfTwo(u32),
    /// This size or more.
    AtLeast(u64),
}

impl SizeRange {
    /// Bigger blocks are joined to ranges.
    const MOST_EXACT: u64 = 15;

    fn of(words: u64) -> SizeRange {
        if words <= SizeRange::MOST_EXACT {
            SizeRange::Exactly(words)
        } else {
            SizeRange::PowerOfTwo(words.ilog2())
        }
    }
}

/// What blocks that are alike have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockKind {
    /// Tag and size.
    Shape {
        /// The tag.
        tag: u32,
        /// The size, or a range of sizes.
        size: SizeRange,
    },
    /// A closure of the function at this code address.
    Closure(u64),
    /// A custom block with operations at this address.
    Custom(u64),
    /// An ephemeron or a weak array.
    Ephemeron,
    /// A block that was given this name.
    Given(GivenName),
}

impl BlockKind {
    /// One for all ranges of sizes.
    pub fn of_any_size(self) -> BlockKind {
        match self {
            BlockKind::Shape { tag, size: SizeRange::PowerOfTwo(_) } => {
                let size = SizeRange::AtLeast(SizeRange::MOST_EXACT + 1);
                BlockKind::Shape { tag, size }
            }
            kind => kind,
        }
    }
}

/// The kinds of a graph's blocks.
#[derive(Debug)]
pub struct Kinds {
    kinds: Vec<BlockKind>,
    ids: HashMap<BlockKind, KindId>,
    /// By shape, for all other blocks.
    of_shapes: Vec<KindId>,
    /// By the number of a name that blocks were given.
    of_names: HashMap<GivenName, KindId>,
    /// By block, ascending: closures, customs and ephemerons.
    of_blocks: Vec<(u32, KindId)>,
}

impl Kinds {
    /// Kinds every block.
    pub fn new(graph: &HeapGraph) -> Kinds {
        let is_ocaml = is_ocaml(graph);
        let mut kinds = Kinds {
            kinds: Vec::new(),
            ids: HashMap::new(),
            of_shapes: Vec::new(),
            of_names: HashMap::new(),
            of_blocks: Vec::new(),
        };
        for shape in graph.shapes() {
            let kind = kinds.id(kind_of_shape(*shape, is_ocaml));
            kinds.of_shapes.push(kind);
        }
        for block in 0..graph.blocks() as u32 {
            if let Some(name) = graph.given_names().of(block)
                && !kinds.of_names.contains_key(&name)
            {
                let kind = kinds.id(BlockKind::Given(name));
                kinds.of_names.insert(name, kind);
            }
        }
        for custom in graph.customs() {
            let kind = kinds.id(BlockKind::Custom(custom.operations));
            kinds.of_blocks.push((custom.block, kind));
        }
        for block in graph.blocks_with_code() {
            if !is_ocaml || graph.shape(block).tag == tag::CLOSURE {
                let code = graph.code(block).unwrap_or_default();
                let kind = kinds.id(BlockKind::Closure(code));
                kinds.of_blocks.push((block, kind));
            }
        }
        for (block, ..) in graph.ephemerons() {
            let kind = kinds.id(BlockKind::Ephemeron);
            kinds.of_blocks.push((block, kind));
        }
        kinds.of_blocks.sort_unstable();
        kinds.of_blocks.dedup_by_key(|entry| entry.0);
        kinds
    }

    fn id(&mut self, kind: BlockKind) -> KindId {
        let next = self.kinds.len() as KindId;
        let id = *self.ids.entry(kind).or_insert(next);
        if id == next {
            self.kinds.push(kind);
        }
        id
    }

    /// The kind of a block.
    pub fn of(&self, graph: &HeapGraph, block: u32) -> KindId {
        if let Some(name) = graph.given_names().of(block)
            && let Some(kind) = self.of_names.get(&name)
        {
            return *kind;
        }
        match self.of_blocks.binary_search_by_key(&block, |entry| entry.0) {
            Ok(at) => self.of_blocks.get(at).map_or(0, |entry| entry.1),
            Err(_) => {
                let shape = graph.shape_id(block) as usize;
                self.of_shapes.get(shape).copied().unwrap_or_default()
            }
        }
    }

    /// Of a block and one that it points to: which of its pointers that is, from 0, if the block looks like a record. Not
    /// of arrays, whose elements are alike, and not of cells, which lead to cells.
    pub fn pointer_of_record(&self, graph: &HeapGraph, from: u32, to: u32) -> Option<u32> {
        /// An array has this number of elements of one kind, or more.
        const LEAST_ARRAY: usize = 4;
        let targets = graph.targets(from);
        if graph.words(from) > SizeRange::MOST_EXACT || targets.len() < 2 {
            return None;
        }
        let own = self.of(graph, from);
        let mut kinds = targets.iter().map(|target| self.of(graph, *target));
        let first = kinds.clone().next();
        let is_array =
            targets.len() >= LEAST_ARRAY && kinds.clone().all(|kind| Some(kind) == first);
        if is_array || kinds.any(|kind| kind == own) {
            return None;
        }
        targets.iter().position(|target| *target == to).map(|at| at as u32)
    }

    /// What a number stands for.
    pub fn kind(&self, id: KindId) -> Option<BlockKind> {
        self.kinds.get(id as usize).copied()
    }

    /// How many kinds there are.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }
}

/// Whether tags are OCaml's.
pub(super) fn is_ocaml(graph: &HeapGraph) -> bool {
    graph.facts().meta(MetaKey::RUNTIME).is_some_and(|runtime| runtime.starts_with(b"OCaml"))
}

fn kind_of_shape(shape: BlockShape, is_ocaml: bool) -> BlockKind {
    let BlockShape { tag, words } = shape;
    let size = match tag {
        tag::STRING | tag::DOUBLE | tag::DOUBLE_ARRAY | tag::ABSTRACT | tag::CUSTOM if is_ocaml => {
            SizeRange::Any
        }
        _ => SizeRange::of(words),
    };
    BlockKind::Shape { tag, size }
}
