//! The figures of a report, which text, JSON and CSV all show.

use heaptap_report::rows::{Row, Site};
use heaptap_report::{Aggregate, Caller, Metric};
use serde::Serialize;

use crate::analysis::aggregate::AggregatedTrace;
use crate::analysis::call_site::CallSite;
use crate::analysis::size::{Size, share};
use crate::analysis::view::View;

/// The options of the table.
pub(super) struct TableOptions<'a> {
    pub(super) view: &'a View,
    /// The number of rows; 0 for all.
    pub(super) top: usize,
    /// The levels of callers, if they are shown.
    pub(super) callers: Option<usize>,
}

/// Everything that is shown. The field names are those of the JSON.
#[derive(Serialize)]
pub(crate) struct Figures {
    pub(crate) trace: String,
    pub(crate) executable: String,
    pub(crate) sample_rate: f64,
    pub(crate) word_bytes: f64,
    pub(crate) duration_us: u64,
    pub(crate) events: u64,
    /// Why the end of the trace is missing, and until when it covers the program.
    pub(crate) cut_short: Option<String>,
    /// Whether filters left blocks out.
    pub(crate) selected: bool,
    pub(crate) totals: Totals,
    pub(crate) timeline: Timeline,
    pub(crate) table: Table,
    pub(crate) limits: Limits,
}

#[derive(Serialize)]
pub(crate) struct Totals {
    pub(crate) samples: u64,
    pub(crate) allocated: Size,
    /// The part of `allocated` outside the heap.
    pub(crate) external: Size,
    pub(crate) peak: Size,
    pub(crate) peak_us: u64,
    pub(crate) live: Size,
    /// The part of `live` that no collection has seen.
    pub(crate) live_young: Size,
    pub(crate) promotion: Part,
    pub(crate) median_lifetime: Option<Time>,
    pub(crate) ninth_decile_lifetime: Option<Time>,
    pub(crate) survivors: Part,
}

/// A share with its standard error.
#[derive(Serialize)]
pub(crate) struct Part {
    pub(crate) share: f64,
    pub(crate) error: f64,
}

/// A lifetime with its standard error.
#[derive(Serialize)]
pub(crate) struct Time {
    pub(crate) us: f64,
    pub(crate) error: f64,
}

/// Live bytes over time.
#[derive(Serialize)]
pub(crate) struct Timeline {
    pub(crate) bucket_us: u64,
    pub(crate) most_live_bytes: Vec<f64>,
    pub(crate) allocated_bytes: Vec<f64>,
}

#[derive(Serialize)]
pub(crate) struct Table {
    pub(crate) metric: String,
    pub(crate) by: &'static str,
    pub(crate) rows: Vec<ReportRow>,
    pub(crate) others: Others,
    pub(crate) total: Sum,
}

/// A row of the table.
#[derive(Serialize)]
pub(crate) struct ReportRow {
    #[serde(flatten)]
    pub(crate) site: CallSite,
    #[serde(flatten)]
    pub(crate) sum: Sum,
    /// Of the table's total.
    pub(crate) share: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) callers: Vec<ReportRow>,
}

/// Samples, and the size they stand for.
#[derive(Serialize)]
pub(crate) struct Sum {
    pub(crate) samples: u64,
    #[serde(flatten)]
    pub(crate) size: Size,
}

/// The rows that are not shown.
#[derive(Serialize)]
pub(crate) struct Others {
    pub(crate) rows: usize,
    #[serde(flatten)]
    pub(crate) sum: Sum,
    pub(crate) share: f64,
}

/// What was lost to the bounds on memory.
#[derive(Serialize)]
pub(crate) struct Limits {
    /// One in this many objects was followed.
    pub(crate) objects_followed_one_in: u64,
    /// The most samples that can be missing from a caller.
    pub(crate) samples_missing_from_callers: u64,
}

impl Figures {
    /// Whether the trace is cut short before its first sample: a size of 0 would be wrong.
    pub(super) fn is_unknown(&self) -> bool {
        self.cut_short.is_some() && self.totals.samples == 0
    }

    pub(super) fn of(
        trace: &AggregatedTrace,
        options: &TableOptions<'_>,
        selected: bool,
    ) -> Figures {
        let aggregate = &trace.aggregate;
        let info = trace.info();
        Figures {
            trace: trace.name().to_owned(),
            executable: String::from_utf8_lossy(&info.executable).into_owned(),
            sample_rate: info.sample_rate,
            word_bytes: aggregate.scale().word_bytes,
            duration_us: aggregate.duration(),
            events: aggregate.events(),
            cut_short: trace.cut_short().map(str::to_owned),
            selected,
            totals: totals(aggregate),
            timeline: timeline(aggregate),
            table: table(trace, options),
            limits: Limits {
                objects_followed_one_in: 1 << aggregate.thinning(),
                samples_missing_from_callers: aggregate.missing_from_paths(),
            },
        }
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
    let survivors = heaptap_report::Share::of(lifetimes.survivors(), all, rate);
    let size = |metric| aggregate.estimate(metric, aggregate.total(metric)).into();
    Totals {
        samples: aggregate.samples(),
        allocated: size(Metric::Allocated),
        external: aggregate.external().into(),
        peak: aggregate.peak().into(),
        peak_us: aggregate.peak_time(),
        live: size(Metric::Live),
        live_young: aggregate.live_young().into(),
        promotion: Part { share: promotion.share, error: promotion.error },
        median_lifetime: quantile(0.5),
        ninth_decile_lifetime: quantile(0.9),
        survivors: Part { share: survivors.share, error: survivors.error },
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

fn table(trace: &AggregatedTrace, options: &TableOptions<'_>) -> Table {
    let aggregate = &trace.aggregate;
    let (by, metric) = (options.view.by, options.view.metric());
    let all = aggregate.total(metric);
    let sum = |samples| Sum { samples, size: aggregate.estimate(metric, samples).into() };
    let mut rows = aggregate.rows(trace.locations(), by.by(), metric);
    rows.retain(|row| metric.samples(&row.counts) > 0);
    let shown = if options.top == 0 { rows.len() } else { options.top.min(rows.len()) };
    let others = rows.split_off(shown);
    let left: u64 = others.iter().map(|row| metric.samples(&row.counts)).sum();
    let mut callers = match options.callers {
        Some(levels) => {
            let sites: Vec<Site> = rows.iter().map(|row| row.site.clone()).collect();
            aggregate.callers(trace.locations(), by.by(), metric, &sites, levels)
        }
        None => Vec::new(),
    };
    let row = |site: &Site, samples, callers| ReportRow {
        site: CallSite::from(site),
        sum: sum(samples),
        share: share(samples, all),
        callers,
    };
    let shown_rows = rows.iter().enumerate().map(|(at, Row { site, counts })| {
        let callers = callers.get_mut(at).map(std::mem::take).unwrap_or_default();
        let callers = named(&callers, &row);
        row(site, metric.samples(counts), callers)
    });
    Table {
        rows: shown_rows.collect(),
        metric: options.view.title(aggregate.peak_time()),
        by: by.name(),
        others: Others { rows: others.len(), sum: sum(left), share: share(left, all) },
        total: sum(all),
    }
}

/// The callers as rows, each with its own callers.
fn named(
    callers: &[Caller],
    row: &impl Fn(&Site, u64, Vec<ReportRow>) -> ReportRow,
) -> Vec<ReportRow> {
    let one = |caller: &Caller| row(&caller.site, caller.samples, named(&caller.callers, row));
    callers.iter().map(one).collect()
}
