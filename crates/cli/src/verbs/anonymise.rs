//! `heaptap anonymise`: a trace without the names in it.

use std::collections::HashMap;

use clap::Args;
use heaptap_codec::seeded::Seeded;
use heaptap_report::is_label;
use heaptap_trace::{
    Allocation, Code, LOST_FRAME, Location, LocationList, LocationTable, Mode, NameId,
    NamedLocation, TraceInfo,
};

use crate::analysis::joined::Joined;
use crate::exit_status::{Failure, VerbResult, help_end};
use crate::io::input::Input;
use crate::io::rewrite::renaming::Renaming;
use crate::io::rewrite::{InAndOut, Rewrite};

/// Take the names out of a trace, so that it can be shown to others
///
/// Files become file1, file2 …, definitions def1, def2 …, labels label1, label2 …;
/// equal names stay equal, different ones different.
/// Executable, host, runtime parameters and context are replaced by these very
/// words, the process id by 0, and the addresses in backtraces by small numbers.
/// The trace begins at 2000-01-01 00:00 UTC.
///
/// Sizes, samples, the shape of the stacks and times relative to the start are
/// kept, and so are lines and columns unless --drop-lines is given.
///
/// The traces of a directory, such as the files of a series, become one trace, if all have
/// one sampling rate. What was alive when the first of them began is not in it.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap anonymise trace.ctf public.ctf
  heaptap anonymise --drop-lines trace.ctf - | zstd > public.ctf.zst"
))]
pub(crate) struct Anonymise {
    #[command(flatten)]
    files: InAndOut,

    /// Keep the time of day at which the trace was taken
    #[arg(long)]
    keep_times: bool,

    /// Set lines and columns to 0
    #[arg(long)]
    drop_lines: bool,
}

/// The start of anonymous traces: 2000-01-01 00:00 UTC in microseconds.
const BEGINNING: u64 = 946_684_800_000_000;

impl Anonymise {
    pub(crate) fn run(&self) -> VerbResult {
        if self.files.input.is_dir() {
            return self.join();
        }
        let input = Input::open(&self.files.input)?;
        let mut reader = input.reader(Mode::Lenient)?;
        let began = reader.info().start_time;
        let shift = self.shift(began);
        let rewrite = Rewrite {
            input: &input,
            files: &self.files,
            format: reader.format().of_copy(),
            info: without_names(reader.info(), shift(began)),
            names: self.names(),
        };
        rewrite.copy(&mut *reader, shift)
    }
}

impl Anonymise {
    /// Makes one trace of those of a directory.
    fn join(&self) -> VerbResult {
        let traces = Joined::survey(&self.files)?;
        traces.has_one_rate()?;
        let shift = self.shift(traces.info.start_time);
        let info = without_names(&traces.info, shift(traces.info.start_time));
        let all = |allocation: &Allocation<'_>, _| Some(allocation.block());
        traces.write(&self.files, &info, self.names(), all, shift)
    }

    /// Moves the times of a trace that began then.
    fn shift(&self, began: u64) -> impl Fn(u64) -> u64 + use<> {
        let keep_times = self.keep_times;
        move |time| if keep_times { time } else { time.saturating_sub(began) + BEGINNING }
    }

    fn names(&self) -> NumberedNames {
        NumberedNames { drop_lines: self.drop_lines, ..NumberedNames::default() }
    }
}

fn without_names(info: &TraceInfo, start_time: u64) -> TraceInfo {
    let unless_empty = |text: &[u8], word: &str| {
        if text.is_empty() { Vec::new() } else { word.into() }
    };
    TraceInfo {
        executable: unless_empty(&info.executable, "executable"),
        host: unless_empty(&info.host, "host"),
        runtime_params: unless_empty(&info.runtime_params, "parameters"),
        context: unless_empty(&info.context, "context"),
        pid: 0,
        start_time,
        ..*info
    }
}

/// Replaces codes and names by numbers.
#[derive(Default)]
struct NumberedNames {
    drop_lines: bool,
    /// The number of each code, from 1 on.
    numbers: HashMap<Code, u64, Seeded>,
    /// The codes by number.
    codes: Vec<Code>,
    files: Numbering,
    definitions: Numbering,
    labels: Numbering,
}

impl Renaming for NumberedNames {
    fn code(&mut self, read: Code, _table: &LocationTable) -> Result<Code, Failure> {
        let next = self.codes.len() as u64 + 1;
        let number = *self.numbers.entry(read).or_insert(next);
        if number == next {
            self.codes.push(read);
        }
        Ok(number)
    }

    fn origin(&self, written: Code) -> Option<Code> {
        let index = usize::try_from(written.checked_sub(1)?).ok()?;
        self.codes.get(index).copied().filter(|&code| code != LOST_FRAME)
    }

    fn rename(&mut self, location: Location<'_>, ids: &NamedLocation, list: &mut LocationList) {
        // A label is known by its file, which says nothing about the program.
        let (file, definition) = if is_label(&location) {
            let name = self.labels.name("label", ids.definition, location.definition);
            (String::from_utf8_lossy(location.file).into_owned(), name)
        } else {
            let name = self.definitions.name("def", ids.definition, location.definition);
            (self.files.name("file", ids.file, location.file), name)
        };
        let kept = |number: u32| if self.drop_lines { 0 } else { number };
        list.add(Location {
            file: file.as_bytes(),
            line: kept(location.line),
            start_char: kept(location.start_char),
            end_char: kept(location.end_char),
            definition: definition.as_bytes(),
        });
    }
}

/// Numbers names in the order in which they are first asked for.
#[derive(Default)]
struct Numbering(HashMap<NameId, usize>);

impl Numbering {
    fn name(&mut self, kind: &str, id: NameId, name: &[u8]) -> String {
        // Names that the format itself defines reveal nothing about the program.
        for common in [&b"<lost>"[..], b"<unknown>", b"??"] {
            if name == common {
                return String::from_utf8_lossy(common).into_owned();
            }
        }
        let next = self.0.len() + 1;
        format!("{kind}{}", self.0.entry(id).or_insert(next))
    }
}
