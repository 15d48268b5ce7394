//! A sidecar that is being written: events in, packets out.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

use heaptap_probes::{Encoder, Event, Start, Timed};

use super::sidecar_trace::{SidecarOwner, TraceAt};
use crate::sys::file;
use crate::sys::output::Output;

/// See the module. Its errors are for the user.
pub(super) struct SidecarFile {
    /// The trace it belongs to, and when that begins, in microseconds since the epoch.
    trace: OsString,
    start_us: u64,
    out: Output,
    encoder: Encoder,
    /// How many probes it has the names of.
    pub(super) named: usize,
}

impl SidecarFile {
    /// Makes the sidecar of this trace.
    pub(super) fn create(trace: TraceAt<'_>, owner: SidecarOwner) -> Result<SidecarFile, String> {
        let name = heaptap_probes::sidecar_name(trace.file);
        let out = file::create_sidecar(Path::new(&name))
            .map_err(|error| format!("{error}; the trace goes on without it"))?;
        let SidecarOwner { host, program, pid } = owner;
        let pid = u64::from(pid);
        let mut file = SidecarFile {
            trace: trace.file.to_owned(),
            start_us: trace.start_us,
            out,
            encoder: Encoder::new(pid),
            named: 0,
        };
        let word_size = size_of::<usize>() as u8;
        let start = Start { trace_start: trace.start_us, pid, word_size, host, program };
        file.add(trace.start_ns(), Event::Start(start))?;
        Ok(file)
    }

    /// Whether it is the sidecar of this trace, and not of one that had the same name before.
    pub(super) fn belongs_to(&self, trace: TraceAt<'_>) -> bool {
        self.trace == trace.file && self.start_us == trace.start_us
    }

    pub(super) fn add(&mut self, time: u64, event: Event) -> Result<(), String> {
        match self.encoder.add(&Timed { time, event }) {
            Some(packet) => self.write(&packet),
            None => Ok(()),
        }
    }

    /// Writes everything that was added.
    pub(super) fn flush(&mut self) -> Result<(), String> {
        self.encoder.take().map_or(Ok(()), |packet| self.write(&packet))
    }

    fn write(&mut self, packet: &[u8]) -> Result<(), String> {
        self.out.write_all(packet).map_err(|error| {
            let name = self.out.path().display();
            format!("cannot write {name}: {error}; the trace goes on without it")
        })
    }

    /// Nothing follows.
    pub(super) fn close(mut self, time: u64) -> Result<(), String> {
        self.add(time, Event::End)?;
        self.flush()
    }
}
