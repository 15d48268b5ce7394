//! The graph in memory.
//!
//! Blocks have numbers of 32 bits in the order of their addresses. Pointers are in
//! compressed rows: those of block `n` are `edges[offsets[n]..offsets[n + 1]]`. About 9 bytes
//! a block and 4 a pointer.

use heaptap_heap::{FinaliserKind, RootKind, RootOwner};

use super::areas::{Area, AreaId, AreaTable, CustomNode, OutsideBytes};
use super::facts::HeapFacts;
use super::given_names::GivenNames;
use super::shapes::{BlockShape, ShapeId, ShapeTable};
use super::starts::BlockStarts;

/// What a root is held by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RootHolder {
    /// What the snapshot says.
    Owner(RootOwner),
    /// A finaliser, which holds its function and, unless it runs last, its value.
    Finaliser(FinaliserKind),
}

impl RootHolder {
    /// Its kind.
    pub fn kind(self) -> RootKind {
        match self {
            RootHolder::Owner(owner) => owner.kind(),
            RootHolder::Finaliser(_) => RootKind::Finaliser,
        }
    }
}

/// A root whose block is in the snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeapRoot {
    pub(crate) holder: RootHolder,
    pub(crate) target: u32,
}

/// A finaliser; its blocks if they are in the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinaliserNode {
    /// When it runs.
    pub kind: FinaliserKind,
    /// The value's block.
    pub value: Option<u32>,
    /// The function's block.
    pub function: Option<u32>,
}

/// An ephemeron. Its keys are a row of [`HeapGraph::ephemeron_keys`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct EphemeronNode {
    pub(crate) block: u32,
    pub(crate) data: Option<u32>,
    pub(super) keys_from: usize,
    pub(super) keys_to: usize,
}

/// The first code addresses in a block; 0 where there is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodeNode {
    pub(super) block: u32,
    pub(super) first: u64,
    pub(super) second: u64,
}

/// A pointer that leads to no block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostPointer {
    /// The block that has it, or the continuation of the suspended stack.
    pub(crate) block: u32,
    /// `None`: a slot of a suspended stack.
    pub(crate) field: Option<u64>,
    /// Where it points to.
    pub(crate) target: u64,
}

/// The blocks of a snapshot and the pointers between them.
#[derive(Debug)]
pub struct HeapGraph {
    pub(super) starts: BlockStarts,
    pub(super) shapes: ShapeTable,
    /// By block.
    pub(super) shape_ids: Vec<ShapeId>,
    /// One more than there are blocks.
    pub(super) offsets: Vec<u32>,
    /// Targets, row by row. What a suspended stack holds is in the row of its continuation.
    pub(super) edges: Vec<u32>,
    /// The field of each edge, if they were asked for.
    pub(super) fields: Option<Vec<u32>>,
    /// Roots, and what finalisers hold.
    pub(crate) roots: Vec<HeapRoot>,
    pub(super) finalisers: Vec<FinaliserNode>,
    pub(crate) ephemerons: Vec<EphemeronNode>,
    pub(super) ephemeron_keys: Vec<u32>,
    /// By ascending block.
    pub(super) customs: Vec<CustomNode>,
    pub(super) areas: AreaTable,
    /// By ascending block.
    pub(super) codes: Vec<CodeNode>,
    /// Blocks that the trace tracks, with their ids in it.
    pub(super) tracked: Vec<(u32, u64)>,
    /// Strings that are included to their end, with a hash of their contents.
    pub(super) strings: Vec<(u32, u64)>,
    pub(super) facts: HeapFacts,
    pub(super) given_names: GivenNames,
    pub(super) header_words: u64,
    /// Of blocks that are alive, once the graph is complete.
    pub(super) lost_pointers: Vec<LostPointer>,
    pub(super) lost_by_garbage: u64,
    pub(super) dangling: u64,
}

impl HeapGraph {
    /// What a field number means that is not known: a slot of a suspended stack.
    pub const NO_FIELD: u32 = u32::MAX;

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.shape_ids.len()
    }

    /// How many pointers there are, with those of suspended stacks.
    pub fn pointers(&self) -> usize {
        self.edges.len()
    }

    /// How many roots, and pointers of blocks that are alive, lead to no block. They are left out.
    pub fn dangling(&self) -> u64 {
        self.dangling
    }

    /// The number of the block at an address.
    pub fn number(&self, address: u64) -> Option<u32> {
        self.starts.number(address).and_then(|number| number.try_into().ok())
    }

    /// The address of a block.
    pub fn address(&self, block: u32) -> Option<u64> {
        self.starts.address(block.into())
    }

    /// The number of a block's shape.
    pub fn shape_id(&self, block: u32) -> ShapeId {
        self.shape_ids.get(block as usize).copied().unwrap_or_default()
    }

    /// All shapes, by their numbers.
    pub fn shapes(&self) -> &[BlockShape] {
        self.shapes.shapes()
    }

    /// Tag and size of a block.
    pub fn shape(&self, block: u32) -> BlockShape {
        let shape = self.shapes().get(self.shape_id(block) as usize).copied();
        shape.unwrap_or(BlockShape { tag: 0, words: 0 })
    }

    /// The words of a block, without its header.
    pub fn words(&self, block: u32) -> u64 {
        self.shape(block).words
    }

    /// The bytes of a block, with its header.
    pub fn bytes(&self, block: u32) -> u64 {
        self.shape_bytes(self.shape(block))
    }

    /// The bytes of a block with this shape, with its header.
    pub fn shape_bytes(&self, shape: BlockShape) -> u64 {
        shape.words.saturating_add(self.header_words).saturating_mul(8)
    }

    /// The blocks that a block points to.
    pub fn targets(&self, block: u32) -> &[u32] {
        self.row(block, &self.edges)
    }

    /// The fields of these pointers, in the same order; empty unless they were loaded.
    pub fn fields(&self, block: u32) -> &[u32] {
        self.fields.as_ref().map_or(&[], |fields| self.row(block, fields))
    }

    fn row<'a>(&self, block: u32, table: &'a [u32]) -> &'a [u32] {
        let index = block as usize;
        let range = self.offsets.get(index).zip(self.offsets.get(index + 1));
        range.and_then(|(&from, &to)| table.get(from as usize..to as usize)).unwrap_or_default()
    }

    /// The names.
    pub fn facts(&self) -> &HeapFacts {
        &self.facts
    }

    /// Names that blocks and variables were given.
    pub fn given_names(&self) -> &GivenNames {
        &self.given_names
    }

    /// Gives names to blocks and variables. Kinds and reports then use these.
    pub fn give_names(&mut self, names: GivenNames) {
        self.given_names = names;
    }

    /// The roots: what holds them and the block.
    pub fn roots(&self) -> impl Iterator<Item = (RootHolder, u32)> {
        self.roots.iter().map(|root| (root.holder, root.target))
    }

    /// The finalisers.
    pub fn finalisers(&self) -> &[FinaliserNode] {
        &self.finalisers
    }

    /// The custom blocks, by ascending block.
    pub fn customs(&self) -> &[CustomNode] {
        &self.customs
    }

    /// The custom block of this number.
    pub fn custom(&self, block: u32) -> Option<&CustomNode> {
        let at = self.customs.binary_search_by_key(&block, |custom| custom.block).ok()?;
        self.customs.get(at)
    }

    /// The areas outside the heap, by their numbers.
    pub fn areas(&self) -> &[Area] {
        self.areas.areas()
    }

    /// The bytes of an area.
    pub fn area_bytes(&self, area: AreaId) -> OutsideBytes {
        self.areas.bytes(area)
    }

    /// The areas that a block keeps.
    pub fn areas_of(&self, block: u32) -> impl Iterator<Item = AreaId> {
        self.areas.of(block)
    }

    /// Blocks with an area that they keep, by ascending block.
    pub fn kept_areas(&self) -> &[(u32, AreaId)] {
        self.areas.kept()
    }

    /// Areas with a block that keeps them, by ascending area.
    pub fn area_keepers(&self) -> &[(AreaId, u32)] {
        self.areas.keepers()
    }

    /// The code address of a closure's function.
    pub fn code(&self, block: u32) -> Option<u64> {
        let at = self.codes.binary_search_by_key(&block, |code| code.block).ok()?;
        let &CodeNode { first, second, .. } = self.codes.get(at)?;
        // A function of several arguments comes after the code that applies it to one at a time.
        let helper = self.facts.code(first).map_or(&b""[..], |name| &name.function);
        let is_helper =
            [&b"caml_curry"[..], b"caml_tuplify"].iter().any(|name| helper.starts_with(name));
        Some(if is_helper && second != 0 { second } else { first })
    }

    /// The blocks that have code addresses, ascending.
    pub fn blocks_with_code(&self) -> impl Iterator<Item = u32> {
        self.codes.iter().map(|code| code.block)
    }

    /// The blocks that the trace tracks, with their ids in it.
    pub fn tracked(&self) -> &[(u32, u64)] {
        &self.tracked
    }

    /// The strings whose contents the snapshot has to their end, each with a hash of these.
    pub fn strings(&self) -> &[(u32, u64)] {
        &self.strings
    }

    /// The ephemerons: block, data and keys.
    pub fn ephemerons(&self) -> impl Iterator<Item = (u32, Option<u32>, &[u32])> {
        self.ephemerons.iter().map(|node| (node.block, node.data, self.keys(node)))
    }

    /// An ephemeron by its number: block, data and keys.
    pub(crate) fn ephemeron(&self, number: u32) -> Option<(u32, Option<u32>, &[u32])> {
        let node = self.ephemerons.get(number as usize)?;
        Some((node.block, node.data, self.keys(node)))
    }

    pub(super) fn keys(&self, ephemeron: &EphemeronNode) -> &[u32] {
        self.ephemeron_keys.get(ephemeron.keys_from..ephemeron.keys_to).unwrap_or_default()
    }
}
