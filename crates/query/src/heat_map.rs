//! What was allocated over time, by row: a cell for each row and step of time.
//!
//! The cells come from the table of blocks. Of a whole trace, the sum of a row is that of a
//! table; if the table of blocks is thinned, it is spread over the cells as the blocks of
//! the row are, so that they still add up to it. Of a part of a trace, a row has the sum of
//! its cells, and those that have most there come first.

use heaptap_report::figures::Size;
use heaptap_report::rows::Site;
use heaptap_report::{Aggregate, Archive, Estimate, Metric, Sampled, SelectedRows};
use serde::Serialize;

use crate::answer::{Stated, json};
use crate::block_rows::Rows;
use crate::evolution::{Range, Steps};
use crate::request::TraceRequest;
use crate::timeline::row_sums;
use crate::traces::Traces;

/// The most rows of a map, and the rows if none are asked for.
const MOST_ROWS: usize = 128;
const ROWS: usize = 40;

/// The most cells.
const MOST_CELLS: usize = 1 << 16;

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "HeatMap"))]
pub(crate) struct HeatMapAnswer {
    /// When the first step begins.
    from_us: u64,
    width_us: u64,
    /// The end of each step.
    times: Vec<u64>,
    /// Those that have most come first.
    rows: Vec<HeatRow>,
    other_rows: usize,
    others: HeatCells,
    /// What a cell without a sample has less of.
    unseen_bytes: f64,
    /// One in so many small blocks is in the table that the cells come from.
    blocks_one_in: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct HeatRow {
    site: Site,
    #[serde(flatten)]
    cells: HeatCells,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct HeatCells {
    size: Size,
    /// The bytes of each step, and their standard errors.
    bytes: Vec<f64>,
    errors: Vec<f64>,
}

pub(crate) fn heat_map(
    traces: &mut Traces,
    of: &TraceRequest,
    top: usize,
    (points, range): (usize, Option<Range>),
) -> Result<String, String> {
    if !matches!(of.metric, Metric::Allocated | Metric::Promoted) {
        return Err("a heat map has what was allocated or promoted".to_owned());
    }
    let found = traces.find(of)?;
    let selected = traces.selected_rows(of)?;
    let rows = traces.rows(of.trace, of.grouping())?;
    let figures = traces.figures(of, &found)?;
    let archive = traces.archive(of.trace)?;
    let top = if top == 0 { ROWS } else { top.min(MOST_ROWS) };
    let steps = Steps::of(figures.aggregate, points.min(MOST_CELLS / (top + 1)), range);
    let counted =
        Counted { archive, selected: &selected, rows: &rows, steps: &steps, metric: of.metric };

    let mut sums = match range {
        None => row_sums(&figures, of, &rows, None),
        Some(_) => counted.row_sums(),
    };
    sums.sort_by(|(one, first), (other, second)| {
        second.count.cmp(&first.count).then_with(|| one.cmp(other))
    });
    let rest = sums.split_off(top.min(sums.len()));
    let left = rest.iter().map(|&(_, samples)| samples).sum();
    let sites = sums.iter().map(|(site, _)| site);
    let mut cells = counted.cells(sites);
    let scale = CellScale::new(archive, figures.aggregate, of.metric);
    let size = |samples| match range {
        None => figures.aggregate.estimate(of.metric, samples),
        Some(_) => scale.of_cell(samples),
    };
    let others = scale.cells(&cells.pop().unwrap_or_default(), left, size(left));
    let rows = sums
        .into_iter()
        .zip(cells)
        .map(|((site, sum), cells)| HeatRow { site, cells: scale.cells(&cells, sum, size(sum)) });
    let answer = HeatMapAnswer {
        from_us: steps.from,
        width_us: steps.width,
        times: steps.times(),
        rows: rows.collect(),
        other_rows: rest.len(),
        others,
        unseen_bytes: scale.of_cell(Sampled::default()).high,
        blocks_one_in: 1 << archive.blocks.thinning(),
    };
    json(&Stated { answer, exact: found.exact })
}

/// The blocks that count.
struct Counted<'a> {
    archive: &'a Archive,
    selected: &'a SelectedRows,
    rows: &'a Rows,
    steps: &'a Steps,
    metric: Metric,
}

impl Counted<'_> {
    /// Calls `each` with the row, the step and the samples of each block.
    fn each(&self, mut each: impl FnMut(usize, usize, Sampled)) {
        for block in self.archive.blocks.selected(&self.archive.aggregate, self.selected) {
            if self.metric == Metric::Promoted && block.promotion.is_none() {
                continue;
            }
            if let Some(step) = self.steps.within(block.birth) {
                each(self.rows.of_block(&block) as usize, step, block.samples);
            }
        }
    }

    /// The samples of each row in the steps; no row without samples.
    fn row_sums(&self) -> Vec<(Site, Sampled)> {
        let mut sums = vec![Sampled::default(); self.rows.sites.len()];
        self.each(|row, _, samples| sums[row] = sums[row].plus(samples));
        let sums = self.rows.sites.iter().zip(sums).filter(|&(_, samples)| samples.count > 0);
        sums.map(|(site, samples)| (site.clone(), samples)).collect()
    }

    /// The samples in each step of these rows, and last of all others.
    fn cells<'a>(&self, sites: impl Iterator<Item = &'a Site>) -> Vec<Vec<Sampled>> {
        let numbers: Vec<Option<u32>> = sites.map(|site| self.rows.of_site(site)).collect();
        let mut lines = vec![numbers.len(); self.rows.sites.len()];
        for (line, number) in numbers.iter().enumerate() {
            if let Some(number) = number {
                lines[*number as usize] = line;
            }
        }
        let mut cells = vec![vec![Sampled::default(); self.steps.count]; numbers.len() + 1];
        self.each(|row, step, samples| {
            let cell = &mut cells[lines[row]][step];
            *cell = cell.plus(samples);
        });
        cells
    }
}

/// From samples to bytes.
struct CellScale<'a> {
    aggregate: &'a Aggregate,
    metric: Metric,
    /// If the table of blocks is thinned, what its samples stand for.
    thinned: Option<Box<dyn Fn(Sampled) -> Estimate + 'a>>,
}

impl<'a> CellScale<'a> {
    fn new(archive: &'a Archive, aggregate: &'a Aggregate, metric: Metric) -> Self {
        let is_thinned = archive.blocks.thinning() > 0;
        let thinned = is_thinned.then(|| {
            let estimator = archive.blocks.estimator(aggregate.scale());
            Box::new(estimator) as Box<dyn Fn(Sampled) -> Estimate>
        });
        CellScale { aggregate, metric, thinned }
    }

    fn of_cell(&self, samples: Sampled) -> Estimate {
        match &self.thinned {
            Some(thinned) => thinned(samples),
            None => self.aggregate.estimate(self.metric, samples),
        }
    }

    /// The cells of a row that has `sum` samples.
    fn cells(&self, cells: &[Sampled], sum: Sampled, size: Estimate) -> HeatCells {
        let of_cells = cells.iter().copied().sum::<Sampled>().count;
        // Without thinning, both are the same, and nothing is rounded.
        let is_same = of_cells == sum.count || of_cells == 0;
        let factor = if is_same { 1.0 } else { sum.count as f64 / of_cells as f64 };
        let sizes: Vec<Estimate> = cells.iter().map(|&samples| self.of_cell(samples)).collect();
        HeatCells {
            size: size.into(),
            bytes: sizes.iter().map(|size| size.bytes * factor).collect(),
            errors: sizes.iter().map(|size| size.error * factor).collect(),
        }
    }
}
