//! The totals of sites with all that they call, and the call tree: of what they are counted, and why
//! there are no totals where that is so.

use std::collections::HashMap;

use heaptap_report::figures::{Sum, TraceFigures};
use heaptap_report::rows::Site;
use heaptap_report::{Aggregate, Archive, Estimate, Metric, Sampled, SiteTotal};

use crate::answer::unit;
use crate::request::TraceRequest;
use crate::traces::{Found, Traces};

/// Why a table has no totals.
const NO_TOTALS: &str = "this trace has so many call paths that the callers of the rare ones are not here, \
                         so totals with all that is called would be too small; heaptap report --filter NAME \
                         gives that of one function";

/// The aggregate of which totals are counted.
pub(crate) enum Counted {
    /// That of the request.
    Same,
    /// One from the table of blocks, which has the callers that the reading lost.
    Table(Found),
}

impl Counted {
    /// Of which aggregate totals of a request can be counted, or why of none. `found`: that of the
    /// request.
    pub(crate) fn of(
        traces: &mut Traces,
        of: &TraceRequest,
        found: &Found,
    ) -> Result<Result<Counted, &'static str>, String> {
        let whole = &traces.archive(of.trace)?.aggregate;
        if whole.missing_from_paths() == 0 {
            return Ok(Ok(Counted::Same));
        }
        if whole.table_lacks_callers() {
            return Ok(Err(NO_TOTALS));
        }
        if !found.is_reading() {
            return Ok(Ok(Counted::Same));
        }
        Ok(Ok(Counted::Table(traces.find_in_table(of)?)))
    }

    /// Whether that aggregate is what a reading of the trace would give, if that of the request is.
    pub(crate) fn is_exact(&self) -> bool {
        match self {
            Counted::Same => true,
            Counted::Table(found) => found.exact,
        }
    }

    /// The aggregate, unless it is that of the request.
    pub(crate) fn table<'a>(&'a self, archive: &'a Archive) -> Option<&'a Aggregate> {
        match self {
            Counted::Same => None,
            Counted::Table(found) => Some(found.aggregate(archive)),
        }
    }
}

/// An aggregate that has the callers of all blocks, as far as any has, and of which the call tree is
/// shown.
///
/// If that is the table of blocks and the table is thinned, all of it together is a little more or
/// less than what the reading counted. So its figures are multiplied, for the root of the tree to be
/// the total that stands elsewhere.
pub(crate) struct Called<'a> {
    pub(crate) aggregate: &'a Aggregate,
    factor: f64,
    metric: Metric,
    /// Of all blocks, from the reading.
    all: Estimate,
}

impl<'a> Called<'a> {
    /// `reading`: what the request found.
    pub(crate) fn new(
        reading: &'a Aggregate,
        metric: Metric,
        counted: Option<&'a Counted>,
        archive: &'a Archive,
    ) -> Self {
        let total = reading.total(metric);
        let all = reading.estimate(metric, total);
        let of_table = counted.and_then(|counted| counted.table(archive));
        match of_table.map(|table| (table, table.total(metric))) {
            Some((aggregate, found)) if found.count > 0 => {
                let factor = total.count as f64 / found.count as f64;
                Called { aggregate, factor, metric, all }
            }
            _ => Called { aggregate: reading, factor: 1.0, metric, all },
        }
    }

    /// Bytes for each sample.
    pub(crate) fn unit(&self) -> f64 {
        unit(self.aggregate) * self.factor
    }

    /// The standard error of one sample, of a count of one: [`Aggregate::error_of_unit`].
    pub(crate) fn spread(&self) -> f64 {
        self.aggregate.error_of_unit(self.metric) * self.factor
    }

    /// The error that an estimate from no sample is taken to have.
    pub(crate) fn single_error(&self) -> f64 {
        self.aggregate.single_error(self.metric) * self.factor
    }

    /// Counts as a sum.
    pub(crate) fn sum(&self, sampled: Sampled, size: Estimate) -> Sum {
        Sum::new(&self.aggregate.scale(), sampled, size)
    }

    pub(crate) fn estimate(&self, samples: Sampled) -> Estimate {
        times(self.aggregate.estimate(self.metric, samples), self.factor)
    }

    /// What all blocks have.
    pub(crate) fn all(&self) -> Estimate {
        self.all
    }
}

/// Counts totals.
pub(crate) struct Counting<'a> {
    metric: Metric,
    aggregate: &'a Aggregate,
    /// The aggregate of the table of blocks, if callers are counted there, with what each row has
    /// itself in it.
    table: Option<(&'a Aggregate, HashMap<Site, Sampled>)>,
}

impl<'a> Counting<'a> {
    /// `row`: the row of a site, if it has one.
    pub(crate) fn new(
        figures: &TraceFigures<'a>,
        of: &TraceRequest,
        table: Option<&'a Aggregate>,
        row: impl Fn(Site) -> Option<Site>,
    ) -> Self {
        let metric = of.metric;
        let own = |table: &'a Aggregate| {
            let mut own: HashMap<Site, Sampled> = HashMap::new();
            for found in table.rows(figures.locations, of.grouping(), metric) {
                if let Some(site) = row(found.site) {
                    let sum = own.entry(site).or_default();
                    *sum = sum.plus(metric.of(&found.counts));
                }
            }
            (table, own)
        };
        Counting { metric, aggregate: figures.aggregate, table: table.map(own) }
    }

    /// The total of a row that occurs nowhere on the stacks of the table of blocks: what it has itself,
    /// of which no row of the table is.
    pub(crate) fn without_calls(&self, own: Sampled) -> Option<Sum> {
        let is_thinned = self.table.as_ref().is_some_and(|(table, _)| table.thinning() > 0);
        (is_thinned && own.count > 0)
            .then(|| self.sum(own, SiteTotal::default(), |_| Sampled::default()))
    }

    /// Of which the [`SiteTotal`]s are.
    pub(crate) fn counted(&self) -> &'a Aggregate {
        self.table.as_ref().map_or(self.aggregate, |(table, _)| table)
    }

    /// The total of a row, of which `own` samples are its own.
    pub(crate) fn of_row(&self, row: &Site, own: Sampled, total: SiteTotal) -> Sum {
        self.sum(own, total, |owns| owns.get(row).copied().unwrap_or_default())
    }

    /// The same of all rows together, of which `total` is.
    pub(crate) fn of_all(&self, own: Sampled, total: SiteTotal) -> Sum {
        self.sum(own, total, |owns| owns.values().copied().sum())
    }

    /// What a row calls is all that the table is needed for: a total is never less than what the row has
    /// itself.
    fn sum(
        &self,
        own: Sampled,
        total: SiteTotal,
        own_in_table: impl Fn(&HashMap<Site, Sampled>) -> Sampled,
    ) -> Sum {
        let scale = self.aggregate.scale();
        let whole = |aggregate: &Aggregate| {
            Sum::new(&scale, total.samples, aggregate.size_of_total(self.metric, total))
        };
        let (table, owns) = match &self.table {
            None => return whole(self.aggregate),
            // It has every block.
            Some((table, _)) if table.thinning() == 0 => return whole(table),
            Some((table, owns)) => (table, owns),
        };
        let calls = total.samples.without(own_in_table(owns));
        let sizes = [
            (own.count > 0).then(|| self.aggregate.size_of_samples(self.metric, own)),
            (calls.count > 0 || own.count == 0).then(|| table.size_of_samples(self.metric, calls)),
        ];
        let size = sizes.into_iter().flatten().reduce(added).unwrap_or_default();
        Sum::new(&scale, own.plus(calls), size)
    }
}

/// An estimate of which all figures are multiplied.
pub(crate) fn times(of: Estimate, by: f64) -> Estimate {
    let Estimate { bytes, error, low, high } = of;
    Estimate { bytes: bytes * by, error: error * by, low: low * by, high: high * by }
}

/// The sum of two estimates that do not depend on each other.
fn added(one: Estimate, other: Estimate) -> Estimate {
    let bytes = one.bytes + other.bytes;
    let below = (one.bytes - one.low).hypot(other.bytes - other.low);
    let above = (one.high - one.bytes).hypot(other.high - other.bytes);
    let error = one.error.hypot(other.error);
    Estimate { bytes, error, low: bytes - below, high: bytes + above }
}
