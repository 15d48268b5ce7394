//! The queries of the viewer: a page opens archives and asks for figures, both as
//! bytes, so that the same code answers in a browser's worker and in `heaptap serve`.
//!
//! The map:
//!
//! - [`Engine`] has the archives that are open, and answers requests.
//! - `request` is the form of a request; `selection` turns its filter into one of
//!   `heaptap-report`.
//! - `block_rows` and `evolution` sort the blocks of an archive into rows and over time,
//!   `block_counts` counts them, and `totals` says what rows have with all that they call.
//! - `traces` has the aggregates: that of the whole trace, and those of selections,
//!   the last of which are `kept`, as are the rows of a table (`table_rows`) and where sites are
//!   `on_stacks`.
//! - `info`, `report`, `table`, `timeline`, `heat_map`, `tree`, `site`, `leaks`, `diff` and
//!   `source` each answer one kind of request.
//! - `exact` finds which reading a request needs, if it is not to come from the table.
//! - `wasm` exports the engine to a browser.
//!
//! Requests come from a page's address, and archives by mail: nothing is trusted,
//! and what goes wrong is an answer `{"error": …}`.

mod answer;
mod block_counts;
mod block_rows;
mod diff;
mod engine;
mod evolution;
mod exact;
mod heat_map;
mod info;
mod kept;
mod leaks;
mod on_stacks;
mod report;
mod request;
mod selection;
mod site;
mod source;
mod table;
mod table_rows;
mod timeline;
mod totals;
mod traces;
mod tree;
#[cfg(test)]
mod types_tests;
#[cfg(target_arch = "wasm32")]
mod wasm;

pub use engine::Engine;
pub use exact::ExactRequest;
pub use info::FileFacts;
pub use leaks::stored_leaks;
pub use request::{Filter, Request, TraceRequest};
