//! The shapes of blocks: tag and size.
//!
//! A heap has few of them, so that a block needs one number for both.

use std::collections::HashMap;

/// Tag and size of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockShape {
    /// Its tag.
    pub tag: u32,
    /// Its words, without its header.
    pub words: u64,
}

/// The number of a shape in its [`HeapGraph`](super::HeapGraph).
pub type ShapeId = u32;

/// All shapes of a heap, numbered in the order in which they were met.
#[derive(Debug, Default)]
pub(super) struct ShapeTable {
    shapes: Vec<BlockShape>,
    ids: HashMap<BlockShape, ShapeId>,
    /// The last one: blocks of one shape often follow each other.
    last: Option<(BlockShape, ShapeId)>,
}

impl ShapeTable {
    pub(super) fn id(&mut self, shape: BlockShape) -> ShapeId {
        if let Some((_, id)) = self.last.filter(|(last, _)| *last == shape) {
            return id;
        }
        let next = self.shapes.len() as ShapeId;
        let id = *self.ids.entry(shape).or_insert(next);
        if id == next {
            self.shapes.push(shape);
        }
        self.last = Some((shape, id));
        id
    }

    pub(super) fn shapes(&self) -> &[BlockShape] {
        &self.shapes
    }

    /// About the memory in use.
    pub(super) fn memory(&self) -> u64 {
        self.shapes.len() as u64 * 64
    }

    /// The table is complete: only the list is kept.
    pub(super) fn seal(&mut self) {
        self.ids = HashMap::new();
        self.shapes.shrink_to_fit();
    }
}
