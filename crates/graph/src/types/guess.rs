//! Types from shapes alone, for blocks that no declaration reaches.

use super::block_types::{BlockTypes, TypeSource, TypedBlocks};
use super::ground::TypeId;
use super::layout::tags;
use super::special::{CLOSURE, CUSTOM, FLOAT, FLOATS, LAZY, LIST, OBJECT, STRING};

fn by_tag(tag: u32) -> Option<TypeId> {
    Some(match tag {
        tags::STRING => STRING,
        tags::DOUBLE => FLOAT,
        tags::DOUBLE_ARRAY => FLOATS,
        tags::CLOSURE | tags::INFIX => CLOSURE,
        tags::OBJECT => OBJECT,
        tags::CUSTOM => CUSTOM,
        tags::LAZY | tags::FORCING | tags::FORWARD => LAZY,
        _ => return None,
    })
}

/// Fills in what the tag says, and chains that look like lists.
pub(super) fn fill(graph: &impl TypedBlocks, types: &mut BlockTypes) {
    let count = graph.blocks() as u32;
    // A pair whose second field leads on to a pair is a cell of a list if a third one follows.
    for first in 0..count {
        let Some(second) = next_pair(graph, types, first) else { continue };
        let Some(third) = next_pair(graph, types, second) else { continue };
        for block in [first, second, third] {
            types.guess(block, LIST, TypeSource::Guessed);
        }
    }
    for block in 0..count {
        if let Some(id) = by_tag(graph.shape(block).0) {
            types.guess(block, id, TypeSource::Tag);
        }
    }
}

/// The pair that the second field of a pair leads to, if no declaration types either.
fn next_pair(graph: &impl TypedBlocks, types: &BlockTypes, block: u32) -> Option<u32> {
    if graph.shape(block) != (0, 2) || !is_candidate(types, block) {
        return None;
    }
    let mut pointers = graph.fields(block).iter().zip(graph.targets(block));
    let (_, &next) = pointers.find(|(field, _)| **field == 1)?;
    (graph.shape(next) == (0, 2) && is_candidate(types, next)).then_some(next)
}

fn is_candidate(types: &BlockTypes, block: u32) -> bool {
    types.get(block).is_none_or(|(id, _)| id == LIST)
}
