//! What a sidecar says, for `probes`, `report --timeline`, `top` and the web page: [`figures`] of the
//! program's own probes at a moment, the [`intervals`] of its time line, the [`tree`] of their names, and their states in [`words`].

pub(crate) mod figures;
pub(crate) mod intervals;
pub(crate) mod tree;
pub(crate) mod words;
