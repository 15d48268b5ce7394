//! What the analysing verbs share (`report`, `leaks`, `hot`, `diff`, `export`): the
//! reading of a trace ([`aggregate`]), the options that select blocks ([`filters`])
//! and tables ([`view`]), the folding of [`recursion`], and the figures they print ([`size`], [`call_site`]).

pub(crate) mod aggregate;
pub(crate) mod call_site;
pub(crate) mod filters;
pub(crate) mod recursion;
pub(crate) mod size;
pub(crate) mod view;
