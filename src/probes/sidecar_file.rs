//! A sidecar that is being written: events in, packets out.

use std::ffi::OsString;
use std::io;

use heaptap_probes::thin::log_bytes;
use heaptap_probes::{Decoder, Dropped, Encoder, Event, Start, Thinner, Thinning, Timed};

use super::sidecar_output::{SidecarOutput, SidecarReplacement};
use super::sidecar_trace::{SidecarOwner, TraceAt};

/// How much of a file is read at once to thin it.
const CHUNK: usize = 64 << 10;

/// An open sidecar, and what it has so far. Its errors are for the user.
pub(super) struct SidecarFile {
    /// The trace it belongs to, and when that begins, in microseconds since the epoch.
    trace: OsString,
    start_us: u64,
    out: SidecarOutput,
    encoder: Encoder,
    pid: u64,
    /// How many probes it has the names of.
    pub(super) named: usize,
    /// The bytes of the log in it.
    log_bytes: u64,
}

/// The same in fewer rows, in a file that has not taken its place yet.
pub(super) struct ThinnedFile {
    replacement: SidecarReplacement,
    pub(super) bytes: u64,
    pub(super) dropped: Dropped,
    log_bytes: u64,
}

impl SidecarFile {
    /// The sidecar of this trace, in an empty output.
    pub(super) fn begin(
        out: SidecarOutput,
        trace: TraceAt<'_>,
        owner: SidecarOwner,
    ) -> Result<SidecarFile, String> {
        let pid = u64::from(owner.pid);
        let mut file = SidecarFile {
            trace: trace.file.to_owned(),
            start_us: trace.start_us,
            out,
            encoder: Encoder::new(pid),
            pid,
            named: 0,
            log_bytes: 0,
        };
        file.start(trace, owner)?;
        Ok(file)
    }

    fn start(&mut self, trace: TraceAt<'_>, owner: SidecarOwner) -> Result<(), String> {
        let SidecarOwner { host, program, pid } = owner;
        let word_size = size_of::<usize>() as u8;
        let (trace_start, pid) = (trace.start_us, u64::from(pid));
        let start = Start { trace_start, pid, word_size, host, program };
        self.add(trace.start_ns(), Event::Start(start))
    }

    /// Begins again, in a file that was truncated.
    pub(super) fn restart(
        &mut self,
        trace: TraceAt<'_>,
        owner: SidecarOwner,
    ) -> Result<(), String> {
        self.out.restart().map_err(|error| self.cannot_write(&error))?;
        (self.encoder, self.named, self.log_bytes) = (Encoder::new(self.pid), 0, 0);
        self.start(trace, owner)
    }

    /// Whether somebody has truncated it.
    pub(super) fn was_truncated(&mut self) -> bool {
        self.out.was_truncated()
    }

    /// Whether it is the sidecar of this trace, and not of one that had the same name before.
    pub(super) fn belongs_to(&self, trace: TraceAt<'_>) -> bool {
        self.trace == trace.file && self.start_us == trace.start_us
    }

    /// Its name in messages.
    pub(super) fn name(&self) -> impl std::fmt::Display + '_ {
        self.out.name().display()
    }

    /// Its size with all that was added.
    pub(super) fn bytes(&self) -> u64 {
        self.out.written() + self.encoder.pending() as u64
    }

    /// The bytes of the log in it.
    pub(super) fn log_bytes(&self) -> u64 {
        self.log_bytes
    }

    pub(super) fn add(&mut self, time: u64, event: Event) -> Result<(), String> {
        self.log_bytes += log_bytes(&event);
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
        self.out.write_all(packet).map_err(|error| self.cannot_write(&error))
    }

    fn cannot_write(&self, error: &io::Error) -> String {
        format!("cannot write {}: {error}; the trace goes on without it", self.name())
    }

    /// The same in fewer rows. Everything that was added is written.
    pub(super) fn thinned(&self, thinning: Thinning) -> io::Result<ThinnedFile> {
        let mut replacement = self.out.replacement()?;
        let (mut encoder, mut log) = (Encoder::new(self.pid), 0);
        let out = &mut replacement;
        let mut keep = |timed: Timed| {
            log += log_bytes(&timed.event);
            encoder.add(&timed).map_or(Ok(()), |packet| out.write_all(&packet))
        };
        let mut thinner = Thinner::new(thinning);
        let (mut decoder, mut room, mut read) = (Decoder::new(), vec![0; CHUNK], 0);
        loop {
            let count = self.out.read_at(&mut room, read)?;
            if count == 0 {
                break;
            }
            read += count as u64;
            decoder.feed(room.get(..count).unwrap_or_default());
            while let Some(timed) = decoder.next_event().map_err(io::Error::other)? {
                thinner.add(timed, &mut keep)?;
            }
        }
        if read != self.out.written() || decoder.pending() > 0 {
            return Err(io::Error::other("somebody else has written to it"));
        }
        let dropped = thinner.finish(&mut keep)?;
        encoder.take().map_or(Ok(()), |packet| out.write_all(&packet))?;
        let bytes = out.written()?;
        Ok(ThinnedFile { replacement, bytes, dropped, log_bytes: log })
    }

    /// Goes on in the other file, which takes the place of this one.
    pub(super) fn replace(&mut self, time: u64, thinned: ThinnedFile) -> io::Result<()> {
        let old = self.out.replace(thinned.replacement)?;
        self.log_bytes = thinned.log_bytes;
        let Some(mut old) = old else { return Ok(()) };
        let mut last = Encoder::new(self.pid);
        let full = last.add(&Timed { time, event: Event::Replaced });
        // For those who tail the old file. If it cannot be written, they find out by its name.
        let packets = full.into_iter().chain(last.take());
        packets.for_each(|packet| _ = io::Write::write_all(&mut old, &packet));
        Ok(())
    }

    /// Nothing follows.
    pub(super) fn close(mut self, time: u64) -> Result<(), String> {
        self.add(time, Event::End)?;
        self.flush()
    }
}
