//! Writing the events of one trace into another.
//!
//! [`Rewriting`] puts an encoder between what a reader hands out and what a
//! trace may hold. A lenient reader hands out times that run backwards and
//! frames that damage made unknown; neither can be written, so times wait for
//! the domain's last one, and frames are [renamed](Renaming).

use std::collections::HashMap;
use std::io::{BufWriter, Write};

use heaptap_trace::{
    Block, Code, Encoder, End, EventSink, Format, Frames, Locate, Location, LocationList,
    LocationTable, NamedLocation, TraceInfo, Version, WriteError,
};

use crate::exit_status::Failure;
use crate::io::notices::say;
use crate::io::output::Output;
use crate::text::units::count;

/// The format of a copy, unless another one is asked for.
pub(crate) fn same_format(version: Version) -> Format {
    match version {
        Version::V1 | Version::V2 => Format::V2,
        Version::V3 => Format::V3,
    }
}

/// How codes and what they stand for change on the way.
pub(crate) trait Renaming {
    /// The code to write for a code that was read.
    fn code(&mut self, read: Code, table: &LocationTable) -> Result<Code, Failure>;

    /// The other way round; `None` for a code that stands for a lost frame.
    fn origin(&self, written: Code) -> Option<Code>;

    /// Adds a location under its new names.
    fn rename(&mut self, location: Location<'_>, ids: &NamedLocation, list: &mut LocationList);
}

/// What a frame that damage made unknown is explained as.
const LOST: Location<'static> =
    Location { file: b"<lost>", line: 0, start_char: 0, end_char: 0, definition: b"<lost>" };

/// Codes stay as they are; only a frame that cannot be written gets another.
#[derive(Default)]
pub(crate) struct SameNames {
    /// Frames were written as [`SameNames::STAND_IN`].
    lost: bool,
    /// The trace has a code of that number itself.
    taken: bool,
}

impl SameNames {
    /// Written in place of a frame that damage made unknown: the largest code
    /// there is, which no address comes near.
    pub(crate) const STAND_IN: Code = (1 << 62) - 1;

    /// A frame is to be written as the stand-in: because it is lost, here or
    /// when the trace was repaired before, or because it has that code itself.
    fn note(&mut self, read: Code, table: &LocationTable) -> Result<(), Failure> {
        let lost = read != Self::STAND_IN || table.resolve(read).eq([LOST]);
        self.lost |= lost;
        self.taken |= !lost;
        if self.taken && self.lost {
            return Err(Failure::Defective(format!(
                "the trace has lost frames, and uses the code {:#x} that would stand for them",
                Self::STAND_IN
            )));
        }
        Ok(())
    }
}

impl Renaming for SameNames {
    fn code(&mut self, read: Code, table: &LocationTable) -> Result<Code, Failure> {
        // Of 63 bits with sign, and not 0, which marks an empty cache slot.
        let fits = matches!(read >> 62, 0b00 | 0b11) && read != 0;
        if fits && read != Self::STAND_IN {
            return Ok(read);
        }
        self.note(read, table)?;
        Ok(Self::STAND_IN)
    }

    fn origin(&self, written: Code) -> Option<Code> {
        (written != Self::STAND_IN || self.taken).then_some(written)
    }

    fn rename(&mut self, location: Location<'_>, _ids: &NamedLocation, list: &mut LocationList) {
        list.add(location);
    }
}

/// What the codes of the new trace stand for.
struct Names<R> {
    renaming: R,
    /// What each code was explained as. A damaged trace may explain a code
    /// again and differently; the new one says the same every time.
    explained: HashMap<Code, Box<[NamedLocation]>>,
}

impl<R> Names<R> {
    fn explaining<'a>(&'a mut self, table: &'a LocationTable) -> Explaining<'a, R> {
        Explaining { names: self, table }
    }
}

/// Tells the encoder what codes stand for.
struct Explaining<'a, R> {
    names: &'a mut Names<R>,
    table: &'a LocationTable,
}

impl<R: Renaming> Locate for Explaining<'_, R> {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        let Names { renaming, explained } = &mut *self.names;
        let Some(origin) = renaming.origin(code) else {
            list.add(LOST);
            return;
        };
        let read = || self.table.get(origin).unwrap_or(&[]).into();
        for location in &**explained.entry(code).or_insert_with(read) {
            renaming.rename(self.table.named(location), location, list);
        }
    }
}

/// A sink that fills a file.
pub(crate) trait TraceSink: EventSink<Error = WriteError, Output = FileOutput> {}

impl<S: EventSink<Error = WriteError, Output = FileOutput>> TraceSink for S {}

/// The file that a sink fills, in large writes.
pub(crate) type FileOutput = BufWriter<Output>;

/// A trace being written from the events of another.
pub(crate) struct Rewriting<R, S = Encoder<FileOutput>> {
    sink: S,
    name: String,
    names: Names<R>,
    /// Time of the last event, by domain.
    last_times: Vec<u64>,
    start_time: u64,
    /// Events whose time had to wait.
    late: u64,
    /// Room for the frames of one backtrace.
    frames: Vec<Code>,
}

impl<R: Renaming> Rewriting<R> {
    /// Begins the trace that `info` describes.
    pub(crate) fn begin(
        output: Output,
        format: Format,
        info: &TraceInfo,
        renaming: R,
    ) -> Result<Self, Failure> {
        let name = output.name().to_string();
        let out = BufWriter::with_capacity(1 << 17, output);
        let encoder =
            Encoder::new(out, format, info).map_err(|error| write_failure(&name, error))?;
        Ok(Rewriting {
            sink: encoder,
            name,
            names: Names { renaming, explained: HashMap::new() },
            last_times: Vec::new(),
            start_time: info.start_time,
            late: 0,
            frames: Vec::new(),
        })
    }
}

impl<R: Renaming, S: TraceSink> Rewriting<R, S> {
    /// Writes an allocation and returns its id.
    pub(crate) fn allocate(
        &mut self,
        domain: u16,
        time: u64,
        block: Block,
        frames: Frames<'_>,
        table: &LocationTable,
    ) -> Result<u64, Failure> {
        let time = self.wait(domain, time);
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
        let locate = &mut self.names.explaining(table);
        self.sink
            .alloc(domain, time, block, frames, locate)
            .map_err(|error| write_failure(&self.name, error))
    }

    /// Writes a promotion or collection of an object by its id here.
    pub(crate) fn end(
        &mut self,
        end: End,
        domain: u16,
        time: u64,
        id: u64,
        table: &LocationTable,
    ) -> Result<(), Failure> {
        let time = self.wait(domain, time);
        let locate = &mut self.names.explaining(table);
        match end {
            End::Promote => self.sink.promote(domain, time, id, locate),
            End::Collect => self.sink.collect(domain, time, id, locate),
        }
        .map_err(|error| write_failure(&self.name, error))
    }

    /// Lets the domain's next allocation have this id.
    pub(crate) fn number_on(&mut self, domain: u16, time: u64, id: u64) -> Result<(), Failure> {
        if self.sink.next_id(domain) == Some(id) {
            return Ok(());
        }
        let time = time.max(self.last_time(domain));
        self.sink.renumber(domain, time, id).map_err(|error| write_failure(&self.name, error))
    }

    fn last_time(&self, domain: u16) -> u64 {
        self.last_times.get(usize::from(domain)).copied().unwrap_or(0).max(self.start_time)
    }

    /// The time to write: in a domain, time does not run backwards.
    fn wait(&mut self, domain: u16, time: u64) -> u64 {
        let place = usize::from(domain);
        if place >= self.last_times.len() {
            self.last_times.resize(place + 1, self.start_time);
        }
        let last = &mut self.last_times[place];
        self.late += u64::from(time < *last);
        *last = time.max(*last);
        *last
    }

    /// Ends the trace and gives it its name.
    pub(crate) fn complete(mut self, table: &LocationTable) -> Result<(), Failure> {
        if self.late > 0 {
            let events = count(self.late, "event", "events");
            say(&format!(
                "{}: {events} of times that ran backwards got the time before them",
                self.name
            ));
        }
        let locate = &mut self.names.explaining(table);
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
        // The reader lets nothing else pass that cannot be written.
        other => Failure::Defective(format!("{name}: cannot hold this trace: {other}")),
    }
}
