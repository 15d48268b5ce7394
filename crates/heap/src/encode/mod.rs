//! From calls to chunks, without allocation.
//!
//! The encoder runs where nothing may be allocated, nothing may panic and the
//! stack is short: in a clone of a process, or at a safe point of its runtime. All
//! buffers are in a [`Workspace`] that the caller provides. Blocks are gathered
//! column by column (`blocks`; `open_block`: the one that is being described; `symbols` and `extras`:
//! some of the columns), everything else record by record (`records`).

mod blocks;
mod encoder;
mod extras;
mod open_block;
mod record_state;
mod records;
mod symbols;
mod workspace;

pub use encoder::{Encoder, Sink};
pub use workspace::Workspace;
