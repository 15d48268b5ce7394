//! How much of what is reachable in a heap has types.

use heaptap_graph::{TypeCoverage, TypeShare};
use serde::Serialize;

/// Blocks and their words, without headers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TypedShare {
    pub blocks: u64,
    pub words: u64,
}

impl From<TypeShare> for TypedShare {
    fn from(share: TypeShare) -> TypedShare {
        TypedShare { blocks: share.blocks, words: share.words }
    }
}

/// How much of what is reachable in a heap has types, and what was in the way.
#[derive(Clone, Debug, Serialize)]
pub struct TypeFigures {
    /// The type is declared, and the block looks like it.
    declared: TypedShare,
    /// The tag says what it is: a string, a float, a closure.
    by_tag: TypedShare,
    guessed: TypedShare,
    unknown: TypedShare,
    pub notes: Vec<String>,
}

impl TypeFigures {
    pub fn new(coverage: &TypeCoverage, notes: Vec<String>) -> TypeFigures {
        TypeFigures {
            declared: coverage.declared.into(),
            by_tag: coverage.by_tag.into(),
            guessed: coverage.guessed.into(),
            unknown: coverage.unknown.into(),
            notes,
        }
    }

    /// The shares, with their names.
    pub fn shares(&self) -> [(&'static str, TypedShare); 4] {
        [
            ("declared", self.declared),
            ("by tag", self.by_tag),
            ("guessed", self.guessed),
            ("unknown", self.unknown),
        ]
    }
}
