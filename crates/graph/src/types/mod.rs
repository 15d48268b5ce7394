//! Types of blocks, from the declared types of the variables of modules.
//!
//! - `table`: [`TypeTable`], what is declared: types of variables, definitions of types.
//! - `ground`: types without parameters, each with a number, made as they are needed.
//! - `layout`: what a block of a type looks like, and whether one does.
//! - `spread`: from typed variables to what they reach.
//! - `guess`: what the shape of a block alone suggests; `special`: the types of that.
//! - `block_types`: [`BlockTypes`], the result. `name`: types as text; `given`: as names of blocks.
//!
//! The table comes from a file and is hostile: indices are checked once, when it is made, and
//! the number and depth of types are bounded. Nothing recurses over blocks.

mod block_types;
mod given;
mod ground;
mod guess;
mod layout;
mod name;
mod special;
mod spread;
mod table;

pub use block_types::{
    BlockTypes, Mismatch, ModuleProblem, ProblemKind, TypeCoverage, TypeShare, TypeSource,
    TypedBlocks,
};
pub use ground::TypeId;
pub use spread::GlobalRoot;
pub use table::{
    Builtin, Constructor, Definition, DefinitionBody, FieldType, ModuleGlobals, PolymorphicCase,
    TableError, TypeExpression, TypeTable,
};
