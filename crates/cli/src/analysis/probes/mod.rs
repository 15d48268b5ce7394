//! What a sidecar says, for `probes`, `report --timeline`, `top` and the web page: [`figures`] of the
//! program's own probes at a moment, the [`tree`] of their names, and their states in [`words`].

pub(crate) mod figures;
pub(crate) mod tree;
pub(crate) mod words;
