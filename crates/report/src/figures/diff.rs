//! The figures of `heaptap diff`.

use crate::diff::{Change, SingleSample, changes, distance, is_total_certain};
use crate::estimate::{Estimate, Sampled};
use crate::own_code::SiteFrame;
use crate::rows::Site;
use serde::Serialize;

use crate::figures::size::Size;
use crate::figures::trace::{TableView, TraceFigures, by_name, row_title};

/// What is shown. The field names are those of the JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Diff"))]
pub struct Comparison {
    pub before: String,
    pub after: String,
    pub metric: String,
    #[cfg_attr(feature = "typescript", ts(type = "By"))]
    pub by: &'static str,
    /// Which frame of a stack a row is about.
    pub sites: SiteFrame,
    pub total: ChangeRow,
    /// Differences that are more than chance.
    pub changes: Vec<ChangeRow>,
    /// How many more there are.
    pub not_shown: usize,
    /// Sites whose difference may be chance.
    pub within_chance: usize,
}

#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Change"))]
pub struct ChangeRow {
    #[serde(flatten)]
    pub site: Site,
    pub before: Size,
    pub after: Size,
    pub difference_bytes: f64,
    /// In standard errors.
    pub distance: f64,
    #[cfg_attr(
        feature = "typescript",
        ts(type = "\"unchanged\" | \"new\" | \"gone\" | \"grew\" | \"shrank\"")
    )]
    pub kind: &'static str,
}

impl Comparison {
    /// What the rows are, in a heading: `function`, or `function (own code)`.
    pub fn row_title(&self) -> String {
        row_title(self.by, self.sites)
    }
}

/// The comparison of two traces, with up to `top` rows; 0 for all.
pub fn comparison(
    before: &TraceFigures<'_>,
    after: &TraceFigures<'_>,
    view: &TableView,
    top: usize,
) -> Comparison {
    let metric = view.metric;
    let table = |trace: &TraceFigures<'_>| -> Vec<(Site, Estimate)> {
        let rows = trace.aggregate.rows(trace.locations, view.grouping(), metric);
        rows.into_iter()
            .map(|row| (row.site, trace.aggregate.size(metric, &row.counts)))
            .filter(|(_, estimate)| estimate.bytes > 0.0)
            .collect()
    };
    let error = |trace: &TraceFigures<'_>| trace.aggregate.single_error(metric);
    let single = SingleSample { before: error(before), after: error(after) };
    let total =
        |trace: &TraceFigures<'_>| trace.aggregate.size(metric, &trace.aggregate.total_counts());
    let totals = (total(before), total(after));
    let all = changes(table(before), table(after), single);
    let sites = all.len();
    let mut certain: Vec<Change> = all.into_iter().filter(|change| change.certain).collect();
    let within_chance = sites - certain.len();
    let shown = if top == 0 { certain.len() } else { top.min(certain.len()) };
    let not_shown = certain.split_off(shown).len();
    let apart = distance(&totals.0, &totals.1, single);
    // A site that one of the traces has no sample of.
    let none = |trace: &TraceFigures<'_>| trace.aggregate.estimate(metric, Sampled::default());
    let none = (none(before), none(after));
    let seen = |size: &Estimate, none: Estimate| if size.bytes > 0.0 { *size } else { none };
    let row = |change: &Change| {
        let (before, after) = (seen(&change.before, none.0), seen(&change.after, none.1));
        change_row(change.site.clone(), &before, &after, change.distance, true)
    };
    Comparison {
        before: before.name.to_owned(),
        after: after.name.to_owned(),
        metric: view.title(after.aggregate.peak_time()),
        by: by_name(view.by),
        sites: view.site,
        total: change_row(
            Site::named("total"),
            &totals.0,
            &totals.1,
            apart,
            is_total_certain(apart),
        ),
        changes: certain.iter().map(row).collect(),
        not_shown,
        within_chance,
    }
}

fn change_row(
    site: Site,
    before: &Estimate,
    after: &Estimate,
    distance: f64,
    certain: bool,
) -> ChangeRow {
    let kind = match (before.bytes > 0.0, after.bytes > 0.0) {
        _ if !certain => "unchanged",
        (false, true) => "new",
        (true, false) => "gone",
        _ if after.bytes > before.bytes => "grew",
        _ => "shrank",
    };
    ChangeRow {
        site,
        before: (*before).into(),
        after: (*after).into(),
        difference_bytes: after.bytes - before.bytes,
        distance,
        kind,
    }
}
