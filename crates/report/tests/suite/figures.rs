//! All figures of an aggregate, as text that tests compare.

use std::fmt::Write as _;

use heaptap_report::rows::{By, Grouping};
use heaptap_report::{
    ALL_SITE_FRAMES, Aggregate, Counts, Depth, Metric, Options, OverTime, Stack, StackShape,
};
use heaptap_trace::LocationTable;

use crate::made::METRICS;

/// Every figure that a report could show, as text. Sums of fractions are rounded:
/// the order of their terms is that of a hash table.
pub(crate) fn figures(aggregate: &Aggregate, table: &LocationTable, options: &Options) -> String {
    let (peak, promotion) = (aggregate.peak(), aggregate.promotion_rate());
    let mut text = format!("{} events, {} µs, ", aggregate.events(), aggregate.duration());
    let samples = (aggregate.samples(), aggregate.peak_samples(), aggregate.peak_time());
    let limits = (aggregate.nodes(), aggregate.thinning(), aggregate.missing_from_paths());
    let external = (aggregate.peak_external(), aggregate.live_external());
    writeln!(text, "{samples:?} {limits:?} {peak:?} {external:?} {promotion:?}").unwrap();
    writeln!(text, "{:?}\n{:?}", aggregate.timeline(), aggregate.lifetimes()).unwrap();
    for metric in METRICS {
        let total = aggregate.total(metric);
        writeln!(text, "{metric:?} {:?}", aggregate.estimate(metric, total)).unwrap();
    }
    for by in [By::Function, By::Location, By::File, By::Module, By::Label, By::Domain, By::Source]
    {
        for site in ALL_SITE_FRAMES {
            for row in aggregate.rows(table, Grouping { by, site }, Metric::Allocated) {
                writeln!(text, "{:?} {}", row.site, counts(&row.counts)).unwrap();
            }
        }
    }
    if options.depth == Depth::Whole {
        let stacks = aggregate.stacks(table, By::Location, StackShape::default());
        let line = |stack: Stack<'_>| {
            let sites = stack.sites().into_iter().map(|site| &stacks.sites()[site as usize]);
            let sites: Vec<_> = sites.collect();
            format!("{sites:?} {} {:?}\n", counts(&stack.counts), stack.flows())
        };
        // Their order is that of the tree, which an archive has in another one.
        let mut lines: Vec<String> = stacks.iter().map(line).collect();
        lines.sort();
        text.extend(lines);
        writeln!(text, "{:?}", aggregate.hot(table, By::Function, Metric::Live, 0.1, true))
            .unwrap();
    }
    // A search for leaks needs whole stacks.
    if options.over_time == OverTime::LiveSize && options.depth == Depth::Whole {
        for site in ALL_SITE_FRAMES {
            writeln!(text, "{:?}", aggregate.leaks(table, site, 3)).unwrap();
        }
    }
    text
}

fn counts(counts: &Counts) -> String {
    let &Counts { allocated, promoted, live, survived, carried, peak, at, died, .. } = counts;
    let &Counts { lifetime, blocks, .. } = counts;
    format!(
        "{allocated} {promoted} {live} {survived} {carried} {peak} {at} {died} {lifetime:.6e} \
         {blocks:.6e}"
    )
}
