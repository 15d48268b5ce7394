//! Nothing is lost or counted twice, whatever the program: sums over rows are
//! the totals, and the figures are those of a plain simulation.

use heaptap_report::rows::By;
use heaptap_report::{Depth, Metric, Options};
use proptest::prelude::*;

use crate::made::{Life, METRICS, gathered, programs, traced};

/// Words of the lives for which something holds.
fn words(program: &[Life], holds: impl Fn(&Life) -> bool) -> u64 {
    program.iter().filter(|life| holds(life)).map(|life| life.length + 1).sum()
}

proptest! {
    #[test]
    fn rows_add_up_to_totals_and_totals_to_the_truth(
        program in programs(50),
        at in 0..3000_u64,
        whole in any::<bool>(),
    ) {
        let depth = if whole { Depth::Whole } else { Depth::Innermost };
        let options = Options { depth, at: Some(at), ..Options::default() };
        let (aggregate, table) = gathered(&traced(&program, 1.0, 0), options);
        for metric in METRICS {
            for by in [By::Function, By::Location, By::File, By::Module] {
                let rows = aggregate.rows(&table, by, metric);
                let sum: u64 = rows.iter().map(|row| metric.samples(&row.counts)).sum();
                prop_assert_eq!(sum, aggregate.total(metric).count);
            }
        }
        prop_assert_eq!(aggregate.total(Metric::Allocated).count, words(&program, |_| true));
        let old = words(&program, |life| life.promoted.is_some());
        prop_assert_eq!(aggregate.total(Metric::Promoted).count, old);
        prop_assert_eq!(aggregate.total(Metric::Live).count, words(&program, |l| l.dies.is_none()));
        let alive = |time: u64| {
            words(&program, |life| life.born <= time && life.dies.is_none_or(|dies| dies > time))
        };
        if at <= aggregate.duration() {
            prop_assert_eq!(aggregate.total(Metric::At).count, alive(at));
        }
        prop_assert_eq!(aggregate.total(Metric::Peak).count, aggregate.peak_samples());
        // Within a microsecond more may be alive than at its end.
        let most = program.iter().map(|life| alive(life.born)).max().unwrap_or(0);
        prop_assert!(aggregate.peak_samples() >= most);
        let lifetimes = aggregate.lifetimes();
        prop_assert_eq!(lifetimes.dead().count + lifetimes.survivors().count, words(&program, |_| true));
    }

    #[test]
    fn the_time_line_has_all_that_was_allocated(program in programs(50)) {
        let (aggregate, _) = gathered(&traced(&program, 1.0, 0), Options::default());
        let buckets = aggregate.timeline().buckets();
        let allocated: u64 = buckets.iter().map(|bucket| bucket.allocated).sum();
        prop_assert_eq!(allocated, aggregate.samples());
        let most = buckets.iter().map(|bucket| bucket.most_live).max();
        prop_assert_eq!(most, Some(aggregate.peak_samples()));
        prop_assert_eq!(buckets.last().map(|b| b.live.count), Some(aggregate.total(Metric::Live).count));
    }

    #[test]
    fn callers_of_a_site_have_all_of_it(program in programs(50)) {
        let options = Options { depth: Depth::Whole, ..Options::default() };
        let (aggregate, table) = gathered(&traced(&program, 1.0, 0), options);
        let rows = aggregate.rows(&table, By::Function, Metric::Allocated);
        let sites: Vec<_> = rows.iter().map(|row| row.site.clone()).collect();
        let callers = aggregate.callers(&table, By::Function, Metric::Allocated, &sites, 2);
        for (row, callers) in rows.iter().zip(callers) {
            let sum: u64 = callers.iter().map(|caller| caller.samples.count).sum();
            prop_assert_eq!(sum, row.counts.allocated);
            for caller in callers {
                let above: u64 = caller.callers.iter().map(|caller| caller.samples.count).sum();
                prop_assert_eq!(above, caller.samples.count);
            }
        }
    }
}
