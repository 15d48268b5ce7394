//! `FILE.probes`, the sidecar of a trace: what the memtrace format cannot hold.
//!
//! A program's own quantities (*probes*: points, timers, values, tags, log lines) and the *time
//! line* of its collector and its process. `docs/probes-format.md` describes the bytes.
//!
//! | module | job |
//! |---|---|
//! | [`event`] | what a sidecar says: one [`Event`] at a time |
//! | [`encode`] | from events to packets: the plugin's writer thread |
//! | [`decode`] | from bytes to events, also of a file that is still written |
//! | `fields` | the bytes of each event, for both |
//! | `name` | what the sidecar of a trace is called |
//! | [`thin`] | the same in fewer rows, so that a file does not grow with time |
//! | [`history`] | all events of a file as series over time: what tools show; `series`: one of them |
//!
//! No dependencies but `heaptap_codec`: the encoder is loaded into the traced program.

pub mod decode;
pub mod encode;
pub mod event;
mod fields;
pub mod history;
// The page, which is WebAssembly, has no files.
#[cfg(unix)]
mod name;
mod packet;
mod series;
pub mod thin;

pub use decode::{Damage, Decoder};
pub use encode::Encoder;
pub use event::Spacing;
pub use event::{Event, Heap, Pauses, ProbeKind, SliceKind, Start, System, TagSize, Timed};
pub use history::{History, Probe, Sample, Slice};
#[cfg(unix)]
pub use name::sidecar_name;
pub use thin::{Dropped, Thinner, Thinning};

/// The most bytes of a probe's name, a text or a log line; the rest is cut off.
pub const MAX_TEXT: usize = 1_024;

/// The most probes of a program.
pub const MAX_PROBES: usize = 65_536;

/// How many bytes [`is_sidecar`] looks at.
pub const SIDECAR_START: usize = 20;

/// Whether these are the first bytes of a sidecar. A trace begins with the same four.
#[must_use]
pub fn is_sidecar(bytes: &[u8]) -> bool {
    bytes.get(..4) == Some(&packet::MAGIC.to_le_bytes()) && bytes.get(4..20) == Some(&packet::UUID)
}
