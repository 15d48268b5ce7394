//! Events as lines of text. The verb's help documents the format.

use std::io::{self, Write};

use heaptap_trace::{Allocation, Code, EventKind, LOST_FRAME, LocationTable};

use crate::text::escape;

use super::lines::{EventLines, ReadEvent};
use super::stack::StackText;

pub(super) struct TextLines;

impl EventLines for TextLines {
    fn write(
        out: &mut impl Write,
        stack: &mut StackText,
        read: &ReadEvent<'_, '_>,
    ) -> io::Result<()> {
        let &ReadEvent { time, event, table, .. } = read;
        let domain = event.domain;
        match event.kind {
            EventKind::Alloc(allocation) => {
                let Allocation { id, length, samples, backtrace, .. } = allocation;
                let source = allocation.source.name();
                let (depth, common) = (backtrace.frames.len(), backtrace.common_prefix);
                write!(
                    out,
                    "{time} {domain} {id} alloc length={length} samples={samples} \
                     source={source} depth={depth} common={common}"
                )?;
                stack.write(out, backtrace.frames, table)?;
                out.write_all(b"\n")
            }
            EventKind::Promote(id) => writeln!(out, "{time} {domain} {id} promote"),
            EventKind::Collect(id) => writeln!(out, "{time} {domain} {id} collect"),
            // A kind that the documented format has no line for.
            _ => Ok(()),
        }
    }

    fn put_frame(line: &mut Vec<u8>, _first: bool, code: Code, table: &LocationTable) {
        line.push(b' ');
        if code == LOST_FRAME {
            line.extend_from_slice(b"<lost>");
            return;
        }
        let mut separator: &[u8] = b"";
        for location in table.resolve(code) {
            line.extend_from_slice(separator);
            separator = b";";
            escape::put(line, location.definition, |byte| matches!(byte, b' ' | b';'));
            line.push(b'@');
            escape::put(line, location.file, |byte| matches!(byte, b' ' | b';' | b'@'));
            // Writing to a vector does not fail.
            let _ =
                write!(line, ":{}:{}-{}", location.line, location.start_char, location.end_char);
        }
        if separator.is_empty() {
            let _ = write!(line, "{code:#x}");
        }
    }
}
