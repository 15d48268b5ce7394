//! Events as lines: what the formats of `dump` share.

use std::io::{self, Write};

use heaptap_trace::{Code, Event, LocationTable};

use super::stack::StackText;

/// A format that has a line for each event.
pub(super) trait EventLines {
    /// Writes the line of an event. `time`: microseconds from the start of the trace.
    fn write(
        out: &mut impl Write,
        stack: &mut StackText,
        time: i64,
        event: &Event<'_>,
        table: &LocationTable,
    ) -> io::Result<()>;

    /// Appends the text of a frame to a line.
    fn put_frame(line: &mut Vec<u8>, first: bool, code: Code, table: &LocationTable);
}
