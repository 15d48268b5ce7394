//! A trace and its figures, which grow as it is written.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use heaptap_figures::{Figures, TableOptions, TableView, TraceFigures};
use heaptap_report::rows::{By, Site};
use heaptap_report::{
    Aggregate, Aggregator, Caller, Depth, MOST_BLOCKS, Metric, Options, Regex, Selection,
};
use heaptap_trace::{EventSource, LocationTable, TraceInfo};

use crate::analysis::time_order::in_time_order;
use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::live_trace::{LiveState, LiveTrace};
use crate::io::notices;

/// How often the time is looked at, in events.
const EVENTS_PER_LOOK: u32 = 1024;

/// The levels of callers that are shown.
const LEVELS: usize = 12;

/// Which figures are shown.
#[derive(Clone)]
pub(super) struct Query {
    pub(super) by: By,
    pub(super) metric: Metric,
    /// Only blocks with a frame that matches.
    pub(super) filter: Option<Regex>,
    /// Microseconds since the start of the trace; `None` for now.
    pub(super) moment: Option<u64>,
}

/// The live size over time.
#[derive(Default)]
pub(super) struct LiveSize {
    /// Microseconds in a bucket.
    pub(super) bucket_us: u64,
    /// The largest live size in each bucket.
    pub(super) most_bytes: Vec<f64>,
}

/// A trace that is followed.
pub(super) struct Session {
    trace: LiveTrace,
    read: Option<ReadSoFar>,
    state: LiveState,
    /// How often another trace took the place of this one.
    replaced: u32,
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
    /// The reading in the order of time, after the end.
    sorted: Option<Box<dyn EventSource>>,
}

impl ReadSoFar {
    fn new(info: &TraceInfo) -> ReadSoFar {
        ReadSoFar {
            info: info.clone(),
            aggregator: Aggregator::new(info, options()),
            domain: None,
            several_domains: false,
            latest: 0,
            sorted: None,
        }
    }
}

/// Whole stacks for callers, and the table of blocks for filters and earlier moments.
fn options() -> Options {
    Options { depth: Depth::Whole, most_blocks: MOST_BLOCKS, ..Options::default() }
}

impl Session {
    pub(super) fn new(trace: LiveTrace) -> Session {
        Session { trace, read: None, state: LiveState::Waiting, replaced: 0 }
    }

    /// Reads what is written so far, for at most this long. Returns whether anything
    /// changed.
    pub(super) fn advance(&mut self, time: Duration) -> Result<bool, Failure> {
        let begin = Instant::now();
        let mut changed = false;
        loop {
            let state = self.read_some(begin + time, &mut changed)?;
            changed |= state != self.state;
            self.state = state;
            match state {
                LiveState::Replaced => {
                    self.read = None;
                    self.replaced += 1;
                }
                LiveState::Ended => {
                    self.sort_by_time()?;
                    return Ok(changed);
                }
                LiveState::Waiting => return Ok(changed),
                LiveState::More => {}
            }
            if begin.elapsed() >= time {
                return Ok(changed);
            }
        }
    }

    fn read_some(&mut self, until: Instant, changed: &mut bool) -> Result<LiveState, Failure> {
        if self.read.is_none() {
            self.read = self.trace.info()?.map(ReadSoFar::new);
            *changed |= self.read.is_some();
        }
        let Some(read) = &mut self.read else {
            // Nothing is there yet, unless the trace was replaced.
            return self.trace.poll(&mut |_, _| ControlFlow::Break(()));
        };
        let mut events = 0;
        self.trace.poll(&mut |event, table| {
            *changed = true;
            read.several_domains |= *read.domain.get_or_insert(event.domain) != event.domain;
            read.latest = read.latest.max(event.time.saturating_sub(read.info.start_time));
            read.aggregator.event(event, table);
            events += 1;
            if events % EVENTS_PER_LOOK == 0 && Instant::now() >= until {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })
    }

    /// At the end, several domains are read again in the order of time, as in every other
    /// report. While the trace grows, that order is not known.
    fn sort_by_time(&mut self) -> Result<(), Failure> {
        let Some(read) = self.read.as_mut().filter(|read| read.several_domains) else {
            return Ok(());
        };
        let Some(file) = self.trace.file().filter(|_| read.sorted.is_none()) else {
            return Ok(());
        };
        let input = Input::of_file(self.trace.name(), file)?.quietly();
        let fresh = || Aggregator::new(&read.info, options());
        let mut aggregator = fresh();
        let sorted = in_time_order(&input, fresh, &mut aggregator, Aggregator::event)?;
        (read.aggregator, read.sorted) = (aggregator, Some(sorted));
        Ok(())
    }

    /// Waits a little for more.
    pub(super) fn wait(&self) {
        self.trace.wait();
    }

    pub(super) fn state(&self) -> LiveState {
        self.state
    }

    /// How often another trace took the place of the one before.
    pub(super) fn replaced(&self) -> u32 {
        self.replaced
    }

    pub(super) fn name(&self) -> &str {
        self.trace.name()
    }

    pub(super) fn info(&self) -> Option<&TraceInfo> {
        self.read.as_ref().map(|read| &read.info)
    }

    /// Microseconds from the start of the trace to its latest event.
    pub(super) fn latest(&self) -> u64 {
        self.read.as_ref().map_or(0, |read| read.latest)
    }

    /// Whether the trace is read from a pipe, and so ends with it.
    pub(super) fn is_pipe(&self) -> bool {
        self.trace.file().is_none()
    }

    /// The live size over time, whatever is selected.
    pub(super) fn live_size(&mut self) -> LiveSize {
        let Some(read) = &mut self.read else { return LiveSize::default() };
        let aggregate = read.aggregator.aggregate();
        let scale = aggregate.scale();
        let bytes = |samples: u64| samples as f64 * scale.word_bytes / scale.rate;
        let timeline = aggregate.timeline();
        LiveSize {
            bucket_us: timeline.width(),
            most_bytes: timeline.buckets().iter().map(|bucket| bytes(bucket.most_live)).collect(),
        }
    }

    /// Whether the trace has a defect.
    pub(super) fn is_defective(&self) -> bool {
        self.trace.losses().is_some_and(|losses| losses.defect_count > 0)
    }

    /// What is missing from the trace, in sentences.
    pub(super) fn losses(&self) -> Vec<String> {
        let mut losses = self.trace.losses().cloned().unwrap_or_default();
        if self.state != LiveState::Ended {
            // A trace that is still being written has no end yet.
            losses.cut_short = None;
        }
        notices::lines(&losses)
    }

    /// The table and totals that a query asks for; `None` before the trace's first packet.
    pub(super) fn figures(&mut self, query: &Query) -> Option<Figures> {
        let (name, cut_short) = (self.trace.name().to_owned(), self.cut_short());
        let view = TableView { by: query.by, metric: query.metric, at: None };
        let table = TableOptions { view, top: 0, callers: None };
        self.with_aggregate(query, |info, aggregate, locations| {
            let trace = TraceFigures {
                name: &name,
                info,
                cut_short: cut_short.as_deref(),
                aggregate,
                locations,
                selected: query.filter.is_some(),
            };
            Figures::of(&trace, &table)
        })
    }

    /// The callers of a site.
    pub(super) fn callers(&mut self, query: &Query, site: Site) -> Vec<Caller> {
        let found = self.with_aggregate(query, |_, aggregate, locations| {
            aggregate.callers(locations, query.by, query.metric, &[site], LEVELS).pop()
        });
        found.flatten().unwrap_or_default()
    }

    fn cut_short(&self) -> Option<String> {
        let losses = self.trace.losses().filter(|_| self.state == LiveState::Ended)?;
        losses.cut_short.as_ref().map(notices::cut_short)
    }

    /// Calls `look` with the aggregate that a query asks for.
    fn with_aggregate<T>(
        &mut self,
        query: &Query,
        look: impl FnOnce(&TraceInfo, &Aggregate, &LocationTable) -> T,
    ) -> Option<T> {
        let ReadSoFar { info, aggregator, sorted, .. } = self.read.as_mut()?;
        let locations = match sorted {
            Some(sorted) => sorted.locations(),
            None => self.trace.locations()?,
        };
        let depth = depth_of(query.by);
        let (whole, blocks) = aggregator.aggregate_with_blocks();
        if query.filter.is_none() && query.moment.is_none() {
            if depth == Depth::Whole {
                return Some(look(info, whole, locations));
            }
            if let Some(aggregate) = whole.regrouped(depth, locations) {
                return Some(look(info, &aggregate, locations));
            }
        }
        let selection =
            Selection { include: query.filter.iter().cloned().collect(), ..Selection::default() };
        let options = Options { selection, depth, ..Options::default() };
        let moment = query.moment.unwrap_or(u64::MAX);
        let aggregate = blocks.aggregate_until(moment, whole, locations, &options);
        Some(look(info, &aggregate, locations))
    }
}

/// How much of each stack rows of this kind need.
fn depth_of(by: By) -> Depth {
    match by {
        By::Function | By::Location | By::File | By::Module => Depth::Whole,
        By::Label => Depth::Label,
        By::Domain => Depth::Domain,
        By::Source => Depth::Source,
    }
}
