//! Live and allocated bytes over time, by row.
//!
//! Sums and totals come from the aggregate, as in a table. The lines of the rows come
//! from the table of blocks. If that is thinned, it gives the share of each row in
//! the total, so that the lines still add up to it.

use heaptap_report::figures::{Size, Sum, TraceFigures};
use heaptap_report::rows::{By, Grouping, Site};
use heaptap_report::{Aggregate, Archive, Estimate, Metric, Sampled};
use serde::Serialize;

use crate::answer::{Stated, json, sum, unit};
use crate::block_rows::{Inside, Rows};
use crate::evolution::{Counted, Evolution, Range, Steps, evolutions};
use crate::report::needs_frames;
use crate::request::{TraceRequest, Within};
use crate::traces::Traces;

/// The most rows that have a line of their own.
const MOST_SERIES: usize = 64;

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Timeline"))]
pub(crate) struct TimelineAnswer {
    /// When the first step begins.
    from_us: u64,
    width_us: u64,
    points: usize,
    /// The end of each step.
    times: Vec<u64>,
    series: Vec<Series>,
    others: Others,
    total: Total,
    peak_us: u64,
    peak: Size,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct Series {
    site: Site,
    /// Of the metric.
    sum: Sum,
    #[serde(flatten)]
    lines: Lines,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "OtherSeries"))]
struct Others {
    rows: usize,
    /// Of these, the ones that are larger than those that have a line.
    larger: usize,
    sum: Sum,
    #[serde(flatten)]
    lines: Lines,
}

/// Bytes at the end of each step, and allocated in it.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "SeriesLines"))]
struct Lines {
    live: Vec<f64>,
    allocated: Vec<f64>,
}

#[derive(Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "TotalSeries"))]
struct Total {
    live: Vec<f64>,
    most_live: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
    allocated: Vec<f64>,
}

/// `(skip, top)`: how many rows have a line, after so many larger ones.
pub(crate) fn timeline(
    traces: &mut Traces,
    of: &TraceRequest,
    (skip, top): (usize, usize),
    (points, range): (usize, Option<Range>),
    within: Option<&Within>,
) -> Result<String, String> {
    if within.is_some() {
        needs_frames(of.by)?;
    }
    let found = traces.find(of)?;
    let selected = traces.selected_rows(of)?;
    let table_rows = traces.rows(of.trace, of.grouping())?;
    let outer =
        within.map(|within| traces.rows(of.trace, Grouping { by: within.by, site: of.sites }));
    let outer = outer.transpose()?;
    let inside = within.zip(outer.as_deref());
    let inside = inside.map(|(within, outer)| Inside::new(outer, &within.site));
    let figures = traces.figures(of, &found)?;
    let archive = traces.archive(of.trace)?;
    let (aggregate, metric) = (figures.aggregate, of.metric);
    let steps = Steps::of(aggregate, points, range).with_one_before();

    let mut rows = row_sums(&figures, of, &table_rows, inside);
    rows.sort_by(|(one, first), (other, second)| {
        second.count.cmp(&first.count).then_with(|| one.cmp(other))
    });
    // Another filter may leave fewer rows: then the largest are shown.
    let larger = if skip < rows.len() { skip } else { 0 };
    let mut rest = rows.split_off((larger + top.clamp(1, MOST_SERIES)).min(rows.len()));
    rest.extend(rows.drain(..larger));
    let (sites, sums): (Vec<Site>, Vec<Sampled>) = rows.into_iter().unzip();
    let counted = Counted { selected: &selected, inside, rows: &table_rows, sites: &sites };
    let evolutions = evolutions(archive, &counted, &steps);
    let mut all = evolutions.others.clone();
    evolutions.of_sites.iter().for_each(|evolution| all.join(evolution));
    // Where steps are finer than the time line of the aggregate, blocks say what it does not.
    let total = match within {
        None if steps.width >= aggregate.timeline().width() => Total::of(aggregate, &steps),
        _ => Total::of_blocks(archive, &all),
    };
    let lines = |evolution: &Evolution| Lines::of(evolution, &all, &total, unit(aggregate));
    let series = sites.iter().zip(sums).zip(&evolutions.of_sites);
    let series = series.map(|((site, samples), evolution)| Series {
        site: site.clone(),
        sum: sum(aggregate, metric, samples),
        lines: lines(evolution),
    });
    let series = series.collect();
    // All that has no line of its own, whether the metric counts it or not.
    let left = rest.iter().map(|&(_, samples)| samples).sum();
    let others = Others {
        rows: rest.len(),
        larger,
        sum: sum(aggregate, metric, left),
        lines: lines(&evolutions.others),
    };
    let answer = TimelineAnswer {
        from_us: steps.from,
        width_us: steps.width,
        points: steps.count,
        times: steps.times(),
        series,
        others,
        total,
        peak_us: aggregate.peak_time(),
        peak: aggregate.peak().into(),
    };
    json(&Stated { answer, exact: found.exact })
}

/// The samples of each row, as a table has them; no row without samples.
pub(crate) fn row_sums(
    figures: &TraceFigures<'_>,
    of: &TraceRequest,
    rows: &Rows,
    inside: Option<Inside<'_>>,
) -> Vec<(Site, Sampled)> {
    let (aggregate, metric) = (figures.aggregate, of.metric);
    if !matches!(of.by, By::Function | By::Location | By::File | By::Module) {
        // The paths of the aggregate are its rows.
        let of_rows = aggregate.rows(figures.locations, of.by, metric).into_iter();
        let sums = of_rows.map(|row| (row.site, metric.of(&row.counts)));
        return sums.filter(|&(_, samples)| samples.count > 0).collect();
    }
    let mut sums = vec![Sampled::default(); rows.sites.len()];
    for (path, (_, counts)) in aggregate.paths().enumerate() {
        let Some(path) = aggregate.whole_path(path as u32) else { continue };
        let Some(number) = rows.of_path(path) else { continue };
        if inside.is_none_or(|inside| inside.has_path(path)) {
            let sum = &mut sums[number as usize];
            *sum = sum.plus(metric.of(&counts));
        }
    }
    let sums = rows.sites.iter().zip(sums).filter(|&(_, samples)| samples.count > 0);
    sums.map(|(site, samples)| (site.clone(), samples)).collect()
}

impl Lines {
    /// The lines of a row: its part of `all` blocks, as a part of the total.
    fn of(row: &Evolution, all: &Evolution, total: &Total, unit: f64) -> Lines {
        let part = |samples: f64, all: f64, total: f64| {
            // Without thinning, both totals are the same, and nothing is rounded.
            let is_same = all * unit == total || all <= 0.0;
            if is_same { samples * unit } else { samples / all * total }
        };
        let live = row.live.iter().zip(&all.live).zip(&total.live);
        let allocated = row.allocated.iter().zip(&all.allocated).zip(&total.allocated);
        Lines {
            live: live.map(|((&row, &all), &total)| part(row as f64, all as f64, total)).collect(),
            allocated: allocated
                .map(|((&row, &all), &total)| part(row as f64, all as f64, total))
                .collect(),
        }
    }
}

impl Total {
    /// The totals of the aggregate itself.
    fn of(aggregate: &Aggregate, steps: &Steps) -> Total {
        let unit = unit(aggregate);
        let buckets = aggregate.timeline().buckets();
        let mut total = Total::default();
        let bucket = |time: u64| {
            let number = time / aggregate.timeline().width();
            usize::try_from(number).map_or(buckets.len(), |number| number.min(buckets.len()))
        };
        let mut from = bucket(steps.from);
        let mut live = from.checked_sub(1).map(|before| buckets[before].live).unwrap_or_default();
        for end in steps.times() {
            let of_step = &buckets[from..bucket(end)];
            from = bucket(end);
            let most_live =
                of_step.iter().map(|bucket| bucket.most_live).max().unwrap_or(live.count);
            live = of_step.last().map_or(live, |bucket| bucket.live);
            let allocated: u64 = of_step.iter().map(|bucket| bucket.allocated).sum();
            total.add(&aggregate.estimate(Metric::Live, live));
            total.most_live.push(most_live as f64 * unit);
            total.allocated.push(allocated as f64 * unit);
        }
        total
    }

    /// The totals of blocks.
    fn of_blocks(archive: &Archive, all: &Evolution) -> Total {
        let unit = unit(&archive.aggregate);
        let estimate = archive.blocks.estimator(archive.aggregate.scale());
        let mut total = Total::default();
        for (live, &allocated) in all.live_sampled().zip(&all.allocated) {
            total.add(&estimate(live));
            total.most_live.push(live.count as f64 * unit);
            total.allocated.push(allocated as f64 * unit);
        }
        total
    }

    fn add(&mut self, live: &Estimate) {
        self.live.push(live.bytes);
        self.low.push(live.low);
        self.high.push(live.high);
    }
}
