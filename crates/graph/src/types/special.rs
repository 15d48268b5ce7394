//! Types that have no definition: what a shape alone says.

use super::ground::TypeId;

/// A type that has no definition. Ground types never have these numbers.
pub(super) const fn special(number: u32) -> TypeId {
    TypeId(TypeId::IMMEDIATE.0 - 1 - number)
}

pub(super) const STRING: TypeId = special(0);
pub(super) const FLOAT: TypeId = special(1);
pub(super) const FLOATS: TypeId = special(2);
pub(super) const CLOSURE: TypeId = special(3);
pub(super) const OBJECT: TypeId = special(4);
pub(super) const CUSTOM: TypeId = special(5);
pub(super) const LAZY: TypeId = special(6);
pub(super) const LIST: TypeId = special(7);

/// The name of a type that has no definition.
pub(super) fn name(id: TypeId) -> Option<&'static str> {
    Some(match id {
        STRING => "string or bytes",
        FLOAT => "float",
        FLOATS => "float array or record",
        CLOSURE => "closure",
        OBJECT => "object or exception constructor",
        CUSTOM => "custom block",
        LAZY => "_ Lazy.t",
        LIST => "_ list",
        _ => return None,
    })
}
