//! What a trace says, whatever the format it is stored in.

pub(crate) mod event;
mod index;
pub(crate) mod info;
pub(crate) mod location;
mod seeded;

pub use crate::model::event::{Allocation, Backtrace, Code, Event, EventKind, LOST_FRAME, Source};
pub use crate::model::info::TraceInfo;
pub use crate::model::location::{Location, LocationTable, NameId, NamedLocation};
