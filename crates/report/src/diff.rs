//! The comparison of two traces: what grew, what shrank, and what is chance.

use hashbrown::HashMap;

use crate::estimate::{Estimate, Z95};
use crate::rows::Site;

/// A site in both traces.
#[derive(Clone, Debug)]
pub struct Change {
    /// The site.
    pub site: Site,
    /// Its size in the first trace.
    pub before: Estimate,
    /// Its size in the second.
    pub after: Estimate,
    /// The distance of the two, in standard errors.
    pub distance: f64,
    /// Whether the difference is more than chance.
    pub certain: bool,
}

/// The standard error of a single sample in each of the two traces, in bytes. An
/// estimate from no samples is taken to have this error.
#[derive(Clone, Copy, Debug)]
pub struct SingleSample {
    /// In the first trace.
    pub before: f64,
    /// In the second trace.
    pub after: f64,
}

/// The distance of two estimates, in standard errors.
pub fn distance(before: &Estimate, after: &Estimate, single: SingleSample) -> f64 {
    // That of several rates is of a sample at the lowest: what has samples may have a smaller error.
    let error = |size: &Estimate, single: f64| if size.bytes > 0.0 { size.error } else { single };
    let (one, other) = (error(before, single.before), error(after, single.after));
    // `hypot` differs in its last digit between a browser and the command line.
    let noise = (one * one + other * other).sqrt();
    let difference = after.bytes - before.bytes;
    if difference == 0.0 { 0.0 } else { difference / noise }
}

/// The sites of two tables side by side, the largest difference first.
///
/// Among many sites that did not change, some seem to. A difference is certain if
/// chance makes one as large at any site in less than one of 20 comparisons.
pub fn changes(
    before: Vec<(Site, Estimate)>,
    after: Vec<(Site, Estimate)>,
    single: SingleSample,
) -> Vec<Change> {
    let mut pairs: HashMap<Site, (Estimate, Estimate)> = HashMap::new();
    for (site, estimate) in before {
        pairs.entry(site).or_default().0 = estimate;
    }
    for (site, estimate) in after {
        pairs.entry(site).or_default().1 = estimate;
    }
    let limit = certain_distance(pairs.len());
    let mut changes: Vec<Change> = pairs
        .into_iter()
        .map(|(site, (before, after))| {
            let distance = distance(&before, &after, single);
            Change { site, before, after, distance, certain: distance.abs() > limit }
        })
        .collect();
    changes.sort_by(|one, other| {
        let size = |change: &Change| (change.after.bytes - change.before.bytes).abs();
        size(other).total_cmp(&size(one)).then_with(|| one.site.cmp(&other.site))
    });
    changes
}

/// The distance that none of `count` equal pairs exceeds by chance in 19 of 20
/// cases: a bound on the tail of the normal distribution.
pub fn certain_distance(count: usize) -> f64 {
    (2.0 * (count.max(1) as f64 / 0.05).ln()).sqrt()
}

/// Whether two estimates differ by more than chance, where they are the only ones that are compared: those
/// of two totals.
pub fn is_total_certain(distance: f64) -> bool {
    distance.abs() > Z95
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Scale;

    #[test]
    fn chance_is_distinguished_from_change() {
        let scale = Scale::new(0.001, 8.0);
        let single = SingleSample { before: 8000.0, after: 8000.0 };
        let table = |counts: [(&str, u64); 4]| {
            counts.map(|(name, samples)| (Site::named(name), scale.bytes(samples))).to_vec()
        };
        let before = table([("grows", 1000), ("shrinks", 1000), ("same", 1000), ("gone", 50)]);
        let after = table([("grows", 2000), ("shrinks", 500), ("same", 1040), ("new", 60)]);
        let found = changes(before, after, single);
        let certain: Vec<&str> =
            found.iter().filter(|c| c.certain).map(|c| c.site.name.as_str()).collect();
        assert_eq!(certain, ["grows", "shrinks", "new", "gone"]);
        assert!(found[0].distance > 15.0 && found[1].distance < -10.0);
    }

    #[test]
    fn few_samples_are_no_news() {
        let scale = Scale::new(0.001, 8.0);
        let after = vec![(Site::named("new"), scale.bytes(2))];
        let single = SingleSample { before: 8000.0, after: 8000.0 };
        assert!(!changes(Vec::new(), after, single)[0].certain);
    }
}
