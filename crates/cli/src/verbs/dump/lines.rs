//! Events as lines: what the formats of `dump` share.

use std::io::{self, Write};

use heaptap_trace::{Event, LocationTable, Source};

/// A format that has a line for each event.
pub(super) trait EventLines {
    fn write(
        &mut self,
        out: &mut impl Write,
        event: &Event<'_>,
        table: &LocationTable,
    ) -> io::Result<()>;
}

/// Microseconds from the start of the trace, before which only a damaged one
/// has events. Both are below 2⁶³.
pub(super) fn since(start: u64, time: u64) -> i64 {
    time as i64 - start as i64
}

pub(super) fn source_name(source: Source) -> &'static str {
    match source {
        Source::Minor => "minor",
        Source::Major => "major",
        Source::External => "external",
    }
}
