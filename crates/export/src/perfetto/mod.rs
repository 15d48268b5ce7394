//! The format of Perfetto: a trace with a heap profile, and with counters of live and allocated
//! bytes; with the time line of the collector and the probes of the program, if the trace has a
//! sidecar. Of several traces, each has them on the track of its process, below its name: processes of several
//! hosts, or one after the other, may have the same number.
//!
//! `packets` writes the packets of `proto`; the others fill them: `heap`, `counters`, `sidecar`.

mod counters;
mod heap;
mod packets;
mod proto;
mod sidecar;

use std::collections::HashMap;
use std::io::{self, Write};

use heaptap_report::Stacks;
use heaptap_report::rows::By;

use crate::{ExportInput, Format, Sidecars, program};
use packets::{Packets, Track};

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
    if let Some(sidecars) = input.sidecars {
        write_sidecars(input, sidecars, &mut packets, process)?;
    }
    heap::write(input, stacks, &mut packets)
}

fn write_sidecars(
    input: &ExportInput<'_>,
    sidecars: &dyn Sidecars,
    packets: &mut Packets<'_>,
    process: Track,
) -> io::Result<()> {
    let word_bytes = input.aggregate.scale().word_bytes;
    let mut processes = HashMap::from([(input.info.pid, process)]);
    sidecars.each(&mut |sidecar| {
        let pid = sidecar.info.pid;
        let process = match processes.get(&pid) {
            Some(&process) => process,
            None => packets.process(pid, &program(sidecar.info))?,
        };
        processes.insert(pid, process);
        let parent = match sidecar.trace {
            Some(trace) => packets.track(process, trace)?,
            None => process,
        };
        sidecar::write(sidecar.history, word_bytes, packets, parent)
    })
}
