//! Events as lines: what the formats of `dump` share.

use std::io::{self, Write};

use heaptap_trace::{Code, Event, LocationTable};

use super::stack::StackText;

/// An event that was read.
pub(super) struct ReadEvent<'a, 'e> {
    /// Microseconds from the start of the trace.
    pub(super) time: i64,
    pub(super) event: &'a Event<'e>,
    pub(super) table: &'a LocationTable,
    /// The rate at which its block was sampled, if it is an allocation that may have one of its own.
    pub(super) rate: Option<f64>,
}

/// A format that has a line for each event.
pub(super) trait EventLines {
    /// Writes the line of an event.
    fn write(
        out: &mut impl Write,
        stack: &mut StackText,
        read: &ReadEvent<'_, '_>,
    ) -> io::Result<()>;

    /// Appends the text of a frame to a line.
    fn put_frame(line: &mut Vec<u8>, first: bool, code: Code, table: &LocationTable);
}
