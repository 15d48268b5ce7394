//! A heap snapshot's figures.
//!
//! - `tables`: what holds what, as rows; `types`: how much has types.
//! - `titles`: names of holders and blocks, with what is around them; `path_steps`: paths to blocks.
//! - `findings`: the suspects in words.
//! - `growth`: two snapshots compared; `sets`: the blocks that both this and `findings` compare.
//! - `sites`: where what is held was allocated.
//! - `page`: the document of the web page; `page_tree`: the dominator tree in it.

pub mod findings;
pub mod growth;
pub mod page;
pub mod page_tree;
pub mod path_steps;
pub mod sets;
pub mod sites;
pub mod tables;
pub mod titles;
pub mod types;
