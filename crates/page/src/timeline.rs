//! Live and allocated bytes over time, by row.

use std::collections::HashMap;

use heaptap_figures::{CallSite, Size, Sum};
use heaptap_report::rows::{By, Site, Sites};
use heaptap_report::{
    Aggregate, Archive, Follow, Frame, Metric, SelectedBlock, Selection, is_label,
};
use heaptap_trace::Source;
use serde::Serialize;

use crate::answer::{Stated, json, sum};
use crate::request::{TraceRequest, Within};
use crate::traces::Traces;

/// The most rows that have a line of their own.
const MOST_SERIES: usize = 64;

#[derive(Serialize)]
struct TimelineAnswer {
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
struct Series {
    site: CallSite,
    /// Of the metric.
    sum: Sum,
    live: Vec<f64>,
    allocated: Vec<f64>,
}

#[derive(Serialize)]
struct Others {
    rows: usize,
    sum: Sum,
    live: Vec<f64>,
    allocated: Vec<f64>,
}

#[derive(Serialize)]
struct Total {
    live: Vec<f64>,
    most_live: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
    allocated: Vec<f64>,
}

/// Steps of time, each of several buckets of the aggregate's time line.
struct Steps {
    width: u64,
    count: usize,
    /// Buckets in a step.
    joined: usize,
}

/// Samples over time.
#[derive(Clone)]
pub(crate) struct Evolution {
    /// Changes of what is live; their sums once it is complete.
    live: Vec<i64>,
    allocated: Vec<u64>,
    all: u64,
}

pub(crate) fn timeline(
    traces: &mut Traces,
    of: &TraceRequest,
    top: usize,
    points: usize,
    within: Option<&Within>,
) -> Result<String, String> {
    let found = traces.find(of, Follow::Nothing)?;
    let exact = traces.is_exact(of, &found);
    let figures = traces.figures(of, &found)?;
    let archive = traces.archive(of.trace)?;
    let aggregate = figures.aggregate;
    let steps = Steps::of(aggregate, points);
    let mut rows = Rows::new(archive, of.by);
    let inside = within.map(|within| Inside::new(archive, within));
    let mut series: Vec<Evolution> = Vec::new();
    let selection = of.filter.selection()?;
    let metric = of.metric;
    for block in archive.blocks.selected(&archive.aggregate, &archive.locations, &selection) {
        if inside.as_ref().is_some_and(|inside| !inside.contains(block.path)) {
            continue;
        }
        let number = rows.number(&block);
        if number == series.len() {
            series.push(steps.evolution());
        }
        steps.add(&mut series[number], &block, weight(&block, metric, of.at, aggregate));
    }
    let mut series: Vec<(Site, Evolution)> = rows.sites.into_iter().zip(series).collect();
    series.sort_by(|(one, first), (other, second)| {
        second.all.cmp(&first.all).then_with(|| one.cmp(other))
    });
    for (_, evolution) in &mut series {
        evolution.complete();
    }
    let rest = series.split_off(top.clamp(1, MOST_SERIES).min(series.len()));
    let unit = aggregate.scale().word_bytes / aggregate.scale().rate;
    let lines = |evolution: &Evolution| -> (Vec<f64>, Vec<f64>) {
        let live = evolution.live.iter().map(|&samples| samples as f64 * unit).collect();
        let allocated = evolution.allocated.iter().map(|&samples| samples as f64 * unit).collect();
        (live, allocated)
    };
    let mut others = steps.evolution();
    for (_, evolution) in &rest {
        others.join(evolution);
    }
    let total = match within {
        None => steps.total(aggregate),
        Some(_) => {
            let mut all = others.clone();
            series.iter().for_each(|(_, evolution)| all.join(evolution));
            steps.total_of(aggregate, &all)
        }
    };
    let (live, allocated) = lines(&others);
    let named = |(site, evolution): &(Site, Evolution)| {
        let (live, allocated) = lines(evolution);
        Series {
            site: CallSite::from(site),
            sum: sum(aggregate, metric, evolution.all),
            live,
            allocated,
        }
    };
    let answer = TimelineAnswer {
        width_us: steps.width,
        points: steps.count,
        times: (1..=steps.count as u64).map(|step| step * steps.width).collect(),
        series: series.iter().map(named).collect(),
        others: Others {
            rows: rest.len(),
            sum: sum(aggregate, metric, others.all),
            live,
            allocated,
        },
        total,
        peak_us: aggregate.peak_time(),
        peak: aggregate.peak().into(),
    };
    json(&Stated { answer, exact })
}

/// What a block adds to the rank of its row.
fn weight(block: &SelectedBlock, metric: Metric, at: Option<f64>, aggregate: &Aggregate) -> u64 {
    let alive = |time: u64| block.birth <= time && block.death.is_none_or(|death| death > time);
    let counts = match metric {
        Metric::Allocated => true,
        Metric::Promoted => block.promoted,
        Metric::Peak => alive(aggregate.peak_time()),
        Metric::At => alive(at.unwrap_or(0.0) as u64),
        Metric::Live => block.death.is_none(),
        Metric::Survived => {
            block.death.is_none() && (block.promoted || block.source != Source::Minor)
        }
    };
    if counts { block.samples } else { 0 }
}

impl Steps {
    /// About `points` steps, which end where buckets end.
    fn of(aggregate: &Aggregate, points: usize) -> Steps {
        let timeline = aggregate.timeline();
        // A selection may have nothing near the end of the trace.
        let buckets = (aggregate.duration() / timeline.width()) as usize + 1;
        let points = if points == 0 { 200 } else { points.min(1024) };
        let joined = buckets.div_ceil(points).max(1);
        let width = timeline.width().saturating_mul(joined as u64);
        Steps { width, count: buckets.div_ceil(joined), joined }
    }

    fn evolution(&self) -> Evolution {
        Evolution { live: vec![0; self.count], allocated: vec![0; self.count], all: 0 }
    }

    fn at(&self, time: u64) -> usize {
        ((time / self.width) as usize).min(self.count - 1)
    }

    fn add(&self, evolution: &mut Evolution, block: &SelectedBlock, weight: u64) {
        let samples = block.samples;
        let born = self.at(block.birth);
        evolution.allocated[born] = evolution.allocated[born].saturating_add(samples);
        evolution.live[born] = evolution.live[born].wrapping_add(samples as i64);
        if let Some(death) = block.death {
            let died = self.at(death);
            evolution.live[died] = evolution.live[died].wrapping_sub(samples as i64);
        }
        evolution.all = evolution.all.saturating_add(weight);
    }

    /// The totals of the aggregate itself.
    fn total(&self, aggregate: &Aggregate) -> Total {
        let buckets = aggregate.timeline().buckets();
        let mut total = Total::default();
        let mut live = 0;
        for step in 0..self.count {
            let from = (step * self.joined).min(buckets.len());
            let to = ((step + 1) * self.joined).min(buckets.len());
            let of_step = &buckets[from..to];
            let most_live = of_step.iter().map(|bucket| bucket.most_live).max().unwrap_or(live);
            live = of_step.last().map_or(live, |bucket| bucket.live);
            let allocated = of_step.iter().map(|bucket| bucket.allocated).sum();
            total.add(aggregate, live, most_live, allocated);
        }
        total
    }

    fn total_of(&self, aggregate: &Aggregate, all: &Evolution) -> Total {
        let mut total = Total::default();
        for (&live, &allocated) in all.live.iter().zip(&all.allocated) {
            let live = live.max(0) as u64;
            total.add(aggregate, live, live, allocated);
        }
        total
    }
}

impl Evolution {
    /// Turns changes into sums.
    fn complete(&mut self) {
        let mut sum = 0_i64;
        for live in &mut self.live {
            sum = sum.wrapping_add(*live);
            *live = sum;
        }
    }

    fn join(&mut self, other: &Evolution) {
        self.live
            .iter_mut()
            .zip(&other.live)
            .for_each(|(sum, part)| *sum = sum.wrapping_add(*part));
        let pairs = self.allocated.iter_mut().zip(&other.allocated);
        pairs.for_each(|(sum, part)| *sum = sum.saturating_add(*part));
        self.all = self.all.saturating_add(other.all);
    }
}

impl Default for Total {
    fn default() -> Self {
        let none = Vec::new;
        Total { live: none(), most_live: none(), low: none(), high: none(), allocated: none() }
    }
}

impl Total {
    fn add(&mut self, aggregate: &Aggregate, live: u64, most_live: u64, allocated: u64) {
        let unit = aggregate.scale().word_bytes / aggregate.scale().rate;
        let size = aggregate.estimate(Metric::Live, live);
        self.live.push(size.bytes);
        self.low.push(size.low);
        self.high.push(size.high);
        self.most_live.push(most_live as f64 * unit);
        self.allocated.push(allocated as f64 * unit);
    }
}

/// Numbers the rows of blocks.
pub(crate) struct Rows<'a> {
    archive: &'a Archive,
    names: Sites<'a>,
    by: By,
    /// The sites by number.
    sites: Vec<Site>,
    numbers: HashMap<Site, usize>,
    /// The numbers of frames that were met, and of paths.
    of_frames: HashMap<Frame, usize>,
    of_paths: Vec<Option<usize>>,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(archive: &'a Archive, by: By) -> Self {
        Rows {
            archive,
            names: Sites::new(&archive.locations, by),
            by,
            sites: Vec::new(),
            numbers: HashMap::new(),
            of_frames: HashMap::new(),
            of_paths: vec![None; archive.aggregate.path_count()],
        }
    }

    /// The number of a block's row.
    pub(crate) fn number(&mut self, block: &SelectedBlock) -> usize {
        match self.by {
            By::Domain => return self.number_of(Frame::Domain(block.domain)),
            By::Source => return self.number_of(Frame::Source(block.source)),
            _ => {}
        }
        if let Some(number) = self.of_paths[block.path as usize] {
            return number;
        }
        let path = self.archive.aggregate.path(block.path);
        let is_label = |frame: &Frame| match frame {
            Frame::Code(code) => {
                self.archive.locations.resolve(*code).any(|location| is_label(&location))
            }
            _ => false,
        };
        let frame = match self.by {
            By::Label => path.frames().last().filter(is_label).unwrap_or(Frame::Nowhere),
            _ => path.innermost(),
        };
        let number = self.number_of(frame);
        self.of_paths[block.path as usize] = Some(number);
        number
    }

    fn number_of(&mut self, frame: Frame) -> usize {
        if let Some(&number) = self.of_frames.get(&frame) {
            return number;
        }
        let site = self.names.of(frame);
        let sites = &mut self.sites;
        let number = *self.numbers.entry(site).or_insert_with_key(|site| {
            sites.push(site.clone());
            sites.len() - 1
        });
        self.of_frames.insert(frame, number);
        number
    }
}

/// The paths whose innermost site is a given one.
pub(crate) struct Inside(Vec<bool>);

impl Inside {
    fn new(archive: &Archive, within: &Within) -> Inside {
        Inside::of(archive, within.by, &within.site.site())
    }

    pub(crate) fn of(archive: &Archive, by: By, site: &Site) -> Inside {
        let sites = Sites::new(&archive.locations, by);
        let mut of_frames: HashMap<Frame, bool> = HashMap::new();
        let is_inside =
            |frame: Frame| *of_frames.entry(frame).or_insert_with(|| sites.of(frame) == *site);
        Inside(archive.aggregate.paths().map(|(path, _)| path.innermost()).map(is_inside).collect())
    }

    pub(crate) fn contains(&self, path: u32) -> bool {
        self.0.get(path as usize).copied().unwrap_or(false)
    }
}

/// The live samples of some paths: the end of each step, and the samples then.
pub(crate) fn evolution(
    archive: &Archive,
    aggregate: &Aggregate,
    selection: &Selection,
    inside: &Inside,
    points: usize,
) -> (Vec<u64>, Vec<u64>) {
    let steps = Steps::of(aggregate, points);
    let mut evolution = steps.evolution();
    for block in archive.blocks.selected(&archive.aggregate, &archive.locations, selection) {
        if inside.contains(block.path) {
            steps.add(&mut evolution, &block, 0);
        }
    }
    evolution.complete();
    let times = (1..=steps.count as u64).map(|step| step * steps.width).collect();
    (times, evolution.live.iter().map(|&samples| samples.max(0) as u64).collect())
}
