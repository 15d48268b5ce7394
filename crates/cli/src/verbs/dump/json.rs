//! Events as JSON Lines. The verb's help documents the fields.

use std::io::{self, Write};

use heaptap_trace::{Allocation, Code, EventKind, LOST_FRAME, LocationTable};

use crate::text::json;

use super::lines::{EventLines, ReadEvent};
use super::stack::StackText;

pub(super) struct JsonLines;

impl EventLines for JsonLines {
    fn write(
        out: &mut impl Write,
        stack: &mut StackText,
        read: &ReadEvent<'_, '_>,
    ) -> io::Result<()> {
        let &ReadEvent { time, event, table, rate } = read;
        let (kind, id) = match event.kind {
            EventKind::Alloc(allocation) => ("alloc", allocation.id),
            EventKind::Promote(id) => ("promote", id),
            EventKind::Collect(id) => ("collect", id),
            // A kind that the documented format has no line for.
            _ => return Ok(()),
        };
        let (absolute, domain) = (event.time, event.domain);
        write!(
            out,
            "{{\"event\":\"{kind}\",\"time_us\":{time},\"unix_us\":{absolute},\
             \"domain\":{domain},\"id\":{id}"
        )?;
        if let EventKind::Alloc(allocation) = event.kind {
            let Allocation { length, samples, backtrace, .. } = allocation;
            let source = allocation.source.name();
            let (depth, common) = (backtrace.frames.len(), backtrace.common_prefix);
            write!(
                out,
                ",\"length\":{length},\"samples\":{samples},\"source\":\"{source}\",\
                 \"depth\":{depth},\"common\":{common},\"frames\":["
            )?;
            stack.write(out, backtrace.frames, table)?;
            out.write_all(b"]")?;
            if let Some(rate) = rate {
                write!(out, ",\"sample_rate\":{rate}")?;
            }
        }
        out.write_all(b"}\n")
    }

    fn put_frame(line: &mut Vec<u8>, first: bool, code: Code, table: &LocationTable) {
        if !first {
            line.push(b',');
        }
        // Writing to a vector does not fail.
        let _ = match code {
            LOST_FRAME => write!(line, "{{\"code\":null,\"locations\":["),
            _ => write!(line, "{{\"code\":\"{code:#x}\",\"locations\":["),
        };
        let mut separator: &[u8] = b"";
        for location in table.resolve(code) {
            line.extend_from_slice(separator);
            separator = b",";
            line.extend_from_slice(b"{\"definition\":");
            json::put_name(line, location.definition);
            line.extend_from_slice(b",\"file\":");
            json::put_name(line, location.file);
            let (start, end) = (location.start_char, location.end_char);
            let _ = write!(line, ",\"line\":{},\"start\":{start},\"end\":{end}}}", location.line);
        }
        line.extend_from_slice(b"]}");
    }
}
