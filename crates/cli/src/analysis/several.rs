//! The reading of several traces as one.
//!
//! Each file is read twice. The first reading, a survey, finds what must be known before
//! any event counts: whether the file can be read at all, its rate, its ids, whether its
//! events are in the order of time, and what is wrong with it. The second merges them.
//! A file that cannot be read is left out from the start, so that no figure has half of it.

use std::collections::HashSet;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

use heaptap_report::{MOST_RATES, Rates, TraceEnding};
use heaptap_trace::{
    CutShort, Event, EventKind, LocationTable, MergeError, MergedItem, MergedTraces, Mismatch,
    TraceExtent, TraceInfo,
};

use crate::analysis::continued::{TraceSpan, continued};
pub(crate) use crate::analysis::findings::Findings;
use crate::analysis::series::{InSeries, SeriesPart, in_series};
use crate::analysis::time_order::in_time_order;
use crate::exit_status::{Failure, Verdict};
use crate::io::input::{Input, Order, outcome_in_reports};
use crate::io::lifecycle::Lives;
use crate::io::notices;
use crate::io::progress::Progress;
use crate::io::trace_files::{InputFile, shown};

/// One of several traces.
#[derive(Clone)]
pub(crate) struct TracePart {
    /// `-` is standard input.
    pub(crate) path: PathBuf,
    pub(crate) info: TraceInfo,
}

/// What is known of a file before its events are merged.
pub(crate) struct SurveyedFile {
    pub(crate) path: PathBuf,
    /// Its number in its series, from 0; `None` if it is in none.
    pub(crate) part: Option<u64>,
    pub(crate) rate: f64,
    /// When it began, and its last event; both in microseconds since the epoch.
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// What the first reading of a file found.
pub(super) struct Survey {
    path: PathBuf,
    input: Input,
    pub(super) info: TraceInfo,
    pub(super) extent: TraceExtent,
    /// Samples in the file.
    samples: u64,
    /// What makes it a part of a series.
    pub(super) part: Option<SeriesPart>,
    /// The order in which its events come in the order of time.
    order: Order,
    cut_short: Option<CutShort>,
    /// Why it does not have all that its program did, if that is so.
    incomplete: Option<String>,
    /// The time of its last event, or its start.
    last_time: u64,
}

/// Several traces that can be merged.
pub(crate) struct TraceSet {
    surveys: Rc<[Survey]>,
    /// How each of them ends.
    endings: Vec<TraceEnding>,
    info: TraceInfo,
    /// The rates at which their blocks were sampled, if these are several.
    rates: Rates,
    findings: Findings,
    progress: Rc<Progress>,
}

impl TraceSet {
    /// Surveys the files.
    pub(crate) fn survey(files: &[InputFile]) -> Result<TraceSet, Failure> {
        TraceSet::survey_with(files, Progress::of_several())
    }

    /// The same without a progress bar.
    pub(crate) fn survey_quietly(files: &[InputFile]) -> Result<TraceSet, Failure> {
        TraceSet::survey_with(files, Progress::silent())
    }

    fn survey_with(files: &[InputFile], progress: Progress) -> Result<TraceSet, Failure> {
        let progress = Rc::new(progress);
        let mut findings = Findings::default();
        let mut surveys = Vec::new();
        for (path, input) in open_all(files, &progress, &mut findings)? {
            let survey = Survey::of(path, input, &mut findings)
                .and_then(|survey| survey.with_sidecar(&mut findings));
            match survey {
                Ok(survey) => surveys.push(survey),
                Err(failure) => leave_out(failure, &mut findings)?,
            }
        }
        let surveys = in_series(surveys, &mut findings);
        let merged = TraceInfo::merged(surveys.iter().map(|survey| &survey.info));
        let Some(mut info) = merged.map_err(|mismatch| cannot_merge(mismatch, &surveys))? else {
            progress.clear();
            findings.report();
            return Err(Failure::Trouble("none of the traces can be read".to_owned()));
        };
        let rates = Rates::of(surveys.iter().flat_map(Survey::samples_by_rate));
        if rates.all().len() > MOST_RATES as usize {
            return Err(Failure::Trouble("the traces have too many sampling rates".to_owned()));
        }
        info.sample_rate = rates.all().first().copied().unwrap_or(info.sample_rate);
        info.executable = programs(&surveys).into_bytes();
        let mut endings = continued(&surveys.iter().map(Survey::span).collect::<Vec<_>>());
        for (ending, survey) in endings.iter_mut().zip(&surveys) {
            if survey.part.is_some() {
                // What becomes of its blocks is known.
                *ending = TraceEnding::Process;
            }
        }
        findings.add(carried_over(&surveys, &endings).into_iter().collect(), Verdict::Sound);
        Ok(TraceSet { surveys: surveys.into(), endings, info, rates, findings, progress })
    }

    pub(crate) fn info(&self) -> &TraceInfo {
        &self.info
    }

    /// The rates at which blocks were sampled, if these are several.
    pub(crate) fn rates(&self) -> &Rates {
        &self.rates
    }

    /// Each of them.
    pub(crate) fn parts(&self) -> Vec<TracePart> {
        let part =
            |survey: &Survey| TracePart { path: survey.path.clone(), info: survey.info.clone() };
        self.surveys.iter().map(part).collect()
    }

    /// Each of them with what the first reading found.
    pub(crate) fn files(&self) -> Vec<SurveyedFile> {
        let file = |survey: &Survey| SurveyedFile {
            path: survey.path.clone(),
            part: survey.part.as_ref().map(SeriesPart::number),
            rate: survey.info.sample_rate,
            start: survey.info.start_time,
            end: survey.last_time.max(survey.part.as_ref().map_or(0, SeriesPart::last_time)),
        };
        self.surveys.iter().map(file).collect()
    }

    /// What to call them, if these are the arguments that named them.
    pub(crate) fn name(&self, arguments: &[PathBuf]) -> String {
        let names: Vec<String> = arguments.iter().take(3).map(|path| shown(path)).collect();
        let more = if arguments.len() > names.len() { ", …" } else { "" };
        format!("{}{more} ({} traces)", names.join(", "), self.surveys.len())
    }

    /// Passes every event to `state` in the order of time, with the number of the rate at which the last
    /// block of its trace was sampled, and the ids of each trace that ends before the last one does.
    pub(crate) fn merge<S>(
        &self,
        state: &mut S,
        event: impl Fn(&mut S, &Event<'_>, &LocationTable, u32),
        end: impl Fn(&mut S, Range<u64>, TraceEnding),
    ) -> Result<MergedTraces<'static>, Failure> {
        self.each_item(|item, rate| {
            match item {
                MergedItem::Event(next, table, _) => event(state, &next, table, rate),
                MergedItem::End { trace, ids } => end(state, ids, self.endings[trace]),
            }
            Ok(())
        })
    }

    /// Passes every event to `take` in the order of time, with the rate at which the last block of its
    /// trace was sampled, until one fails.
    pub(crate) fn each_event(
        &self,
        mut take: impl FnMut(&Event<'_>, &LocationTable, f64) -> Result<(), Failure>,
    ) -> Result<MergedTraces<'static>, Failure> {
        self.each_item(|item, _| match item {
            MergedItem::Event(next, table, rate) => take(&next, table, rate),
            MergedItem::End { .. } => Ok(()),
        })
    }

    fn each_item(
        &self,
        mut take: impl FnMut(MergedItem<'_>, u32) -> Result<(), Failure>,
    ) -> Result<MergedTraces<'static>, Failure> {
        let extents: Vec<TraceExtent> = self.surveys.iter().map(|survey| survey.extent).collect();
        let surveys = Rc::clone(&self.surveys);
        let open = move |trace: usize| {
            let Survey { input, order, part, .. } = &surveys[trace];
            let source = input.source(*order)?;
            match part {
                Some(part) => part.source(source),
                None => Ok(source),
            }
        };
        let failed = |error| self.failure(error);
        let mut merged =
            MergedTraces::new(self.info.clone(), &extents, Box::new(open)).map_err(failed)?;
        while let Some(item) = merged.next_item().map_err(failed)? {
            let rate = match &item {
                MergedItem::Event(next, _, rate) => self.rate_number(next, *rate)?,
                MergedItem::End { .. } => 0,
            };
            take(item, rate)?;
        }
        self.progress.clear();
        Ok(merged)
    }

    /// The number of the rate of an event.
    fn rate_number(&self, event: &Event<'_>, rate: f64) -> Result<u32, Failure> {
        match event.kind {
            EventKind::Alloc(allocation) if allocation.samples > 0 => {}
            _ => return Ok(0),
        }
        let is_only_one = !self.rates.are_several() && rate == self.info.sample_rate;
        self.rates.number(rate).or(is_only_one.then_some(0)).ok_or_else(|| {
            Failure::Trouble(format!(
                "a trace has blocks that were sampled at {rate}, which it did not have when it was \
                 read first; wait for its program to end, or copy it first"
            ))
        })
    }

    fn failure(&self, error: MergeError) -> Failure {
        let name = |trace: usize| self.surveys[trace].input.name();
        match error {
            MergeError::Read { trace, error } => self.surveys[trace].input.failure(error),
            MergeError::Ids { trace } => Failure::Trouble(format!(
                "{}: its object ids are too large to merge it with others; give it alone",
                name(trace)
            )),
            MergeError::Changed { trace } => Failure::Trouble(format!(
                "{}: changed while it was read; wait for its program to end, or copy it first",
                name(trace)
            )),
        }
    }

    /// What the last of them says of its end, if it is missing.
    pub(crate) fn last_cut_short(&self) -> Option<CutShort> {
        self.surveys.iter().max_by_key(|survey| survey.info.start_time)?.cut_short
    }

    /// Which traces are cut short, and until when each covers its program.
    pub(crate) fn cut_short(&self) -> Option<String> {
        let mut cut = self.surveys.iter().filter_map(|survey| {
            let cut = survey.cut_short.as_ref()?;
            Some(format!("{}: {}", survey.input.name(), notices::cut_short(cut)))
        });
        let first = cut.next()?;
        Some(match cut.count() {
            0 => first,
            1 => format!("{first}; one more trace is cut short as well"),
            more => format!("{first}; {more} more traces are cut short as well"),
        })
    }

    /// Which trace does not have all that its program did, and why.
    pub(crate) fn incomplete(&self) -> Option<String> {
        self.surveys.iter().find_map(|survey| {
            let why = survey.incomplete.as_ref()?;
            Some(format!("{}: {why}", survey.input.name()))
        })
    }

    /// What is to be reported at the end.
    pub(crate) fn into_findings(self) -> Findings {
        self.findings
    }
}

/// Opens the files, each once. One that was named but cannot be opened is a wrong call.
fn open_all(
    files: &[InputFile],
    progress: &Rc<Progress>,
    findings: &mut Findings,
) -> Result<Vec<(PathBuf, Input)>, Failure> {
    let mut known = HashSet::new();
    let mut inputs = Vec::new();
    for file in files {
        match Input::open_on_demand(&file.path, progress) {
            Ok(input) => match input.identity() {
                Some(identity) if !known.insert(identity) => {
                    let line = format!("{}: given twice, counted once", input.name());
                    findings.add(vec![line], Verdict::Sound);
                }
                _ => inputs.push((file.path.clone(), input)),
            },
            Err(failure) if file.found => leave_out(failure, findings)?,
            Err(failure) => return Err(failure),
        }
    }
    Ok(inputs)
}

/// Records that a file is left out because of a failure, unless that is about the output.
fn leave_out(failure: Failure, findings: &mut Findings) -> Result<(), Failure> {
    let (Failure::Trouble(message) | Failure::Defective(message)) = failure else {
        return Err(failure);
    };
    findings.add(vec![format!("{message}; left out")], Verdict::LeftOut);
    Ok(())
}

/// What the first reading keeps of the events.
struct EventSurvey {
    lives: Lives,
    ids: u64,
    samples: u64,
    last_time: u64,
    domain: Option<u16>,
    order: Order,
}

impl EventSurvey {
    fn new() -> Self {
        EventSurvey {
            lives: Lives::new(Lives::MEMORY),
            ids: 0,
            samples: 0,
            last_time: 0,
            domain: None,
            order: Order::File,
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        if *self.domain.get_or_insert(event.domain) != event.domain {
            self.order = Order::Time;
        }
        self.lives.event(event);
        self.last_time = self.last_time.max(event.time);
        if let EventKind::Alloc(allocation) = event.kind {
            self.samples = self.samples.saturating_add(allocation.samples);
        }
        if let Some(id) = event.kind.block_id() {
            self.ids = self.ids.max(id.saturating_add(1));
        }
    }
}

impl Survey {
    /// Reads a trace to its end.
    fn of(path: PathBuf, input: Input, findings: &mut Findings) -> Result<Survey, Failure> {
        let mut state = EventSurvey::new();
        let reader = in_time_order(&input, EventSurvey::new, &mut state, |state, event, _| {
            state.event(event);
        })?;
        let (lines, verdict) = input.findings(&*reader, &mut state.lives, &outcome_in_reports);
        findings.add(lines, verdict);
        let info = reader.info().clone();
        Ok(Survey {
            extent: TraceExtent { start_time: info.start_time, ids: state.ids, continues: false },
            samples: state.samples,
            part: None,
            last_time: state.last_time.max(info.start_time),
            info,
            // The other reading knows from the start what a code means at the end.
            order: if reader.locations().is_stable() { state.order } else { Order::Time },
            cut_short: reader.losses().cut_short,
            incomplete: notices::incomplete(reader.losses()),
            path,
            input,
        })
    }

    /// The same as a part of a series, if it has a sidecar that says so.
    fn with_sidecar(mut self, findings: &mut Findings) -> Result<Survey, Failure> {
        self.part = SeriesPart::of(&self.path, &self.info, findings)?;
        if let Some(part) = &self.part {
            self.extent.ids = part.ids(self.extent.ids);
        }
        Ok(self)
    }

    /// The rates at which its blocks were sampled, with the samples of each.
    fn samples_by_rate(&self) -> Vec<(f64, u64)> {
        let mut all = vec![(self.info.sample_rate, self.samples)];
        all.extend(self.part.iter().flat_map(SeriesPart::samples_by_rate));
        all
    }

    /// Whose trace it is, and when.
    fn span(&self) -> TraceSpan<'_> {
        TraceSpan { info: &self.info, last_time: self.last_time, is_cut: self.incomplete.is_some() }
    }
}

impl InSeries for Survey {
    fn part(&self) -> Option<&SeriesPart> {
        self.part.as_ref()
    }

    fn name(&self) -> &str {
        self.input.name()
    }

    fn follow(&mut self, follows: bool) -> Option<&mut SeriesPart> {
        self.extent.continues = follows;
        self.part.as_mut()
    }
}

/// What to say of files whose process went on in another one.
fn carried_over(surveys: &[Survey], endings: &[TraceEnding]) -> Option<String> {
    let is_continued = |(_, ending): &(&Survey, &TraceEnding)| **ending == TraceEnding::Continued;
    let mut continued = surveys.iter().zip(endings).filter(is_continued);
    let (first, _) = continued.next()?;
    let others = match continued.count() {
        0 => String::new(),
        1 => " (and another such file)".to_owned(),
        more => format!(" (and {more} more such files)"),
    };
    Some(format!(
        "{}{others}: its process, {}, went on in another file, which does not say what became of \
         the blocks in this one; what was alive is known within bounds only",
        first.input.name(),
        first.info.pid
    ))
}

fn cannot_merge(mismatch: Mismatch, surveys: &[Survey]) -> Failure {
    Failure::Trouble(match mismatch {
        Mismatch::WordSize(one, other) => {
            let [one, other] = [one, other].map(|index| &surveys[index]);
            format!(
                "{} has words of {} bits and {} of {}: give them apart",
                one.input.name(),
                one.info.word_size,
                other.input.name(),
                other.info.word_size
            )
        }
    })
}

/// The programs, the one with the most traces first.
fn programs(surveys: &[Survey]) -> String {
    const MOST_NAMED: usize = 4;
    let mut counts: Vec<(&[u8], usize)> = Vec::new();
    for Survey { info, .. } in surveys {
        let name = info.executable.as_slice();
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let named = counts.iter().take(MOST_NAMED).map(|&(name, count)| {
        let name = if name.is_empty() { &b"-"[..] } else { name };
        let traces = if count == 1 { "trace" } else { "traces" };
        format!("{} ({count} {traces})", String::from_utf8_lossy(name))
    });
    let named: Vec<String> = named.collect();
    match counts.len() - named.len() {
        0 => named.join(", "),
        more => format!("{}, {more} more", named.join(", ")),
    }
}
