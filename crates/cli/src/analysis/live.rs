//! A trace and its aggregate, which grow as the trace is written: what `top` and `serve` tail.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use heaptap_report::{Aggregator, Options, Rates};
use heaptap_trace::{CutReason, Event, EventKind, EventSource, LocationTable, Losses, TraceInfo};

use crate::analysis::live_series::{LiveSeries, NextPart};
use crate::analysis::several::TraceSet;
use crate::analysis::so_far::FiguresSoFar;
use crate::analysis::time_order::in_time_order;
use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::live_trace::{LiveState, LiveTrace};
use crate::io::notices;
use crate::io::trace_files::InputFile;
use crate::io::watch::Watch;

/// How often the time is looked at, in events.
const EVENTS_PER_LOOK: u32 = 1024;

/// How far the clock of a program may be behind that of this machine when it writes, and how far
/// ahead: what it writes may have waited.
const BEHIND: Duration = Duration::from_secs(10);
const AHEAD: Duration = Duration::from_secs(1);

/// A trace that is tailed, with its figures so far.
pub(crate) struct LiveAggregation {
    trace: LiveTrace,
    options: Options,
    read: Option<ReadSoFar>,
    state: LiveState,
    /// How often another trace took the place of this one.
    replaced: u32,
    lag: Lag,
    /// The rates in the series, as far as they are known.
    rates: Vec<f64>,
    /// The bytes that were read of parts before.
    bytes_before: u64,
}

/// How late events are: from their times, which the program took, to when they are counted.
/// Those that were there at the beginning say nothing about that.
#[derive(Clone, Copy, Default)]
pub(crate) struct Lag {
    is_caught_up: bool,
    /// Of the latest reading that had events, its first one.
    pub(crate) last: Duration,
    pub(crate) worst: Duration,
}

impl Lag {
    /// After a reading whose first event was at `oldest`, in microseconds since the epoch.
    fn note(&mut self, oldest: Option<u64>, state: LiveState) {
        if let Some(oldest) = oldest.filter(|_| self.is_caught_up) {
            let event = SystemTime::UNIX_EPOCH + Duration::from_micros(oldest);
            // The clock may have been set back.
            self.last = event.elapsed().unwrap_or_default();
            self.worst = self.worst.max(self.last);
        }
        self.is_caught_up |= state == LiveState::Waiting;
    }
}

/// What was read of a trace whose first packet is there.
struct ReadSoFar {
    info: TraceInfo,
    aggregator: Aggregator,
    rates: Rates,
    /// If it is one.
    series: Option<LiveSeries>,
    /// The domain of the first event.
    domain: Option<u16>,
    several_domains: bool,
    /// Microseconds from the start to the latest event.
    latest: u64,
    /// The same to the last moment at which its program was seen to run.
    seen: u64,
    /// The reading in the order of time, after the end.
    sorted: Option<Box<dyn EventSource>>,
}

impl ReadSoFar {
    fn new(
        info: TraceInfo,
        series: Option<LiveSeries>,
        rates: Rates,
        options: &Options,
    ) -> ReadSoFar {
        let options = Options { rates: rates.clone(), ..options.clone() };
        ReadSoFar {
            aggregator: Aggregator::new(&info, options),
            info,
            rates,
            series,
            domain: None,
            several_domains: false,
            latest: 0,
            seen: 0,
            sorted: None,
        }
    }

    /// Counts an event. `rate` is the number of the one at which its block was sampled.
    fn count(&mut self, event: &Event<'_>, table: &LocationTable, rate: u32) {
        self.several_domains |= *self.domain.get_or_insert(event.domain) != event.domain;
        self.latest = self.latest.max(event.time.saturating_sub(self.info.start_time));
        self.aggregator.event_at(event, table, rate);
    }

    /// Counts what a series has, up to an event of the trace that is being read; without one, all
    /// that its sidecar has. If a block was sampled at a rate that is not known, that is returned.
    fn count_series(
        &mut self,
        next: Option<(&Event<'_>, &LocationTable)>,
        changed: &mut bool,
    ) -> io::Result<Option<f64>> {
        let Some(mut series) = self.series.take() else { return Ok(None) };
        let mut unknown = None;
        let mut take = |event: &Event<'_>, table: &LocationTable, rate: f64| {
            *changed = true;
            match self.rate_number(event, rate) {
                Some(number) => self.count(event, table, number),
                None => unknown = Some(rate),
            }
        };
        let counted = match next {
            Some((event, table)) => series.event(event, table, &mut take),
            None => series.rest(&mut take),
        };
        self.series = Some(series);
        counted.map(|()| unknown)
    }

    fn rate_number(&self, event: &Event<'_>, rate: f64) -> Option<u32> {
        let is_sampled = matches!(event.kind, EventKind::Alloc(block) if block.samples > 0);
        let is_only_one = !self.rates.are_several() && rate == self.info.sample_rate;
        if is_sampled && !is_only_one { self.rates.number(rate) } else { Some(0) }
    }
}

/// These rates, of a trace to which more is added: up to 2⁴⁰ words of them fit their units.
fn rates_to_come(rates: &[f64]) -> Rates {
    const WORDS: f64 = (1_u64 << 40) as f64;
    let samples = |rate: f64| (WORDS / rates.len() as f64 * rate) as u64;
    Rates::of(rates.iter().map(|&rate| (rate, samples(rate))))
}

impl LiveAggregation {
    pub(crate) fn new(trace: LiveTrace, options: Options) -> LiveAggregation {
        let (state, lag) = (LiveState::Waiting, Lag::default());
        let (rates, bytes_before) = (Vec::new(), 0);
        let read = None;
        LiveAggregation { trace, options, read, state, replaced: 0, lag, rates, bytes_before }
    }

    /// Reads what is written so far, for at most this long. Returns whether anything
    /// changed.
    pub(crate) fn advance(&mut self, time: Duration) -> Result<bool, Failure> {
        let begin = Instant::now();
        let mut changed = false;
        loop {
            let state = self.read_some(begin + time, &mut changed)?;
            changed |= state != self.state;
            self.state = state;
            if state == LiveState::Waiting {
                self.look_at_the_clock();
            }
            match state {
                LiveState::Replaced | LiveState::Resumed => {
                    self.read = None;
                    self.replaced += u32::from(state == LiveState::Replaced);
                }
                LiveState::Waiting | LiveState::Ended => return Ok(changed),
                LiveState::More => {}
            }
            if begin.elapsed() >= time {
                return Ok(changed);
            }
        }
    }

    fn read_some(&mut self, until: Instant, changed: &mut bool) -> Result<LiveState, Failure> {
        if self.read.is_none() {
            *changed |= self.begin()?;
        }
        let Some(read) = &mut self.read else {
            // Nothing is there yet, unless the trace was replaced.
            return self.trace.poll(&mut |_, _| ControlFlow::Break(()));
        };
        let (mut events, mut oldest, mut unknown, mut failed) = (0, None, None, None);
        let state = self.trace.poll(&mut |event, table| {
            *changed = true;
            oldest = Some(oldest.map_or(event.time, |oldest: u64| oldest.min(event.time)));
            if read.series.is_none() {
                read.count(event, table, 0);
            } else {
                match read.count_series(Some((event, table)), changed) {
                    Ok(rate) => unknown = rate.or(unknown),
                    Err(error) => failed = Some(error),
                }
            }
            events += 1;
            if unknown.is_some()
                || failed.is_some()
                || events % EVENTS_PER_LOOK == 0 && Instant::now() >= until
            {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        if read.series.is_some() && matches!(state, LiveState::Waiting | LiveState::Ended) {
            match read.count_series(None, changed) {
                Ok(rate) => unknown = rate.or(unknown),
                Err(error) => failed = Some(error),
            }
        }
        self.lag.note(oldest, state);
        if let Some(error) = failed {
            return Err(Failure::Trouble(format!("{}: its sidecar: {error}", self.name())));
        }
        match unknown {
            Some(rate) => self.begin_again_with(rate),
            None => self.go_on_in_series(state),
        }
    }

    /// Begins to count, once the first packet is there. Returns whether it is.
    fn begin(&mut self) -> Result<bool, Failure> {
        let Some(info) = self.trace.info()? else { return Ok(false) };
        let mut info = info.clone();
        let series = match self.trace.path() {
            // A sidecar that cannot be read is as one that is not there.
            Some(path) => LiveSeries::from(path).unwrap_or_default(),
            None => None,
        };
        let rates = match &series {
            Some(series) => {
                self.rates.extend(series.rates());
                rates_to_come(&self.rates)
            }
            None => Rates::default(),
        };
        info.sample_rate = rates.all().first().copied().unwrap_or(info.sample_rate);
        self.bytes_before = 0;
        self.read = Some(ReadSoFar::new(info, series, rates, &self.options));
        Ok(true)
    }

    /// The series has samples of a rate that was not known when it was read first: it is read again, from
    /// the first of its parts that is still there.
    fn begin_again_with(&mut self, rate: f64) -> Result<LiveState, Failure> {
        self.rates.push(rate);
        let parts = self.read.as_ref().and_then(|read| read.series.as_ref()).map(LiveSeries::parts);
        let first = parts.unwrap_or_default().iter().find(|part| part.is_file()).cloned();
        if let Some(first) = first {
            self.trace = LiveTrace::open(&first, None)?;
        }
        Ok(LiveState::Resumed)
    }

    /// At the end of a part, goes on in the next one.
    fn go_on_in_series(&mut self, state: LiveState) -> Result<LiveState, Failure> {
        let Some(series) = self.read.as_mut().and_then(|read| read.series.as_mut()) else {
            return Ok(state);
        };
        match state {
            LiveState::Waiting if series.part_is_complete() => {
                self.trace.end();
                Ok(LiveState::More)
            }
            LiveState::Ended => match series.next_part() {
                None => Ok(state),
                Some(NextPart::Follows(next)) => {
                    let before = self.trace.bytes_read();
                    // It may be removed at this moment: then others are found.
                    let Ok(trace) = LiveTrace::open(&next, None) else { return Ok(state) };
                    if series.begin_part(&next).is_err() {
                        return Ok(state);
                    }
                    self.bytes_before += before;
                    self.trace = trace;
                    Ok(LiveState::More)
                }
                Some(NextPart::Later(next)) => {
                    let Ok(trace) = LiveTrace::open(&next, None) else { return Ok(state) };
                    self.trace = trace;
                    Ok(LiveState::Replaced)
                }
            },
            _ => Ok(state),
        }
    }

    /// Time goes by for a program that allocates nothing, too. Its clock is that of this machine if
    /// it was when the file was written last.
    fn look_at_the_clock(&mut self) {
        let Some(written) = self.trace.file().filter(|_| self.trace.is_being_written()) else {
            return;
        };
        let (latest, modified) =
            (self.latest_written(), written.metadata().and_then(|m| m.modified()));
        let (Some(read), Ok(modified)) = (&mut self.read, modified) else { return };
        let start = SystemTime::UNIX_EPOCH + Duration::from_micros(read.info.start_time);
        let until = start + Duration::from_micros(latest);
        let is_same_clock = until <= modified + AHEAD && modified <= until + BEHIND;
        if let Ok(age) = start.elapsed()
            && is_same_clock
        {
            read.seen = read.seen.max(u64::try_from(age.as_micros()).unwrap_or(u64::MAX));
        }
    }

    /// After the end: reads several domains again in the order of time, as every other report
    /// does. While the trace grows, that order is not known. A pipe cannot be read again.
    pub(crate) fn sort_by_time(&mut self) -> Result<(), Failure> {
        // A series and its sidecars are several streams, too.
        let is_mixed = |read: &&mut ReadSoFar| read.several_domains || read.series.is_some();
        let Some(read) = self.read.as_mut().filter(is_mixed) else {
            return Ok(());
        };
        if read.sorted.is_some() {
            return Ok(());
        }
        if let Some(series) = &read.series {
            let files = series.parts().iter().cloned();
            let files: Vec<_> = files.map(|path| InputFile { path, found: true }).collect();
            if !files.iter().all(|file| file.path.is_file()) {
                // What was read of parts that are gone stays as it came.
                return Ok(());
            }
            let options = self.options.clone();
            let sorted = Arc::new(Watch::default()).during(|| {
                let traces = TraceSet::survey(&files)?;
                let options = Options { rates: traces.rates().clone(), ..options };
                let mut aggregator = Aggregator::new(traces.info(), options);
                let merged =
                    traces.merge(&mut aggregator, Aggregator::event_at, Aggregator::end_trace)?;
                Ok::<_, Failure>((traces.info().clone(), aggregator, merged))
            });
            let (info, aggregator, merged) = sorted?;
            (read.info, read.aggregator) = (info, aggregator);
            read.sorted = Some(Box::new(merged));
            return Ok(());
        }
        let Some(file) = self.trace.file() else {
            return Ok(());
        };
        let input = Input::of_file(self.trace.name(), file)?.quietly();
        let fresh = || Aggregator::new(&read.info, self.options.clone());
        let mut aggregator = fresh();
        let sorted = in_time_order(&input, fresh, &mut aggregator, Aggregator::event)?;
        (read.aggregator, read.sorted) = (aggregator, Some(sorted));
        Ok(())
    }

    /// Waits a little for more.
    pub(crate) fn wait(&self) {
        self.trace.wait();
    }

    pub(crate) fn state(&self) -> LiveState {
        self.state
    }

    /// How often another trace took the place of the one before.
    pub(crate) fn replaced(&self) -> u32 {
        self.replaced
    }

    /// How late events are.
    pub(crate) fn lag(&self) -> Lag {
        self.lag
    }

    pub(crate) fn name(&self) -> &str {
        self.trace.name()
    }

    pub(crate) fn info(&self) -> Option<&TraceInfo> {
        self.read.as_ref().map(|read| &read.info)
    }

    /// The file, unless the trace is read from a pipe, and so ends with it.
    pub(crate) fn file(&self) -> Option<&File> {
        self.trace.file()
    }

    /// How many bytes were read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_before + self.trace.bytes_read()
    }

    /// How many of them were in files of the series before the one that is read now.
    pub(crate) fn bytes_before(&self) -> u64 {
        self.bytes_before
    }

    /// Where the file is that is read now; `None` for standard input.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.trace.path()
    }

    /// The files of a series that were read.
    pub(crate) fn parts(&self) -> &[PathBuf] {
        let series = self.read.as_ref().and_then(|read| read.series.as_ref());
        series.map_or(&[], LiveSeries::parts)
    }

    /// When the file begins that is read now, in microseconds since the epoch.
    pub(crate) fn file_start(&self) -> Option<u64> {
        let read = self.read.as_ref()?;
        Some(read.series.as_ref().map_or(read.info.start_time, LiveSeries::part_start))
    }

    /// Microseconds from the start of the trace to now, as long as its program is seen to run; else
    /// to the last moment that is known of.
    pub(crate) fn latest(&self) -> u64 {
        self.latest_written().max(self.read.as_ref().map_or(0, |read| read.seen))
    }

    /// The same to the last moment that the trace has.
    fn latest_written(&self) -> u64 {
        self.read.as_ref().map_or(0, |read| {
            let begin = read.series.as_ref().map_or(read.info.start_time, LiveSeries::part_start);
            let before = begin.saturating_sub(read.info.start_time);
            read.latest.max(before + self.trace.covered())
        })
    }

    /// Whether the trace has a defect.
    pub(crate) fn is_defective(&self) -> bool {
        self.trace.losses().is_some_and(|losses| losses.defect_count > 0)
    }

    /// Why the end of the trace is missing, after the last of it.
    pub(crate) fn cut_reason(&self) -> Option<CutReason> {
        let losses = self.losses_at_the_end()?;
        // Writers that do not mark unfinished traces may still end inside a packet.
        let truncated = losses.truncated.as_ref().map(|_| CutReason::Unfinished);
        let marked = losses.cut_short.as_ref().map(|cut| cut.reason);
        // What was marked as unfinished when it went through a pipe may have been finished since.
        let is_known =
            |&reason: &CutReason| self.trace.file().is_some() || reason != CutReason::Unfinished;
        marked.filter(is_known).or(truncated)
    }

    /// The same as a sentence.
    pub(crate) fn cut_short(&self) -> Option<String> {
        let losses = self.losses_at_the_end()?;
        losses.cut_short.as_ref().map(notices::cut_short)
    }

    fn losses_at_the_end(&self) -> Option<&Losses> {
        self.trace.losses().filter(|_| self.state == LiveState::Ended)
    }

    /// What is missing from the trace, in sentences.
    pub(crate) fn losses(&self) -> Vec<String> {
        let mut lines = notices::lines(&self.losses_so_far());
        lines.extend(self.not_from_the_start());
        lines
    }

    /// Why not all that the program has done so far was read, if that is so.
    pub(crate) fn incomplete(&self) -> Option<String> {
        notices::incomplete(&self.losses_so_far()).or_else(|| self.not_from_the_start())
    }

    /// What is not in the figures if the file goes on from others.
    fn not_from_the_start(&self) -> Option<String> {
        self.read.as_ref()?.series.as_ref()?.gaps()
    }

    fn losses_so_far(&self) -> Losses {
        let mut losses = self.trace.losses().cloned().unwrap_or_default();
        if self.state != LiveState::Ended {
            // A trace that is still being written has no end yet.
            losses.cut_short = None;
        }
        losses
    }

    /// The figures so far; `None` before the trace's first packet. Takes time in proportion to
    /// the live objects and the call paths.
    pub(crate) fn figures(&mut self) -> Option<FiguresSoFar<'_>> {
        let ReadSoFar { info, aggregator, sorted, series, .. } = self.read.as_mut()?;
        let locations = match (sorted, series) {
            (Some(sorted), _) => sorted.locations(),
            (None, Some(series)) => series.locations(),
            (None, None) => self.trace.locations()?,
        };
        let (aggregate, blocks) = aggregator.aggregate_with_blocks();
        Some(FiguresSoFar { info, aggregate, blocks, locations })
    }
}
