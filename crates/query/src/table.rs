//! The table: what each row allocates itself, what it has with all that it calls, and how many blocks
//! that is; sorted, and only the rows that contain a text.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

use heaptap_report::figures::{Others, Sum, by_name, share};
use heaptap_report::rows::{By, Site};
use heaptap_report::{Aggregate, Archive, Metric, SelectedRows, SiteFrame, StackSites, Tally};
use serde::Serialize;

use crate::answer::{Stated, json};
use crate::block_counts::block_counts;
use crate::block_rows::Rows;
use crate::request::{SortedBy, TableShape, TraceRequest};
use crate::table_rows::{AllRows, TableRow};
use crate::totals::{Counted, Counting};
use crate::traces::Traces;

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "RowTable"))]
pub(crate) struct TableAnswer {
    metric: String,
    #[cfg_attr(test, ts(type = "By"))]
    by: &'static str,
    sites: SiteFrame,
    rows: Vec<TableRow>,
    /// How many rows contain the text, and how many there are.
    matching: usize,
    all: usize,
    /// Those that contain the text and are not shown: what they allocate themselves.
    others: Others,
    /// What all rows that contain the text allocate themselves.
    matched: Sum,
    /// What all rows allocate themselves.
    total: Sum,
    /// Why no row has a total. Rows that are no frames call nothing, and have none either.
    no_totals: Option<&'static str>,
}

pub(crate) fn table(
    traces: &mut Traces,
    of: &TraceRequest,
    shape: &TableShape,
) -> Result<String, String> {
    let all = match traces.table.find(of) {
        Some(kept) => kept,
        None => {
            let made = Rc::new(all_rows(traces, of)?);
            traces.table.add(of.clone(), Rc::clone(&made), 1);
            made
        }
    };
    let found = traces.find(of)?;
    let aggregate = found.aggregate(traces.archive(of.trace)?);
    let sum = |sampled| {
        Sum::new(&aggregate.scale(), sampled, aggregate.size_of_samples(of.metric, sampled))
    };
    let mut rows: Vec<&TableRow> =
        all.rows.iter().filter(|row| contains(&row.site, &shape.text)).collect();
    rows.sort_by(|one, other| {
        let order = ordered(one, other, shape.sort);
        let order = if shape.ascending { order } else { order.reverse() };
        order.then_with(|| one.site.cmp(&other.site))
    });
    let samples = |rows: &[&TableRow]| rows.iter().map(|row| row.sum.sampled).sum();
    let matched = sum(samples(&rows));
    let matching = rows.len();
    let top = if shape.top == 0 { matching } else { shape.top.min(matching) };
    let left = sum(samples(&rows[top..]));
    json(&Stated {
        answer: TableAnswer {
            metric: all.metric.clone(),
            by: by_name(of.by),
            sites: of.sites,
            rows: rows[..top].iter().map(|&row| row.clone()).collect(),
            matching,
            all: all.rows.len(),
            others: Others {
                rows: matching - top,
                share: share(left.sampled.count, all.total.sampled.count),
                sum: left,
            },
            matched,
            total: all.total,
            no_totals: all.no_totals,
        },
        exact: all.exact,
    })
}

fn ordered(one: &TableRow, other: &TableRow, by: SortedBy) -> Ordering {
    let total = |row: &TableRow| row.total.map_or(0, |total| total.sampled.count);
    let blocks = |row: &TableRow| row.blocks.map_or(0.0, |blocks| blocks.count);
    match by {
        SortedBy::Own => one.sum.sampled.count.cmp(&other.sum.sampled.count),
        SortedBy::Total => total(one).cmp(&total(other)),
        SortedBy::Blocks => blocks(one).total_cmp(&blocks(other)),
        SortedBy::Name => one.site.parts().0.cmp(&other.site.parts().0),
        SortedBy::More => one.site.parts().1.cmp(&other.site.parts().1),
    }
}

/// Whether a row contains the text that a person looks for.
fn contains(site: &Site, text: &str) -> bool {
    if text.is_empty() {
        return true;
    }
    let (name, more) = site.parts();
    if text.chars().any(char::is_uppercase) {
        return name.contains(text) || more.contains(text);
    }
    name.to_lowercase().contains(text) || more.to_lowercase().contains(text)
}

fn all_rows(traces: &mut Traces, of: &TraceRequest) -> Result<AllRows, String> {
    let found = traces.find(of)?;
    let frames = matches!(of.by, By::Function | By::Location | By::File | By::Module);
    let counted = match frames {
        true => Some(Counted::of(traces, of, &found)?),
        false => None,
    };
    let no_totals = counted.as_ref().and_then(|counted| counted.as_ref().err().copied());
    let counted = counted.and_then(Result::ok);
    let on_stacks = match counted {
        Some(_) => Some(traces.stack_sites(of.trace, of.by)?),
        None => None,
    };
    let selected = traces.selected_rows(of)?;
    let of_rows = traces.rows(of.trace, of.grouping())?;
    let figures = traces.figures(of, &found)?;
    let archive = traces.archive(of.trace)?;
    let aggregate = figures.aggregate;
    let mut table = Made::new(aggregate, of);
    for row in aggregate.rows(figures.locations, of.grouping(), of.metric) {
        table.add(row.site, &row.counts);
    }
    if let Some((counted, on_stacks)) = counted.as_ref().zip(on_stacks.as_deref()) {
        let counting = Counting::new(&figures, of, counted.table(archive), Some);
        table.add_totals(&counting, on_stacks);
    }
    table.rows.retain(|row| row.sum.sampled.count > 0 || row.total.is_some());
    if of.by != By::Source {
        // A promoted block counts at two sources.
        table.count_blocks(archive, &selected, &of_rows);
    }
    let all = aggregate.total_counts();
    Ok(AllRows {
        rows: table.rows,
        total: sum_of(aggregate, of.metric, &all),
        no_totals,
        metric: of.view().title(aggregate.peak_time()),
        exact: found.exact,
    })
}

fn sum_of(aggregate: &Aggregate, metric: Metric, tally: &Tally) -> Sum {
    Sum::new(&aggregate.scale(), metric.of(tally), aggregate.size(metric, tally))
}

/// Rows that are being made.
struct Made<'a> {
    aggregate: &'a Aggregate,
    of: &'a TraceRequest,
    /// What there is of the metric in all.
    all: u64,
    rows: Vec<TableRow>,
    numbers: HashMap<Site, usize>,
}

impl<'a> Made<'a> {
    fn new(aggregate: &'a Aggregate, of: &'a TraceRequest) -> Self {
        let all = aggregate.total(of.metric).count;
        Made { aggregate, of, all, rows: Vec::new(), numbers: HashMap::new() }
    }

    fn add(&mut self, site: Site, tally: &Tally) -> &mut TableRow {
        let sum = sum_of(self.aggregate, self.of.metric, tally);
        let share = share(sum.sampled.count, self.all);
        self.numbers.insert(site.clone(), self.rows.len());
        self.rows.push(TableRow { site, sum, share, total: None, total_share: 0.0, blocks: None });
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }

    /// Adds totals, and rows that have nothing of their own. If rows are own code, library code has a
    /// row only where it has something of its own, because no own code calls it.
    fn add_totals(&mut self, counting: &Counting<'_>, on_stacks: &StackSites) {
        let (metric, all) = (self.of.metric, self.all);
        let totals = on_stacks.occurrences.totals(counting.counted(), metric);
        for ((site, &own), total) in on_stacks.sites.iter().zip(&on_stacks.own).zip(totals) {
            if total.samples.count == 0 {
                continue;
            }
            let row = match self.numbers.get(site) {
                Some(&number) => &mut self.rows[number],
                None if own || self.of.sites == SiteFrame::Innermost => {
                    self.add(site.clone(), &Tally::default())
                }
                None => continue,
            };
            let sum = counting.of_row(site, row.sum.sampled, total);
            row.total = Some(sum);
            row.total_share = share(sum.sampled.count, all);
        }
        for row in self.rows.iter_mut().filter(|row| row.total.is_none()) {
            row.total = counting.without_calls(row.sum.sampled);
            row.total_share = share(row.total.map_or(0, |sum| sum.sampled.count), all);
        }
    }

    fn count_blocks(&mut self, archive: &Archive, selected: &SelectedRows, of_rows: &Rows) {
        let counts = block_counts(archive, self.aggregate, self.of, selected, of_rows);
        for row in &mut self.rows {
            let number = of_rows.of_site(&row.site);
            let count = number.and_then(|number| counts.get(number as usize));
            row.blocks = count.and_then(|count| count.of_samples(row.sum.sampled));
        }
    }
}
