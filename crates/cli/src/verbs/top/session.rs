//! What `top` asks of a trace that grows.

use std::time::Duration;

use heaptap_report::figures::{Figures, TableOptions, TableView, TraceFigures};
use heaptap_report::rows::{By, Grouping, Site};
use heaptap_report::{
    Aggregate, Caller, Depth, MOST_BLOCKS, Metric, Options, Regex, Selection, SiteFrame,
};
use heaptap_trace::{LocationTable, TraceInfo};

use crate::analysis::live::LiveAggregation;
use crate::analysis::so_far::FiguresSoFar;
use crate::exit_status::Failure;
use crate::io::live_trace::{LiveState, LiveTrace};

/// The levels of callers that are shown.
const LEVELS: usize = 12;

/// The most buckets of the live size over time.
const MOST_BUCKETS: usize = 2048;

/// Which figures are shown.
#[derive(Clone)]
pub(super) struct Query {
    pub(super) by: By,
    /// Which frame of a stack a row is about.
    pub(super) site: SiteFrame,
    pub(super) metric: Metric,
    /// Only blocks with a frame that matches.
    pub(super) filter: Option<Regex>,
    /// Microseconds since the start of the trace; `None` for now.
    pub(super) moment: Option<u64>,
    /// If that is known, only what was old by then has survived.
    pub(super) old_before: Option<u64>,
}

/// The live size over time.
#[derive(Default)]
pub(super) struct LiveSize {
    /// Microseconds in a bucket.
    pub(super) bucket_us: u64,
    /// The largest live size in each bucket.
    pub(super) most_bytes: Vec<f64>,
    /// The live size at the end of the last one.
    pub(super) last_bytes: f64,
}

impl LiveSize {
    fn of(aggregate: &Aggregate) -> LiveSize {
        let scale = aggregate.scale();
        let bytes = |samples: u64| scale.bytes_of(samples);
        let timeline = aggregate.timeline();
        let last = timeline.buckets().last().map_or(0, |bucket| bucket.live.count);
        LiveSize {
            bucket_us: timeline.width(),
            most_bytes: timeline.buckets().iter().map(|bucket| bytes(bucket.most_live)).collect(),
            last_bytes: bytes(last),
        }
    }

    /// Goes on to this moment: since its end nothing was sampled, so as much is alive.
    pub(super) fn extend_to(&mut self, moment: u64) {
        if self.most_bytes.is_empty() {
            return;
        }
        self.bucket_us = self.bucket_us.max(1);
        while moment / self.bucket_us >= MOST_BUCKETS as u64 {
            let pairs = self.most_bytes.chunks(2);
            self.most_bytes = pairs.map(|pair| pair.iter().copied().fold(0.0, f64::max)).collect();
            self.bucket_us *= 2;
        }
        let buckets = (moment / self.bucket_us) as usize + 1;
        if buckets > self.most_bytes.len() {
            self.most_bytes.resize(buckets, self.last_bytes);
        }
    }
}

/// A trace that is tailed.
pub(super) struct Session {
    pub(super) live: LiveAggregation,
}

impl Session {
    /// Whole stacks for callers, and the table of blocks for filters and earlier moments.
    pub(super) fn new(trace: LiveTrace) -> Session {
        let options =
            Options { depth: Depth::Whole, most_blocks: MOST_BLOCKS, ..Options::default() };
        Session { live: LiveAggregation::new(trace, options) }
    }

    /// Reads what is written so far, for at most this long, and in the order of time once it
    /// has ended. Returns whether anything changed.
    pub(super) fn advance(&mut self, time: Duration) -> Result<bool, Failure> {
        let changed = self.live.advance(time)?;
        if self.live.state() == LiveState::Ended {
            self.live.sort_by_time()?;
        }
        Ok(changed)
    }

    /// The live size over time of what a filter selects, whatever moment is in view.
    pub(super) fn live_size(&mut self, filter: Option<&Regex>) -> LiveSize {
        let Some(FiguresSoFar { aggregate, blocks, locations, .. }) = self.live.figures() else {
            return LiveSize::default();
        };
        let Some(filter) = filter else { return LiveSize::of(aggregate) };
        let include = vec![filter.clone()];
        let selection = Selection { include, ..Selection::default() };
        let options = Options { selection, depth: Depth::Source, ..Options::default() };
        LiveSize::of(&blocks.aggregate_until(u64::MAX, aggregate, locations, &options))
    }

    /// The table and totals that a query asks for; `None` before the trace's first packet.
    pub(super) fn figures(&mut self, query: &Query) -> Option<Figures> {
        let (name, cut_short) = (self.live.name().to_owned(), self.live.cut_short());
        let view = TableView { by: query.by, site: query.site, metric: query.metric, at: None };
        let table = TableOptions { view, top: 0, callers: None };
        self.with_aggregate(query, |info, aggregate, locations| {
            let trace = TraceFigures {
                name: &name,
                info,
                cut_short: cut_short.as_deref(),
                incomplete: None,
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
            let grouping = Grouping { by: query.by, site: query.site };
            aggregate.callers(locations, grouping, query.metric, &[site], LEVELS).pop()
        });
        found.flatten().unwrap_or_default()
    }

    /// Calls `look` with the aggregate that a query asks for.
    fn with_aggregate<T>(
        &mut self,
        query: &Query,
        look: impl FnOnce(&TraceInfo, &Aggregate, &LocationTable) -> T,
    ) -> Option<T> {
        let FiguresSoFar { info, aggregate: whole, blocks, locations } = self.live.figures()?;
        let depth = query.by.depth(Depth::Whole);
        let old_before = query.old_before.filter(|_| query.metric == Metric::Survived);
        if query.filter.is_none() && query.moment.is_none() && old_before.is_none() {
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
        let aggregate = match old_before {
            Some(before) => blocks.aggregate_survivors(moment, before, whole, locations, &options),
            None => blocks.aggregate_until(moment, whole, locations, &options),
        };
        Some(look(info, &aggregate, locations))
    }
}
