//! A trace and its aggregate, which grow as the trace is written: what `top` and `serve` tail.

use std::fs::File;
use std::ops::ControlFlow;
use std::time::{Duration, Instant, SystemTime};

use heaptap_report::{Aggregator, Options};
use heaptap_trace::{CutReason, EventSource, Losses, TraceInfo};

use crate::analysis::series::is_later_part;
use crate::analysis::so_far::FiguresSoFar;
use crate::analysis::time_order::in_time_order;
use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::live_trace::{LiveState, LiveTrace};
use crate::io::notices;

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
    fn new(info: &TraceInfo, options: &Options) -> ReadSoFar {
        ReadSoFar {
            info: info.clone(),
            aggregator: Aggregator::new(info, options.clone()),
            domain: None,
            several_domains: false,
            latest: 0,
            seen: 0,
            sorted: None,
        }
    }
}

impl LiveAggregation {
    pub(crate) fn new(trace: LiveTrace, options: Options) -> LiveAggregation {
        let (state, lag) = (LiveState::Waiting, Lag::default());
        LiveAggregation { trace, options, read: None, state, replaced: 0, lag }
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
            let options = &self.options;
            self.read = self.trace.info()?.map(|info| ReadSoFar::new(info, options));
            *changed |= self.read.is_some();
        }
        let Some(read) = &mut self.read else {
            // Nothing is there yet, unless the trace was replaced.
            return self.trace.poll(&mut |_, _| ControlFlow::Break(()));
        };
        let (mut events, mut oldest) = (0, None);
        let state = self.trace.poll(&mut |event, table| {
            *changed = true;
            oldest = Some(oldest.map_or(event.time, |oldest: u64| oldest.min(event.time)));
            read.several_domains |= *read.domain.get_or_insert(event.domain) != event.domain;
            read.latest = read.latest.max(event.time.saturating_sub(read.info.start_time));
            read.aggregator.event(event, table);
            events += 1;
            if events % EVENTS_PER_LOOK == 0 && Instant::now() >= until {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        self.lag.note(oldest, state);
        Ok(state)
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
        let Some(read) = self.read.as_mut().filter(|read| read.several_domains) else {
            return Ok(());
        };
        let Some(file) = self.trace.file().filter(|_| read.sorted.is_none()) else {
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
        self.trace.bytes_read()
    }

    /// Microseconds from the start of the trace to now, as long as its program is seen to run; else
    /// to the last moment that is known of.
    pub(crate) fn latest(&self) -> u64 {
        self.latest_written().max(self.read.as_ref().map_or(0, |read| read.seen))
    }

    /// The same to the last moment that the trace has.
    fn latest_written(&self) -> u64 {
        self.read.as_ref().map_or(0, |read| read.latest.max(self.trace.covered()))
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
        let goes_on = self.trace.path().is_some_and(is_later_part);
        goes_on.then(|| {
            "it goes on from other files of a series: what was alive when it began is not in live \
             sizes; `heaptap report` of their directory has it"
                .to_owned()
        })
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
        let ReadSoFar { info, aggregator, sorted, .. } = self.read.as_mut()?;
        let locations = match sorted {
            Some(sorted) => sorted.locations(),
            None => self.trace.locations()?,
        };
        let (aggregate, blocks) = aggregator.aggregate_with_blocks();
        Some(FiguresSoFar { info, aggregate, blocks, locations })
    }
}
