//! What a trace says, whatever file format it is stored in.
//!
//! - `event`: [`Event`] and what it consists of.
//! - `info`: [`TraceInfo`], about the traced process.
//! - `location`, `table`: source locations, and [`LocationTable`], which
//!   resolves the codes of backtraces to them. `index` is its hash
//!   table.
//! - `locate`: [`Locate`], the other direction: a writer asks for the locations
//!   of a code.
//! - `damage`: [`ReadError`], [`Losses`] and the defects behind them.
//! - `options`: [`Mode`] and [`Limits`], how a trace is read.
//! - `stream`: [`EventSource`] and [`EventSink`], which the formats implement.
//!
//! Nothing here knows a file format.

mod damage;
pub(crate) mod event;
mod index;
mod info;
pub(crate) mod locate;
mod location;
mod options;
mod stream;
pub(crate) mod table;

pub use crate::model::damage::{CutReason, CutShort, FormatDefect, Located, Losses, ReadError};
pub use crate::model::event::{
    Allocation, Backtrace, Block, Code, End, Event, EventKind, Frames, LOST_FRAME, Source,
};
pub use crate::model::info::TraceInfo;
pub use crate::model::locate::{Locate, LocationList};
pub use crate::model::location::{Location, NameId, NamedLocation};
pub use crate::model::options::{Limits, Mode};
pub use crate::model::stream::{EventSink, EventSource};
pub use crate::model::table::LocationTable;
