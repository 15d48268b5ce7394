//! Two traces compared: what grew, what shrank, and what is chance.

use hashbrown::HashMap;

use crate::estimate::Estimate;
use crate::rows::Site;

/// What became of a site.
#[derive(Clone, Debug)]
pub struct Change {
    /// The site.
    pub site: Site,
    /// Its size in the first trace.
    pub before: Estimate,
    /// Its size in the second.
    pub after: Estimate,
    /// How many standard errors they are apart.
    pub distance: f64,
    /// Whether that is more than chance.
    pub certain: bool,
}

/// How many standard errors apart two estimates are.
///
/// Where one is nothing its error is that of a single sample, of the size that
/// `one_before` and `one_after` say.
pub fn distance(before: &Estimate, after: &Estimate, ones: (f64, f64)) -> f64 {
    let error = |estimate: &Estimate, one: f64| estimate.error.max(one);
    let noise = error(before, ones.0).hypot(error(after, ones.1));
    let difference = after.bytes - before.bytes;
    if difference == 0.0 { 0.0 } else { difference / noise }
}

/// The sites of two tables side by side, the largest difference first.
///
/// Among many sites that did not change some seem to: what is certain would
/// happen by chance in less than one of 20 comparisons.
pub fn changes(
    before: Vec<(Site, Estimate)>,
    after: Vec<(Site, Estimate)>,
    ones: (f64, f64),
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
            let distance = distance(&before, &after, ones);
            Change { site, before, after, distance, certain: distance.abs() > limit }
        })
        .collect();
    changes.sort_by(|one, other| {
        let size = |change: &Change| (change.after.bytes - change.before.bytes).abs();
        size(other).total_cmp(&size(one)).then_with(|| one.site.cmp(&other.site))
    });
    changes
}

/// So far apart that among `count` comparisons of equals chance makes none in 19
/// of 20 cases: a bound on the tail of the normal law.
fn certain_distance(count: usize) -> f64 {
    (2.0 * (count.max(1) as f64 / 0.05).ln()).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Scale;

    fn site(name: &str) -> Site {
        Site { name: name.into(), file: String::new(), line: 0, chars: (0, 0) }
    }

    #[test]
    fn chance_is_told_from_change() {
        let scale = Scale { rate: 0.001, word_bytes: 8.0 };
        let ones = (8000.0, 8000.0);
        let table = |counts: [(&str, u64); 4]| {
            counts.map(|(name, samples)| (site(name), scale.bytes(samples))).to_vec()
        };
        let before = table([("grows", 1000), ("shrinks", 1000), ("same", 1000), ("gone", 50)]);
        let after = table([("grows", 2000), ("shrinks", 500), ("same", 1040), ("new", 60)]);
        let found = changes(before, after, ones);
        let certain: Vec<&str> =
            found.iter().filter(|c| c.certain).map(|c| c.site.name.as_str()).collect();
        assert_eq!(certain, ["grows", "shrinks", "new", "gone"]);
        assert!(found[0].distance > 15.0 && found[1].distance < -10.0);
    }

    #[test]
    fn few_samples_are_no_news() {
        let scale = Scale { rate: 0.001, word_bytes: 8.0 };
        let after = vec![(site("new"), scale.bytes(2))];
        assert!(!changes(Vec::new(), after, (8000.0, 8000.0))[0].certain);
    }
}
