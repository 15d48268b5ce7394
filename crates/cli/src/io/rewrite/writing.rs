//! Writing the events of one trace into another.
//!
//! A lenient reader returns times that run backwards and frames that damage made
//! unknown. Neither can be written, so [`Rewriting`] raises a time to that of the
//! domain's last event, and [renames](super::renaming) frames.

use std::collections::HashMap;
use std::io::{BufWriter, Write};

use heaptap_report::figures::units::count;
use heaptap_trace::{
    Block, Code, Completion, End, EventSink, Frames, Locate, LocationList, LocationTable, Losses,
    NamedLocation, TraceFormat, TraceInfo, WriteError, create,
};

use crate::exit_status::Failure;
use crate::io::notices::say;
use crate::io::output::Output;
use crate::io::rewrite::renaming::{LOST, Renaming};

/// The locations of the codes in the new trace.
struct Names<R> {
    renaming: R,
    /// The locations written for each code. A damaged trace may define a code again
    /// and differently; the new one defines it the same every time.
    written_locations: HashMap<Code, Box<[NamedLocation]>>,
}

impl<R> Names<R> {
    fn locator<'a>(&'a mut self, table: &'a LocationTable) -> CodeLocator<'a, R> {
        CodeLocator { names: self, table }
    }
}

/// Gives the encoder the locations of codes.
struct CodeLocator<'a, R> {
    names: &'a mut Names<R>,
    table: &'a LocationTable,
}

impl<R: Renaming> Locate for CodeLocator<'_, R> {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        let Names { renaming, written_locations } = &mut *self.names;
        let Some(origin) = renaming.origin(code) else {
            list.add(LOST);
            return;
        };
        let read = || self.table.get(origin).unwrap_or(&[]).into();
        for location in &**written_locations.entry(code).or_insert_with(read) {
            renaming.rename(self.table.named(location), location, list);
        }
    }
}

/// The file that a sink fills, in large writes.
type FileOutput = BufWriter<Output>;

/// A trace being written from the events of another.
pub(super) struct Rewriting<R> {
    sink: Box<dyn EventSink<Output = FileOutput>>,
    name: String,
    names: Names<R>,
    /// Time of the last event, by domain.
    last_times: Vec<u64>,
    start_time: u64,
    /// Events whose time was raised.
    late: u64,
    /// Room for the frames of one backtrace.
    frames: Vec<Code>,
}

impl<R: Renaming> Rewriting<R> {
    /// Begins the trace that `info` describes, a copy of one with these losses.
    pub(super) fn begin(
        output: Output,
        format: TraceFormat,
        info: &TraceInfo,
        original: &Losses,
        renaming: R,
    ) -> Result<Self, Failure> {
        let name = output.name().to_string();
        let out = BufWriter::with_capacity(1 << 17, output);
        let completion = Completion::of_copy(original.cut_short.map(|cut| cut.reason));
        let sink =
            create(out, format, info, completion).map_err(|error| write_failure(&name, error))?;
        Ok(Rewriting {
            sink,
            name,
            names: Names { renaming, written_locations: HashMap::new() },
            last_times: Vec::new(),
            start_time: info.start_time,
            late: 0,
            frames: Vec::new(),
        })
    }

    /// Writes an allocation and returns its id.
    pub(super) fn allocate(
        &mut self,
        domain: u16,
        time: u64,
        block: Block,
        frames: Frames<'_>,
        table: &LocationTable,
    ) -> Result<u64, Failure> {
        let time = self.raise_time(domain, time);
        let (Frames::Whole(codes) | Frames::Suffix { new: codes, .. }) = frames;
        self.frames.clear();
        for &code in codes {
            self.frames.push(self.names.renaming.code(code, table)?);
        }
        let frames = match frames {
            Frames::Whole(_) => Frames::Whole(&self.frames),
            Frames::Suffix { common_prefix, .. } => {
                Frames::Suffix { common_prefix, new: &self.frames }
            }
        };
        let locate = &mut self.names.locator(table);
        self.sink
            .alloc(domain, time, block, frames, locate)
            .map_err(|error| write_failure(&self.name, error))
    }

    /// Writes a promotion or collection of an object by its id here.
    pub(super) fn end(
        &mut self,
        end: End,
        domain: u16,
        time: u64,
        id: u64,
        table: &LocationTable,
    ) -> Result<(), Failure> {
        let time = self.raise_time(domain, time);
        let locate = &mut self.names.locator(table);
        self.sink
            .end(end, domain, time, id, locate)
            .map_err(|error| write_failure(&self.name, error))
    }

    /// The id of the domain's next allocation; `None` before its first event.
    pub(super) fn next_id(&self, domain: u16) -> Option<u64> {
        self.sink.next_id(domain)
    }

    /// Makes this the id of the domain's next allocation.
    pub(super) fn number_on(&mut self, domain: u16, time: u64, id: u64) -> Result<(), Failure> {
        if self.sink.next_id(domain) == Some(id) {
            return Ok(());
        }
        let time = time.max(self.last_time(domain));
        self.sink.renumber(domain, time, id).map_err(|error| write_failure(&self.name, error))
    }

    fn last_time(&self, domain: u16) -> u64 {
        self.last_times.get(usize::from(domain)).copied().unwrap_or(0).max(self.start_time)
    }

    /// The time to write: in a domain, time must not run backwards.
    fn raise_time(&mut self, domain: u16, time: u64) -> u64 {
        let index = usize::from(domain);
        if index >= self.last_times.len() {
            self.last_times.resize(index + 1, self.start_time);
        }
        let last = &mut self.last_times[index];
        self.late += u64::from(time < *last);
        *last = time.max(*last);
        *last
    }

    /// The trace covers its program until then, in microseconds since its start: see
    /// [`TraceReader::covered`](heaptap_trace::TraceReader::covered).
    pub(super) fn cover(&mut self, until: u64, table: &LocationTable) -> Result<(), Failure> {
        let time = self.start_time.saturating_add(until);
        let locate = &mut self.names.locator(table);
        self.sink.cover(time, locate).map_err(|error| write_failure(&self.name, error))
    }

    /// Ends the trace and gives the file its name.
    pub(super) fn complete(mut self, table: &LocationTable) -> Result<(), Failure> {
        if self.late > 0 {
            let events = count(self.late, "event", "events");
            say(&format!(
                "{}: {events} of times that ran backwards got the time before them",
                self.name
            ));
        }
        let locate = &mut self.names.locator(table);
        let finished = self.sink.finish(locate);
        let mut out = finished.map_err(|error| write_failure(&self.name, error))?;
        out.flush().map_err(|error| Failure::writing(&self.name, &error))?;
        match out.into_inner() {
            Ok(output) => output.complete(),
            Err(error) => Err(Failure::writing(&self.name, error.error())),
        }
    }
}

fn write_failure(name: &str, error: WriteError) -> Failure {
    match error {
        WriteError::Io(error) => Failure::writing(name, &error),
        // The reader accepts nothing else that cannot be written.
        other => Failure::Defective(format!("{name}: cannot hold this trace: {other}")),
    }
}
