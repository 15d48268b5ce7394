//! The format of Perfetto: a trace with a heap profile, and with counters of live and allocated
//! bytes; with the time line of the collector and the probes of the program, if the trace has a
//! sidecar.
//!
//! `packets` writes the packets of `proto`; the others fill them: `heap`, `counters`, `sidecar`.

mod counters;
mod heap;
mod packets;
mod proto;
mod sidecar;

use std::io::{self, Write};

use heaptap_report::Stacks;
use heaptap_report::rows::By;

use crate::{ExportInput, Format};
use packets::Packets;

pub(crate) const FORMAT: Format = Format {
    name: "perfetto",
    help: "For ui.perfetto.dev and the trace processor, with the time line and the probes of FILE.probes",
    is_binary: true,
    takes_sidecar: true,
    by: By::Location,
    write,
};

fn write(input: &ExportInput<'_>, stacks: &Stacks<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut packets = Packets::new(out, input.nanos(0))?;
    let process = packets.process(input.info.pid, &input.program())?;
    counters::write(input, stacks, &mut packets, process)?;
    if let Some(history) = input.sidecar {
        sidecar::write(history, input.aggregate.scale().word_bytes, &mut packets, process)?;
    }
    heap::write(input, stacks, &mut packets)
}
