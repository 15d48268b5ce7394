//! A heap snapshot, analysed, for the verbs that show one.
//!
//! - `load`: reads a snapshot and finds what holds what.
//! - `titles`: names of holders and blocks, with what is around them; `path_steps`: paths to blocks.
//! - `row_kind`: the option `--by`; `figures`: the tables as values that JSON, CSV and text are made of.
//! - `types`: how much has types.
//! - `findings`: the suspects in words.
//! - `page_snapshots`: snapshots as the web page shows them; `page_tree`: their dominator trees.
//! - `growth`: two snapshots compared; `sets`: the blocks that both this and `findings` compare; `site_growth`: by where
//!   blocks were allocated.
//! - `followed`: the blocks that a snapshot and its trace both have. `sites`: where what is held was allocated;
//!   `held`: what holds the rows of a trace's report.

pub(crate) mod figures;
pub(crate) mod findings;
mod followed;
pub(crate) mod growth;
pub(crate) mod held;
pub(crate) mod load;
pub(crate) mod page_snapshots;
mod page_tree;
pub(crate) mod path_steps;
pub(crate) mod row_kind;
pub(crate) mod sets;
pub(crate) mod site_growth;
pub(crate) mod sites;
pub(crate) mod titles;
pub(crate) mod types;
