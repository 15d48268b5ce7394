//! What a trace says, whatever file format it is stored in.
//!
//! - `event`: [`Event`] and what it consists of.
//! - `info`: [`TraceInfo`], about the traced process.
//! - `location`, `table`: source locations, and [`LocationTable`], which
//!   resolves the codes of backtraces to them. `index` is its hash
//!   table.
//! - `locate`: [`Locate`], the other direction: a writer asks for the locations
//!   of a code.
//! - `kind`: kinds of blocks, which travel in the codes of frames.
//! - `damage`: [`ReadError`], [`Losses`] and the defects behind them.
//! - `head`: [`TraceHead`], what the first bytes of a file say.
//! - `totals`: [`TraceTotals`], counts of events and bytes. `write_error`: [`WriteError`].
//! - `options`: [`Mode`] and [`Limits`], how a trace is read.
//! - `format`: [`TraceFormat`], the names of the formats and what can be said in each.
//! - `stream`: what the formats implement, [`EventSource`] and [`EventSink`] above all.
//! - `live_sink`: [`LiveSink`], what the traced program writes through.
//!
//! Nothing here knows the bytes of a format.

mod damage;
pub(crate) mod event;
mod format;
mod head;
mod index;
mod info;
mod kind;
mod live_sink;
pub(crate) mod locate;
mod location;
mod options;
mod stream;
pub(crate) mod table;
mod totals;
mod write_error;

pub use crate::model::damage::{
    CutReason, CutShort, FormatDefect, Located, Losses, ReadError, TraceDefect, Unreadable,
};
pub use crate::model::event::{
    Allocation, Backtrace, Block, Code, End, Event, EventKind, Frames, LOST_FRAME, Source,
};
pub use crate::model::format::TraceFormat;
pub use crate::model::head::{Completion, TraceHead, TraceOrigin};
pub use crate::model::info::TraceInfo;
pub(crate) use crate::model::kind::merged_code;
pub use crate::model::kind::{KIND_FILE, code_of_kind, kind_name_code, kind_of, without_kind};
pub use crate::model::live_sink::{DomainSink, ElidableFrames, LeftOut, LiveSink, SmallAlloc};
pub use crate::model::locate::{Locate, LocationList};
pub use crate::model::location::{Location, NameId, NamedLocation};
pub use crate::model::options::{Limits, Mode};
pub use crate::model::stream::{EventSink, EventSource, LiveSource, Place, Polled, TraceReader};
pub use crate::model::table::LocationTable;
pub use crate::model::totals::TraceTotals;
pub use crate::model::write_error::WriteError;
