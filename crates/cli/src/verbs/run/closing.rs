//! The message after the program has ended: how much was traced, and where it is.
//!
//! One process gets a line. Several, as with `--follow`, share one summary.
//!
//! The figures come from the traces, which have them however a program ended. A pipe
//! cannot be read again, and opening one without a writer would wait for ever: for these
//! the library's own statistics are shown.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use heaptap_control::journal::Statistics;
use heaptap_report::figures::Unseen;
use heaptap_report::figures::units::{bytes, count};
use heaptap_trace::{CutReason, CutShort, EventKind, SeriesReader, SeriesSummary, series_name};

use super::journal::{End, Journal, Process};
use super::{next_steps, programs, untraced};
use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::notices::{self, say};
use crate::io::sidecar::sidecar_bytes;
use crate::io::trace_files::traces_in;
use crate::text::escape;

/// A run that is over.
pub(super) struct EndedRun<'a> {
    pub(super) program: &'a str,
    /// The names of programs that were asked for.
    pub(super) only: &'a [OsString],
    /// The rate that was asked for.
    pub(super) rate: f64,
    /// Each trace is a series of files.
    pub(super) is_series: bool,
    /// What each may cost, as it was asked for.
    pub(super) budget: Option<f64>,
    /// Each trace is kept in memory.
    pub(super) is_recorded: bool,
    /// The program was killed.
    pub(super) is_killed: bool,
}

impl EndedRun<'_> {
    /// Prints what was traced; with `quiet`, only what is missing.
    pub(super) fn print(&self, journal: &Journal, quiet: bool) {
        let processes = &journal.processes[..];
        match processes {
            [] => untraced::message(self.program, self.only, journal).iter().for_each(|it| say(it)),
            _ if quiet && journal.is_complete() => {}
            _ if self.is_recorded => {
                let lines = processes.iter().filter_map(|it| line_of_recorder(it, self.is_killed));
                return lines.for_each(|line| say(&line));
            }
            _ if self.is_series => {
                processes.iter().for_each(|process| say(&line_of_series(process)));
                self.cost(processes).iter().for_each(|line| say(line));
                return;
            }
            [process] => say(&line(process, self.rate)),
            _ => self.summarise(processes),
        }
        if !quiet {
            self.cost(processes).iter().for_each(|line| say(line));
        }
        if !quiet {
            next_steps::print(processes);
        }
    }

    /// What tracing has cost, if it had a budget.
    fn cost(&self, processes: &[Process]) -> Option<String> {
        let budget = self.budget?;
        let ended = processes.iter().filter_map(|process| match process.end {
            End::Orderly(counted) | End::WriteFailed(counted) => Some(counted),
            End::Flushed | End::Abrupt => None,
        });
        let (cost, program) = ended.fold((0, 0), |(cost, program), counted| {
            (cost + counted.cost_ns, program + counted.program_ns)
        });
        let share = (program > 0).then(|| cost as f64 / program as f64 * 100.0)?;
        Some(format!(
            "tracing took {share:.2} % of the program's processor time, of which {program:.1} s; the budget was {budget} %",
            program = program as f64 / 1e9,
            budget = budget * 100.0,
        ))
    }

    fn summarise(&self, processes: &[Process]) {
        let figures: Vec<_> =
            processes.iter().map(|process| Figures::of(process, self.rate)).collect();
        let summary = Summary::of(processes, &figures);
        let samples: Vec<u64> =
            figures.iter().map(|figures| figures.map_or(0, |figures| figures.samples)).collect();
        let mut lines = summary.lines();
        lines.splice(1..1, programs::lines(processes, &samples, &summary.directory));
        lines.extend(summary.details());
        lines.iter().for_each(|line| say(line));
    }
}

/// How much is in a trace, or in several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Figures {
    samples: u64,
    /// The estimate of the words that were allocated, and its variance.
    words: f64,
    variance: f64,
    bytes: u64,
    /// What no sample means at the lowest rate.
    unseen: Option<Unseen>,
    /// The bytes of the files of probes beside them.
    probes: u64,
}

impl Figures {
    fn new(samples: u64, rate: f64, bytes: u64) -> Figures {
        let (words, variance) = (samples as f64 / rate, variance(samples, rate));
        Figures { samples, words, variance, bytes, probes: 0, unseen: Unseen::at(rate) }
    }

    /// From the trace; for one that cannot be read again, from what the library counted.
    /// `None` if there is neither.
    fn of(process: &Process, rate: f64) -> Option<Figures> {
        let metadata = fs::metadata(&process.file).ok();
        if let Some(metadata) = metadata.filter(fs::Metadata::is_file) {
            let Contents { samples, rate, .. } = Contents::of(&process.file).ok()?;
            let mut figures = Figures::new(samples, rate, metadata.len());
            figures.probes = sidecar_bytes(&process.file);
            if let Some(others) = Figures::of_other_rates(&process.file) {
                figures.add(others);
            }
            return Some(figures);
        }
        match process.end {
            End::Orderly(counted) | End::WriteFailed(counted) => {
                Some(Figures::new(counted.samples, rate, counted.bytes))
            }
            End::Flushed | End::Abrupt => None,
        }
    }

    /// Of the blocks beside a trace that were sampled at other rates than its own; `None` if there
    /// is no place for such blocks. What is damaged in it, a report says.
    fn of_other_rates(trace: &Path) -> Option<Figures> {
        let sidecar = series_name(trace.as_os_str());
        let bytes = fs::metadata(&sidecar).ok()?.len();
        let mut reader = SeriesReader::new(BufReader::new(File::open(&sidecar).ok()?)).ok()?;
        let own = reader.head().map_or(0.0, |head| head.rate);
        let summary = SeriesSummary::of(&mut reader).ok()?;
        let mut figures = Figures { bytes, ..Figures::default() };
        for (&rate, &samples) in summary.rates.iter().zip(&summary.stray_samples) {
            figures.add(Figures { unseen: None, ..Figures::new(samples, rate, 0) });
        }
        let without_samples = summary.rates_without_samples(own).map(|rate| variance(1, rate));
        figures.variance += without_samples.sum::<f64>();
        Some(figures)
    }

    fn add(&mut self, other: Figures) {
        self.samples += other.samples;
        self.words += other.words;
        self.variance += other.variance;
        self.bytes += other.bytes;
        self.probes += other.probes;
        let words = |unseen: &Option<Unseen>| unseen.map_or(0.0, |unseen| unseen.words);
        if words(&other.unseen) > words(&self.unseen) {
            self.unseen = other.unseen;
        }
    }

    /// Bytes of the trace, and of what is beside it.
    fn size(&self) -> String {
        let trace = bytes(self.bytes as f64);
        match self.probes {
            0 => trace,
            // Not in bytes, however few: next to a trace that is no figure to read.
            probes if probes < 1 << 20 => {
                format!("{trace}, and {:.1} KiB in .probes", probes as f64 / 1024.0)
            }
            probes => format!("{trace}, and {} in .probes", bytes(probes as f64)),
        }
    }

    /// Samples and estimated words.
    fn allocated(&self) -> String {
        if let (0, Some(unseen)) = (self.samples, &self.unseen) {
            return format!(
                "no sample: fewer than {:.0} words allocated (with 95 % probability; -r {} for more)",
                unseen.words,
                unseen.better_rate()
            );
        }
        let error = if self.samples == 0 { 0.0 } else { self.variance.sqrt() / self.words };
        format!(
            "{}, about {:.0} words ± {:.2}% allocated",
            count(self.samples, "sample", "samples"),
            self.words,
            error * 100.0
        )
    }
}

/// The variance of the words that samples stand for: their number is binomial. Of a rate that was in
/// force without a sample it is taken to be that of one.
fn variance(samples: u64, rate: f64) -> f64 {
    samples as f64 * (1.0 - rate) / rate / rate
}

/// The line for a single process: file, samples, estimated words, dropped, bytes.
fn line(process: &Process, rate: f64) -> String {
    let name = escape::path(&process.file);
    let end = match process.end {
        End::Orderly(counted) => format!("{} dropped", counted.dropped),
        End::Flushed => "ended by _exit or exec".into(),
        End::Abrupt => "ended abruptly: the last moments are missing".into(),
        End::WriteFailed(counted) => return failed(process, counted.samples),
    };
    match Figures::of(process, rate) {
        Some(figures) => {
            format!("{name}: {}, {end}, {}", figures.allocated(), figures.size())
        }
        None if is_special(&process.file) => format!("{name}: {end}; its reader has the trace"),
        None => format!("{name}: nothing can be read of the trace; see heaptap check"),
    }
}

/// The line of a trace that is a series of files, of which some may have been removed. What was
/// estimated depends on the rates of all: a report says it.
fn line_of_series(process: &Process) -> String {
    let directory = process.file.parent().unwrap_or(Path::new("/"));
    let name = escape::path(directory);
    let counted = |counted: &Statistics| {
        let taken = count(counted.samples, "sample", "samples");
        let size = bytes(counted.bytes as f64);
        format!("{taken} taken, {} dropped, {size} of traces", counted.dropped)
    };
    let end = match &process.end {
        End::Orderly(statistics) => counted(statistics),
        End::WriteFailed(statistics) => {
            format!("the last file is cut short: {}", counted(statistics))
        }
        End::Flushed => "ended by _exit or exec".into(),
        End::Abrupt => "ended abruptly: the last moments are missing".into(),
    };
    format!("a series of files in {name}: {end}; for details: heaptap report {name}")
}

/// The line of a trace that was kept in memory. What was written by itself has been named by the
/// library, also before a signal that can be caught.
fn line_of_recorder(process: &Process, is_killed: bool) -> Option<String> {
    let name = escape::path(&process.file);
    let pid = process.pid;
    let asking = format!(
        "`heaptap recorder {pid}` asks for it while the program runs, and --recorder TIME,exit at its \
         end"
    );
    Some(match &process.end {
        End::Orderly(counted) | End::WriteFailed(counted) => {
            let taken = count(counted.samples, "sample", "samples");
            match counted.bytes {
                0 => format!("{taken} taken, and nothing written by the recorder: {asking}"),
                written => {
                    format!(
                        "{taken} taken; the recorder has written {} to {name}",
                        bytes(written as f64)
                    )
                }
            }
        }
        End::Flushed => {
            format!("ended by _exit or exec, for which the recorder writes nothing: {asking}")
        }
        End::Abrupt if is_killed => format!(
            "the program was killed, before which the recorder could write nothing: what was written \
             earlier is in {name}"
        ),
        End::Abrupt => return None,
    })
}

/// The line of a trace that could not be written to its end: no total is known.
fn failed(process: &Process, taken: u64) -> String {
    let name = escape::path(&process.file);
    let taken = count(taken, "sample", "samples");
    if is_special(&process.file) {
        return format!(
            "{name}: the trace is cut short: its reader has gone, or has not read for long; {taken} \
             were taken until then, and what the program allocated is not known"
        );
    }
    let contents = Contents::of(&process.file).ok();
    let written = contents.as_ref().map_or(0, |contents| contents.samples);
    let cut = contents.and_then(|contents| contents.cut_short);
    let cut = cut.unwrap_or(CutShort { reason: CutReason::WriteFailed, until: 0 });
    format!(
        "{name}: {}; {written} of the {taken} until then are in it, and what the program allocated \
         is not known",
        notices::cut_short(&cut),
    )
}

/// Whether it is a pipe or a device.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file())
}

/// Several processes together.
#[derive(Debug, Default)]
struct Summary {
    traces: u64,
    figures: Figures,
    dropped: u64,
    /// The directory that has all files.
    directory: PathBuf,
    /// The files that can be read, by their directories.
    readable: BTreeMap<PathBuf, HashSet<PathBuf>>,
    /// Traces whose last moments are missing.
    abrupt: Vec<PathBuf>,
    /// Traces that could not be written to their end.
    failed: Vec<PathBuf>,
    /// Traces without figures.
    unreadable: Vec<PathBuf>,
}

impl Summary {
    fn of(processes: &[Process], figures: &[Option<Figures>]) -> Summary {
        let mut summary = Summary::default();
        for (process, figures) in processes.iter().zip(figures) {
            summary.add(process, *figures);
        }
        summary
    }

    fn add(&mut self, process: &Process, figures: Option<Figures>) {
        let Process { file, end, .. } = process;
        let parent = file.parent().unwrap_or(Path::new("/"));
        self.directory =
            if self.traces == 0 { parent.to_owned() } else { common(&self.directory, parent) };
        self.traces += 1;
        match end {
            End::Orderly(counted) => self.dropped += counted.dropped,
            End::Flushed => {}
            End::Abrupt => self.abrupt.push(file.clone()),
            End::WriteFailed(_) => self.failed.push(file.clone()),
        }
        let Some(figures) = figures else {
            self.unreadable.push(file.clone());
            return;
        };
        self.figures.add(figures);
        if !is_special(file) {
            self.readable.entry(parent.to_owned()).or_default().insert(file.clone());
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{} traces in {}: {}, {} dropped, {}",
            self.traces,
            escape::path(&self.directory),
            self.figures.allocated(),
            self.dropped,
            self.figures.size(),
        )];
        let abrupt = "ended abruptly, so that their last moments are missing";
        let failed = "could not be written to their end, and what is missing is not counted";
        let unreadable = "cannot be read and are not counted";
        for (files, what, remedy) in [
            (&self.abrupt, abrupt, ""),
            (&self.failed, failed, ""),
            (&self.unreadable, unreadable, "; see heaptap check"),
        ] {
            if let [first, others @ ..] = &files[..] {
                let more = if others.is_empty() { "" } else { ", …" };
                let first = escape::path(first);
                lines.push(format!("{} of them {what}: {first}{more}{remedy}", files.len()));
            }
        }
        lines
    }

    /// The command that reports all traces.
    fn details(&self) -> Option<String> {
        /// Directories that are named.
        const MOST_NAMED: usize = 4;
        let mut directories: Vec<String> = self
            .readable
            .keys()
            .take(MOST_NAMED)
            .map(|path| escape::path(path).to_string())
            .collect();
        if self.readable.len() > directories.len() {
            directories.push("…".to_owned());
        }
        let others: usize = self.readable.iter().map(|(path, own)| others_in(path, own)).sum();
        let note = match others {
            0 => "",
            1 => ", which includes a trace that was there before",
            _ => ", which includes traces that were there before",
        };
        let command = format!("for details: heaptap report {}{note}", directories.join(" "));
        (!directories.is_empty()).then_some(command)
    }
}

/// The number of traces in a directory that are not of this run.
fn others_in(directory: &Path, own: &HashSet<PathBuf>) -> usize {
    let traces = traces_in(directory).unwrap_or_default();
    traces.iter().filter(|path| !own.contains(*path)).count()
}

/// The deepest directory that contains both.
fn common(one: &Path, other: &Path) -> PathBuf {
    let pairs = one.components().zip(other.components());
    pairs.take_while(|(one, other)| one == other).map(|(component, _)| component).collect()
}

/// What a trace has in it.
struct Contents {
    samples: u64,
    rate: f64,
    cut_short: Option<CutShort>,
}

impl Contents {
    fn of(file: &Path) -> Result<Contents, Failure> {
        let input = Input::open(file)?.quietly();
        let mut reader = input.in_file_order()?;
        let rate = reader.info().sample_rate;
        let mut samples = 0;
        input.each_event(&mut *reader, |event, _| {
            if let EventKind::Alloc(allocation) = event.kind {
                samples += allocation.samples;
            }
            Ok(())
        })?;
        Ok(Contents { samples, rate, cut_short: reader.losses().cut_short })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(file: &str, end: End) -> Process {
        Process { pid: 7, file: file.into(), end }
    }

    #[test]
    fn a_summary_has_the_totals() {
        let orderly = |dropped| End::Orderly(Statistics { dropped, ..Statistics::default() });
        let mut summary = Summary::default();
        summary.add(&process("/t/a/1", orderly(2)), Some(Figures::new(100, 0.5, 1024)));
        summary.add(&process("/t/b/2", orderly(1)), Some(Figures::new(300, 0.5, 1024)));
        assert_eq!(
            summary.lines(),
            ["2 traces in /t: 400 samples, about 800 words ± 3.54% allocated, 3 dropped, 2.0 KiB"]
        );
        let details = "for details: heaptap report /t/a /t/b";
        assert_eq!(summary.details().as_deref(), Some(details));
        let beside = Figures { probes: 3 << 10, ..Figures::new(0, 0.5, 0) };
        summary.figures.add(beside);
        assert!(summary.lines()[0].ends_with(" 2.0 KiB, and 3.0 KiB in .probes"));
        summary.add(&process("/t/b/3", End::Abrupt), None);
        summary.add(&process("/t/b/4", End::Abrupt), None);
        summary.add(&process("/t/b/5", End::Flushed), Some(Figures::new(0, 0.5, 0)));
        let lines = summary.lines();
        assert!(lines[0].starts_with("5 traces in /t: 400 samples"), "{lines:?}");
        assert!(lines[1].starts_with("2 of them ended abruptly"), "{lines:?}");
        assert!(lines[1].ends_with("/t/b/3, …"), "{lines:?}");
        assert!(lines[2].starts_with("2 of them cannot be read"), "{lines:?}");
        let statistics = Statistics { samples: 9, ..Statistics::default() };
        summary.add(&process("/t/b/6", End::WriteFailed(statistics)), None);
        let lines = summary.lines();
        assert!(lines[2].starts_with("1 of them could not be written"), "{lines:?}");
    }

    #[test]
    fn a_summary_says_how_to_report_all_traces() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str| place.path().join(name);
        let mut summary = Summary::default();
        for name in ["1.ctf", "2.ctf"] {
            fs::write(file(name), "").unwrap();
            let process = Process { pid: 7, file: file(name), end: End::Flushed };
            summary.add(&process, Some(Figures::new(1, 0.5, 1)));
        }
        let directory = place.path().display();
        assert_eq!(summary.details(), Some(format!("for details: heaptap report {directory}")));
        fs::write(file("notes.txt"), "no trace").unwrap();
        assert_eq!(summary.details(), Some(format!("for details: heaptap report {directory}")));
        fs::write(file("old.ctf"), "").unwrap();
        let details = summary.details().unwrap();
        assert!(details.ends_with(", which includes a trace that was there before"), "{details}");
        assert_eq!(Summary::default().details(), None);
    }

    #[test]
    fn the_error_of_a_sum_is_that_of_all_samples() {
        let mut sum = Figures::new(100, 1e-3, 0);
        sum.add(Figures::new(300, 1e-3, 0));
        let all = Figures::new(400, 1e-3, 0);
        assert!((sum.variance / all.variance - 1.0).abs() < 1e-12);
        // One by the root of the number of samples.
        assert!((all.variance.sqrt() / all.words - (0.999f64 / 400.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn no_sample_is_not_zero() {
        let mut none = Figures::new(0, 1e-4, 0);
        assert_eq!(
            none.allocated(),
            "no sample: fewer than 29956 words allocated (with 95 % probability; -r 1 for more)"
        );
        // Of several traces the same: their words are sampled alike.
        none.add(Figures::new(0, 1e-4, 0));
        assert!(none.allocated().contains("fewer than 29956 words"), "{}", none.allocated());
        assert_eq!(
            Figures::new(0, 1.0, 0).allocated(),
            "0 samples, about 0 words ± 0.00% allocated"
        );
    }

    #[test]
    fn a_directory_that_contains_both() {
        assert_eq!(common(Path::new("/a/b/c"), Path::new("/a/bc")), Path::new("/a"));
        assert_eq!(common(Path::new("/a/b"), Path::new("/a/b")), Path::new("/a/b"));
    }
}
