//! What the analysing verbs share (`report`, `leaks`, `hot`, `diff`, `export`): the
//! reading of a trace ([`aggregate`], in [`time_order`]) or of [`several`], their form for the web page ([`archive`]), the options that select blocks ([`filters`])
//! and tables ([`view`]), the folding of [`recursion`], and the figures they print ([`size`], [`call_site`]).

pub(crate) mod aggregate;
pub(crate) mod archive;
pub(crate) mod call_site;
pub(crate) mod filters;
pub(crate) mod recursion;
pub(crate) mod several;
pub(crate) mod size;
pub(crate) mod time_order;
pub(crate) mod view;
