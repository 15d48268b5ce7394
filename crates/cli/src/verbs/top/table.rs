//! The rows of the table: sizes, and their differences from a mark.

use std::collections::HashMap;

use heaptap_report::figures::{Figures, ReportRow, Size};
use heaptap_report::rows::Site;

/// What the rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The largest first.
    Size,
    /// The largest difference from the mark first, whether it grew or shrank.
    Change,
    Name,
}

impl Order {
    pub(super) fn name(self) -> &'static str {
        match self {
            Order::Size => "size",
            Order::Change => "change",
            Order::Name => "name",
        }
    }
}

/// A row.
pub(super) struct TableRow {
    pub(super) site: Site,
    pub(super) size: Size,
    pub(super) share: f64,
    /// The difference from the mark, if there is one.
    pub(super) change: Option<Change>,
}

/// A difference of sizes. Its error is at most this: what is in both sizes has the same.
#[derive(Clone, Copy)]
pub(super) struct Change {
    pub(super) bytes: f64,
    pub(super) error: f64,
}

/// The sizes at the mark.
pub(super) struct Mark {
    /// Microseconds since the start.
    pub(super) moment: u64,
    pub(super) sizes: HashMap<Site, Size>,
}

impl Mark {
    pub(super) fn new(moment: u64, figures: &Figures) -> Mark {
        let size = |row: &ReportRow| (row.site.clone(), row.sum.size);
        Mark { moment, sizes: figures.table.rows.iter().map(size).collect() }
    }
}

/// The rows of a table, in this order.
pub(super) fn rows(figures: &Figures, mark: Option<&Mark>, order: Order) -> Vec<TableRow> {
    let mut gone = mark.map(|mark| mark.sizes.clone()).unwrap_or_default();
    let error = |size: &Size| size.error.unwrap_or(0.0);
    let change = |now: &Size, then: Option<Size>| Change {
        bytes: now.bytes - then.map_or(0.0, |then| then.bytes),
        error: error(now).hypot(then.as_ref().map_or(0.0, error)),
    };
    let mut rows: Vec<TableRow> = Vec::new();
    for row in &figures.table.rows {
        let (site, size) = (row.site.clone(), row.sum.size);
        let change = mark.map(|_| change(&size, gone.remove(&site)));
        rows.push(TableRow { site, size, share: row.share, change });
    }
    for (site, then) in gone {
        let size = figures.no_sample();
        rows.push(TableRow { site, size, share: 0.0, change: Some(change(&size, Some(then))) });
    }
    let distance = |row: &TableRow| row.change.map_or(0.0, |change| change.bytes.abs());
    rows.sort_by(|one, other| {
        let by_size = other.size.bytes.total_cmp(&one.size.bytes);
        let first = match order {
            Order::Size => by_size,
            Order::Change => distance(other).total_cmp(&distance(one)).then(by_size),
            Order::Name => std::cmp::Ordering::Equal,
        };
        first.then_with(|| one.site.cmp(&other.site))
    });
    rows
}
