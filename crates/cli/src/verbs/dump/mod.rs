//! `heaptap dump`: every event of a trace, or every item of a heap snapshot, one a line.

mod json;
mod lines;
mod snapshot;
mod stack;
mod text;

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write, stdout};
use std::marker::PhantomData;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use heaptap_trace::{Event, EventSource, FileKind, LocationTable};

use crate::analysis::several::TraceSet;
use crate::exit_status::{Failure, VerbResult, help_end};
use crate::io::input::Input;
use crate::io::lifecycle::Lives;
use crate::io::newest::one_or_newest;
use crate::io::output::raw_stdout;
use crate::io::trace_files::expand;

use json::JsonLines;
use lines::{EventLines, ReadEvent};
use stack::StackText;
use text::TextLines;

/// Print every event of a trace or item of a heap snapshot, one a line
#[derive(Args)]
#[command(long_about = FORMAT)]
#[command(after_help = help_end!(
    "  heaptap dump trace.ctf | less -S
  heaptap dump trace.ctf | grep -c ' alloc '
  heaptap dump --merge par.ctf              domains in the order of time
  heaptap dump traces                       all files of a series as one trace
  heaptap dump --json trace.ctf | jq 'select(.length > 1000)'"
))]
pub(crate) struct Dump {
    /// The trace, directory of traces or heap snapshot, or `-` for standard input [default: the newest trace in this
    /// directory]
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    file: Option<PathBuf>,

    /// Print JSON objects, one a line
    #[arg(long)]
    json: bool,

    /// Print the events of all domains in the order of time, not of the file
    #[arg(long)]
    merge: bool,
}

/// The format of the lines, on which other programs rely.
const FORMAT: &str = r#"Print every event of a trace or item of a heap snapshot, one a line

Lines are fields with one space between:

  TIME DOMAIN ID alloc length=WORDS samples=N source=SOURCE depth=N common=N FRAME…
  TIME DOMAIN ID promote
  TIME DOMAIN ID collect

TIME is in microseconds since the start of the trace. SOURCE is minor, major or
external. `depth` is the number of frames that follow, from `main` to the
allocation; `common` says how many of them are those of the domain's allocation
before, as the file states it.

A FRAME is DEFINITION@FILE:LINE:START-END, and several of these with `;`
between where calls were inlined, the outermost first. A code without a
location is a FRAME like 0x55d0c0ffee; a frame lost to damage is `<lost>`.
Spaces, `;`, the `@` of files, control and invisible characters and what is
not UTF-8 are escaped as \xNN or \u{N}, a backslash as \\: so a line can be
split at spaces, a frame at `;`, and a location at its last `@`.

With --json each line is an object with the fields event ("alloc", "promote" or
"collect"), time_us, unix_us, domain, id, and of allocations length, samples,
source, depth, common and frames: a list of {"code": "0x…" or null if lost,
"locations": [{"definition", "file", "line", "start", "end"} …]}.

The traces of a directory are one, in the order of time, with ids that a block keeps
in all files of a series. What was alive when the first file begins comes first, with
the times of its births, which are negative, and each with its promotion behind it. An allocation then has a field
sample_rate in JSON: that of its block.

The lines of a heap snapshot begin with what they describe:

  meta KEY VALUE
  segment KIND START WORDS
  block ADDRESS WORDS TAG FIELD=TARGET… [code:FIELD=ADDRESS…]
        [custom=OPERATIONS outside=BYTES] [string=TEXT]
  root TARGET OWNER…
  finaliser first|last|pending VALUE FUNCTION
  ephemeron ADDRESS INDEX=TARGET… [data=TARGET]
  module ID NAME             thread ID DOMAIN NAME       code ADDRESS
  custom OPERATIONS NAME     kind tag|root NUMBER NAME   followed ADDRESS ID
  name ADDRESS FUNCTION FILE:LINE
  outside allocated|mapped BLOCK OPERATIONS START BYTES

Very long blocks and ephemerons go on in lines `more ADDRESS WORDS TAG …` and
`keys ADDRESS …`. An OWNER is global MODULE FIELD, stack THREAD DEPTH CODE SLOT,
local THREAD, variable ADDRESS, hook ADDRESS, continuation BLOCK DEPTH CODE SLOT
or host KIND INDEX. Texts are escaped as above; an empty one is `-`."#;

impl Dump {
    pub(crate) fn run(&self) -> VerbResult {
        let file = one_or_newest(self.file.as_deref())?;
        if file.is_dir() {
            return self.dump_directory(file);
        }
        let mut input = Input::open(&file)?;
        if !stdout_is_file() {
            // On a terminal or under a pager, a bar would disturb the output.
            input = input.quietly();
        }
        if input.kind() == Some(FileKind::HeapSnapshot) {
            if self.json || self.merge {
                return Err(Failure::Trouble(format!(
                    "{}: a heap snapshot; --json and --merge are for traces",
                    input.name()
                )));
            }
            return snapshot::print(&input);
        }
        let mut events = if self.merge { input.in_time_order()? } else { input.in_file_order()? };
        self.dump(&input, &mut *events)
    }

    fn dump_directory(&self, directory: PathBuf) -> VerbResult {
        let files = expand(&[directory])?;
        // On a terminal or under a pager, a bar would disturb the output.
        let traces = if stdout_is_file() {
            TraceSet::survey(&files)
        } else {
            TraceSet::survey_quietly(&files)
        }?;
        let print = if self.json { print_merged::<JsonLines> } else { print_merged::<TextLines> };
        print(&traces)?;
        Ok(traces.into_findings().report())
    }

    fn dump(&self, input: &Input, events: &mut dyn EventSource) -> VerbResult {
        let print = if self.json { print_all::<JsonLines> } else { print_all::<TextLines> };
        let mut lives = print(input, events)?;
        Ok(input.report_with(events, &mut lives, &|_| Some("printed as they are")))
    }
}

fn print_all<L: EventLines>(input: &Input, events: &mut dyn EventSource) -> Result<Lives, Failure> {
    let mut printer = Printer::<L>::new(events.info().start_time)?;
    let mut lives = Lives::new(Lives::MEMORY);
    input.each_event(events, |event, table| {
        lives.event(event);
        printer.print(event, table, None)
    })?;
    printer.end()?;
    Ok(lives)
}

fn print_merged<L: EventLines>(traces: &TraceSet) -> Result<(), Failure> {
    let mut printer = Printer::<L>::new(traces.info().start_time)?;
    traces.each_event(|event, table, rate| printer.print(event, table, Some(rate)))?;
    printer.end()
}

/// Events on standard output.
struct Printer<L> {
    start: u64,
    stack: StackText,
    out: BufWriter<File>,
    format: PhantomData<L>,
}

impl<L: EventLines> Printer<L> {
    /// `start`: when the trace begins.
    fn new(start: u64) -> Result<Printer<L>, Failure> {
        let out =
            BufWriter::with_capacity(1 << 18, raw_stdout().map_err(|error| unwritten(&error))?);
        Ok(Printer { start, stack: StackText::new(L::put_frame), out, format: PhantomData })
    }

    fn print(
        &mut self,
        event: &Event<'_>,
        table: &LocationTable,
        rate: Option<f64>,
    ) -> Result<(), Failure> {
        // Events before the start are of a series whose first files are gone, or of a damaged
        // trace. Both are below 2⁶³.
        let time = event.time as i64 - self.start as i64;
        let read = ReadEvent { time, event, table, rate };
        L::write(&mut self.out, &mut self.stack, &read).map_err(|error| unwritten(&error))
    }

    fn end(mut self) -> Result<(), Failure> {
        self.out.flush().map_err(|error| unwritten(&error))
    }
}

fn unwritten(error: &io::Error) -> Failure {
    Failure::writing("standard output", error)
}

fn stdout_is_file() -> bool {
    !stdout().is_terminal()
        && raw_stdout().and_then(|file| file.metadata()).is_ok_and(|metadata| metadata.is_file())
}
