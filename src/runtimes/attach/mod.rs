//! What any runtime that is traced as it is needs.

pub(crate) mod endings;
pub(crate) mod environment;
pub(crate) mod image;
pub(crate) mod late;
pub mod linked;
pub(crate) mod own_stack;
pub(crate) mod patch;
pub(crate) mod refusal;
pub(crate) mod report;
pub(crate) mod symbols;
pub(crate) mod unwinding;
