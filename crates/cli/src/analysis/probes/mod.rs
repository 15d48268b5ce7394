//! What a sidecar says, for `probes`, `report --timeline`, `top` and the web page: [`figures`] of the
//! program's own probes at a moment, the [`intervals`] of its time line, what is old enough to have survived a [`major`] collection, the [`tree`] of their names, their states in [`words`], and all of it for the web [`page`].

pub(crate) mod figures;
pub(crate) mod intervals;
pub(crate) mod major;
pub(crate) mod page;
pub(crate) mod tree;
pub(crate) mod words;
