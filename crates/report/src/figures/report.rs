//! The figures of a report, which text, JSON and CSV all show.

use crate::aggregate::{Aggregate, Metric};
use crate::callers::Caller;
use crate::counts::Counts;
use crate::estimate::{Scale, Share};
use crate::own_code::SiteFrame;
use crate::rows::{Row, Site};
use serde::Serialize;

use crate::figures::before_attach::BeforeAttach;
use crate::figures::size::{Size, Sum, share, sized};
use crate::figures::snapshot_holders::{BlockHolders, JoinedSnapshot, SnapshotHolders};
use crate::figures::trace::{TableView, TraceFigures, by_name, row_title};

/// The options of the table.
#[derive(Clone, Copy, Debug)]
pub struct TableOptions {
    /// Its rows, and what is measured.
    pub view: TableView,
    /// The number of rows; 0 for all.
    pub top: usize,
    /// The levels of callers, if they are shown.
    pub callers: Option<usize>,
}

/// Everything that is shown. The field names are those of the JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "ReportFigures"))]
pub struct Figures {
    pub trace: String,
    pub executable: String,
    pub sample_rate: f64,
    pub word_bytes: f64,
    pub duration_us: u64,
    pub events: u64,
    /// Why the end of the trace is missing, and until when it covers the program.
    pub cut_short: Option<String>,
    /// Whether files of one process follow each other, of which none says what became of the
    /// blocks of those before it.
    pub carried_over: bool,
    /// Whether filters left blocks out.
    pub selected: bool,
    pub totals: Totals,
    pub timeline: Timeline,
    pub table: Table,
    pub limits: Limits,
    /// The snapshot that was joined, if one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub snapshot: Option<JoinedSnapshot>,
    /// What was in the heap before the trace began, if a snapshot was taken first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub before_attach: Option<BeforeAttach>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Totals {
    pub samples: u64,
    pub allocated: Size,
    /// The part of `allocated` outside the heap.
    pub external: Size,
    /// Corrected for having been chosen as the largest: see `live_at_peak`.
    pub peak: Size,
    /// What was seen alive at the moment of the peak, to which the rows of that metric add up.
    /// Of many noisy sizes the largest is too large by chance, so it is more than `peak`.
    pub live_at_peak: Size,
    /// The part of `peak` outside the heap.
    pub peak_external: Size,
    pub peak_us: u64,
    pub live: Size,
    /// The part of `live` outside the heap.
    pub live_external: Size,
    /// The part of `live` that no collection has seen.
    pub live_young: Size,
    pub promotion: Part,
    pub median_lifetime: Option<Time>,
    pub ninth_decile_lifetime: Option<Time>,
    pub survivors: Part,
}

/// A share with its standard error.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Part {
    pub share: f64,
    /// `None` if there is no sample, and nothing is known; and of promotions, if those of
    /// earlier files were not seen.
    pub error: Option<f64>,
}

impl Part {
    /// A share of this many samples.
    fn of(share: Share, all: u64, rate: f64) -> Part {
        let is_known = all > 0 || rate >= 1.0;
        Part { share: share.share, error: is_known.then_some(share.error) }
    }
}

/// A lifetime with its standard error.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Lifetime"))]
pub struct Time {
    pub us: f64,
    pub error: f64,
}

/// Live bytes over time.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "ReportTimeline"))]
pub struct Timeline {
    pub bucket_us: u64,
    pub most_live_bytes: Vec<f64>,
    pub allocated_bytes: Vec<f64>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "ReportTable"))]
pub struct Table {
    pub metric: String,
    #[cfg_attr(feature = "typescript", ts(type = "By"))]
    pub by: &'static str,
    /// Which frame of a stack a row is about.
    pub sites: SiteFrame,
    pub rows: Vec<ReportRow>,
    pub others: Others,
    pub total: Sum,
    /// Whether the total is [`Totals::live_at_peak`].
    #[serde(skip)]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub is_of_peak: bool,
}

/// A row of the table.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ReportRow {
    #[serde(flatten)]
    pub site: Site,
    #[serde(flatten)]
    pub sum: Sum,
    /// Of the table's total.
    pub share: f64,
    /// What holds its blocks, if a snapshot was joined.
    #[serde(flatten)]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub held: Option<BlockHolders>,
    /// Of a caller: it is library code, the function that own code calls, and stands for all that is
    /// called inside.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub library: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<Vec<ReportRow>>"))]
    pub callers: Vec<ReportRow>,
}

/// The rows that are not shown.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "OtherRows"))]
pub struct Others {
    pub rows: usize,
    #[serde(flatten)]
    pub sum: Sum,
    pub share: f64,
}

/// What was lost to the bounds on memory.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Limits {
    /// One in this many objects was tracked.
    pub objects_followed_one_in: u64,
    /// The most samples of a call path that was joined with others, without its callers; 0 if none was.
    pub samples_missing_from_callers: u64,
}

impl Totals {
    /// Whether the text of the peak differs from that of what was seen alive then.
    pub fn is_peak_corrected(&self) -> bool {
        let are_known = self.peak.error.is_some() && self.live_at_peak.error.is_some();
        are_known && sized(&self.peak) != sized(&self.live_at_peak)
    }
}

impl Table {
    /// What the rows are, in a heading: `function`, or `function (own code)`.
    pub fn row_title(&self) -> String {
        row_title(self.by, self.sites)
    }
}

impl Figures {
    /// Whether the trace is cut short before its first sample: a size of 0 would be wrong.
    pub fn is_unknown(&self) -> bool {
        self.cut_short.is_some() && self.totals.samples == 0
    }

    /// The size of a row without a sample.
    pub fn no_sample(&self) -> Size {
        Scale { rate: self.sample_rate, word_bytes: self.word_bytes }.bytes(0).into()
    }

    /// The figures of a trace.
    pub fn of(trace: &TraceFigures<'_>, options: &TableOptions) -> Figures {
        let TraceFigures { aggregate, info, .. } = trace;
        Figures {
            trace: trace.name.to_owned(),
            executable: String::from_utf8_lossy(&info.executable).into_owned(),
            sample_rate: info.sample_rate,
            word_bytes: aggregate.scale().word_bytes,
            duration_us: aggregate.duration(),
            events: aggregate.events(),
            cut_short: trace.cut_short.map(str::to_owned),
            carried_over: aggregate.is_carried_over(),
            selected: trace.selected,
            totals: totals(aggregate),
            timeline: timeline(aggregate),
            table: table(trace, options),
            limits: Limits {
                objects_followed_one_in: 1 << aggregate.thinning(),
                samples_missing_from_callers: aggregate.missing_from_paths(),
            },
            snapshot: None,
            before_attach: None,
        }
    }

    /// Adds what holds the blocks of each row.
    pub fn join(&mut self, holders: &SnapshotHolders) {
        for row in &mut self.table.rows {
            row.held = Some(holders.of(&row.site));
        }
        self.snapshot = Some(holders.snapshot());
    }
}

fn totals(aggregate: &Aggregate) -> Totals {
    let rate = aggregate.scale().rate;
    let promotion = aggregate.promotion_rate();
    let lifetimes = aggregate.lifetimes();
    let quantile = |share| {
        let quantile = lifetimes.quantile(share, rate)?;
        Some(Time { us: quantile.micros, error: quantile.error })
    };
    let all = lifetimes.dead().saturating_add(lifetimes.survivors());
    let survivors = Share::scored(lifetimes.survivors(), all, rate);
    let of_young = Part::of(promotion, aggregate.young_samples(), rate);
    let counts = aggregate.total_counts();
    let size = |metric| aggregate.size(metric, &counts).into();
    Totals {
        samples: aggregate.samples(),
        allocated: size(Metric::Allocated),
        external: aggregate.external().into(),
        peak: aggregate.peak().into(),
        live_at_peak: size(Metric::Peak),
        peak_external: aggregate.peak_external().into(),
        peak_us: aggregate.peak_time(),
        live: size(Metric::Live),
        live_external: aggregate.live_external().into(),
        live_young: aggregate.live_young().into(),
        promotion: Part {
            error: of_young.error.filter(|_| !aggregate.is_carried_over()),
            ..of_young
        },
        median_lifetime: quantile(0.5),
        ninth_decile_lifetime: quantile(0.9),
        survivors: Part::of(survivors, all, rate),
    }
}

fn timeline(aggregate: &Aggregate) -> Timeline {
    let scale = aggregate.scale();
    let bytes = |samples: u64| samples as f64 * scale.word_bytes / scale.rate;
    let buckets = aggregate.timeline().buckets();
    Timeline {
        bucket_us: aggregate.timeline().width(),
        most_live_bytes: buckets.iter().map(|bucket| bytes(bucket.most_live)).collect(),
        allocated_bytes: buckets.iter().map(|bucket| bytes(bucket.allocated)).collect(),
    }
}

fn table(trace: &TraceFigures<'_>, options: &TableOptions) -> Table {
    let aggregate = trace.aggregate;
    let TableView { by, site, metric, .. } = options.view;
    let grouping = options.view.grouping();
    let total = aggregate.total_counts();
    let all = metric.samples(&total);
    let sum = |counts: &Counts| Sum {
        samples: metric.samples(counts),
        size: aggregate.size(metric, counts).into(),
    };
    let mut rows = aggregate.rows(trace.locations, grouping, metric);
    rows.retain(|row| metric.samples(&row.counts) > 0);
    let shown = if options.top == 0 { rows.len() } else { options.top.min(rows.len()) };
    let others = rows.split_off(shown);
    let mut left = Counts::default();
    others.iter().for_each(|row| left.add(&row.counts));
    let mut callers = match options.callers {
        Some(levels) => {
            let sites: Vec<Site> = rows.iter().map(|row| row.site.clone()).collect();
            aggregate.callers(trace.locations, grouping, metric, &sites, levels)
        }
        None => Vec::new(),
    };
    let row = |site: &Site, sum: Sum, callers| ReportRow {
        site: site.clone(),
        sum,
        share: share(sum.samples, all),
        held: None,
        library: false,
        callers,
    };
    let caller_row = |caller: &Caller, callers| {
        let &Caller { ref site, library, samples, .. } = caller;
        let size = aggregate.size_of_samples(metric, samples).into();
        ReportRow { library, ..row(site, Sum { samples, size }, callers) }
    };
    let shown_rows = rows.iter().enumerate().map(|(at, Row { site, counts })| {
        let callers = callers.get_mut(at).map(std::mem::take).unwrap_or_default();
        row(site, sum(counts), named(&callers, &caller_row))
    });
    Table {
        rows: shown_rows.collect(),
        metric: options.view.title(aggregate.peak_time()),
        by: by_name(by),
        sites: site,
        others: Others {
            rows: others.len(),
            sum: sum(&left),
            share: share(metric.samples(&left), all),
        },
        total: sum(&total),
        is_of_peak: metric == Metric::Peak,
    }
}

/// The callers as rows, each with its own callers.
fn named(
    callers: &[Caller],
    row: &impl Fn(&Caller, Vec<ReportRow>) -> ReportRow,
) -> Vec<ReportRow> {
    let one = |caller: &Caller| row(caller, named(&caller.callers, row));
    callers.iter().map(one).collect()
}
