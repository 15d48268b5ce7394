//! The sites that grew most in a trace that cannot show leaks: where to look, not what leaks.
//!
//! A site grew by what it allocated in the second half of the run that is alive at its end, less
//! what was alive in the middle and is not any more. The two are different words, so their
//! variances add. What grew by less than two standard errors may not have grown.

use heaptap_trace::LocationTable;

use super::{Evidence, History, JudgedSite, live_of, sum};
use crate::aggregate::{Aggregate, Metric};
use crate::callers::SiteNumbers;
use crate::estimate::{Estimate, Sampled, Z95};
use crate::rows::{By, Grouping, Site};

/// The most sites that are named.
const MOST: usize = 8;

/// The least growth, in standard errors.
const LEAST: f64 = 2.0;

/// A site that may leak.
#[derive(Clone, Debug)]
pub struct Suspect {
    /// Where it allocates.
    pub site: Site,
    /// What is alive of it at the end.
    pub live: Estimate,
    /// By how much that is more than in the middle of the run.
    pub growth: Estimate,
    /// What it allocated in all.
    pub allocated: Estimate,
    /// The verdict by the collector's cycles, if they are known.
    pub judged: Option<JudgedSite>,
}

/// The sites that grew most.
#[derive(Clone, Debug, Default)]
pub struct Suspects {
    /// Microseconds since the start of the trace: they grew since then.
    pub since: u64,
    /// Those that grew most come first.
    pub sites: Vec<Suspect>,
    /// How many more there are.
    pub others: usize,
}

impl Aggregate {
    pub(super) fn suspects(&self, history: History<'_>, table: &LocationTable) -> Suspects {
        let growth = history.growth;
        let grouping = Grouping { by: By::Location, site: history.site };
        let mut numbers = SiteNumbers::new(table, grouping);
        let nodes = self.site_nodes(table, history.site);
        // The point in the middle; a trace that has none begins with nothing.
        let middle = (growth.len() / 2).checked_sub(1);
        let since = middle.map_or(0, |middle| (middle as u64 + 1) * growth.width());
        let sites = self.evidence(history, &nodes, &mut numbers);
        let mut sites: Vec<Suspect> = sites
            .iter()
            .filter_map(|(&number, evidence)| {
                let before = middle.map_or(0, |middle| {
                    live_of(growth, evidence).get(middle).copied().unwrap_or(0)
                });
                self.suspect(&numbers.sites[number as usize], evidence, before, since)
            })
            .collect();
        sites.sort_by(|one, other| {
            other.growth.bytes.total_cmp(&one.growth.bytes).then_with(|| one.site.cmp(&other.site))
        });
        let others = sites.len().saturating_sub(MOST);
        sites.truncate(MOST);
        Suspects { since, sites, others }
    }

    /// A site of which so many samples were alive at `since`, if it has grown.
    fn suspect(
        &self,
        site: &Site,
        evidence: &Evidence,
        before: u64,
        since: u64,
    ) -> Option<Suspect> {
        let live = |sampled| self.estimate(Metric::Live, sampled);
        let (all, came) = (sum(&evidence.survivors, 0), sum(&evidence.survivors, since));
        let count = before.saturating_sub(all.count - came.count);
        // What is not alive any more has the variance of the lowest rate.
        let lowest = self.rates.weight(0);
        let variance = count as f64 / lowest.count as f64 * lowest.variance as f64;
        let went = Sampled { count, variance: variance as u64 };
        let bytes = live(came).bytes - live(went).bytes;
        let error = live(came.plus(went)).error;
        if bytes <= 0.0 || bytes < LEAST * error {
            return None;
        }
        let growth = Estimate {
            bytes,
            error,
            low: (bytes - Z95 * error).max(0.0),
            high: bytes + Z95 * error,
        };
        let allocated = self.estimate(Metric::Allocated, evidence.allocated);
        Some(Suspect {
            site: site.clone(),
            live: live(evidence.at_end()),
            growth,
            allocated,
            judged: None,
        })
    }
}
