//! The label of a block.

use std::collections::HashMap;

use heaptap_heap::MetaKey;

use crate::graph::{BlockShape, GivenName, HeapGraph};

/// The number of a label in its [`Labels`].
pub type LabelId = u32;

/// OCaml's tags (`runtime/caml/mlvalues.h`, 4.13.1 and 5.3.0).
pub(super) mod tag {
    pub(in crate::labels) const CONT: u32 = 245;
    pub(in crate::labels) const LAZY: u32 = 246;
    pub(in crate::labels) const CLOSURE: u32 = 247;
    pub(in crate::labels) const OBJECT: u32 = 248;
    pub(in crate::labels) const INFIX: u32 = 249;
    pub(in crate::labels) const FORWARD: u32 = 250;
    pub(in crate::labels) const ABSTRACT: u32 = 251;
    pub(in crate::labels) const STRING: u32 = 252;
    pub(in crate::labels) const DOUBLE: u32 = 253;
    pub(in crate::labels) const DOUBLE_ARRAY: u32 = 254;
    pub(in crate::labels) const CUSTOM: u32 = 255;
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
pub enum BlockLabel {
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

impl BlockLabel {
    /// One for all ranges of sizes.
    pub fn of_any_size(self) -> BlockLabel {
        match self {
            BlockLabel::Shape { tag, size: SizeRange::PowerOfTwo(_) } => {
                let size = SizeRange::AtLeast(SizeRange::MOST_EXACT + 1);
                BlockLabel::Shape { tag, size }
            }
            label => label,
        }
    }
}

/// The labels of a graph's blocks.
#[derive(Debug)]
pub struct Labels {
    labels: Vec<BlockLabel>,
    ids: HashMap<BlockLabel, LabelId>,
    /// By shape, for all other blocks.
    of_shapes: Vec<LabelId>,
    /// By the number of a name that blocks were given.
    of_names: HashMap<GivenName, LabelId>,
    /// By block, ascending: closures, customs and ephemerons.
    of_blocks: Vec<(u32, LabelId)>,
}

impl Labels {
    /// Labels every block.
    pub fn new(graph: &HeapGraph) -> Labels {
        let is_ocaml = is_ocaml(graph);
        let mut labels = Labels {
            labels: Vec::new(),
            ids: HashMap::new(),
            of_shapes: Vec::new(),
            of_names: HashMap::new(),
            of_blocks: Vec::new(),
        };
        for shape in graph.shapes() {
            let label = labels.id(label_of_shape(*shape, is_ocaml));
            labels.of_shapes.push(label);
        }
        for block in 0..graph.blocks() as u32 {
            if let Some(name) = graph.given_names().of(block)
                && !labels.of_names.contains_key(&name)
            {
                let label = labels.id(BlockLabel::Given(name));
                labels.of_names.insert(name, label);
            }
        }
        for custom in graph.customs() {
            let label = labels.id(BlockLabel::Custom(custom.operations));
            labels.of_blocks.push((custom.block, label));
        }
        for block in graph.blocks_with_code() {
            if !is_ocaml || graph.shape(block).tag == tag::CLOSURE {
                let code = graph.code(block).unwrap_or_default();
                let label = labels.id(BlockLabel::Closure(code));
                labels.of_blocks.push((block, label));
            }
        }
        for (block, ..) in graph.ephemerons() {
            let label = labels.id(BlockLabel::Ephemeron);
            labels.of_blocks.push((block, label));
        }
        labels.of_blocks.sort_unstable();
        labels.of_blocks.dedup_by_key(|entry| entry.0);
        labels
    }

    fn id(&mut self, label: BlockLabel) -> LabelId {
        let next = self.labels.len() as LabelId;
        let id = *self.ids.entry(label).or_insert(next);
        if id == next {
            self.labels.push(label);
        }
        id
    }

    /// The label of a block.
    pub fn of(&self, graph: &HeapGraph, block: u32) -> LabelId {
        if let Some(name) = graph.given_names().of(block)
            && let Some(label) = self.of_names.get(&name)
        {
            return *label;
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
        /// An array has this number of elements of one label, or more.
        const LEAST_ARRAY: usize = 4;
        let targets = graph.targets(from);
        if graph.words(from) > SizeRange::MOST_EXACT || targets.len() < 2 {
            return None;
        }
        let own = self.of(graph, from);
        let mut labels = targets.iter().map(|target| self.of(graph, *target));
        let first = labels.clone().next();
        let is_array =
            targets.len() >= LEAST_ARRAY && labels.clone().all(|label| Some(label) == first);
        if is_array || labels.any(|label| label == own) {
            return None;
        }
        targets.iter().position(|target| *target == to).map(|at| at as u32)
    }

    /// What a number stands for.
    pub fn label(&self, id: LabelId) -> Option<BlockLabel> {
        self.labels.get(id as usize).copied()
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}

/// Whether tags are OCaml's.
pub(super) fn is_ocaml(graph: &HeapGraph) -> bool {
    graph.facts().meta(MetaKey::RUNTIME).is_some_and(|runtime| runtime.starts_with(b"OCaml"))
}

fn label_of_shape(shape: BlockShape, is_ocaml: bool) -> BlockLabel {
    let BlockShape { tag, words } = shape;
    let size = match tag {
        tag::STRING | tag::DOUBLE | tag::DOUBLE_ARRAY | tag::ABSTRACT | tag::CUSTOM if is_ocaml => {
            SizeRange::Any
        }
        _ => SizeRange::of(words),
    };
    BlockLabel::Shape { tag, size }
}
