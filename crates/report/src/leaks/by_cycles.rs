//! The verdicts where the collector's cycles are known.

use hashbrown::HashMap;
use heaptap_trace::LocationTable;

use super::rule::{Judgement, Shape, Verdict, judge};
use super::site_life::SiteLife;
use super::{Evidence, History, Leak, Leaks, Outlook, Suspect, Suspects};
use crate::aggregate::{Aggregate, Metric};
use crate::callers::SiteNumbers;
use crate::cohorts::Amount;
use crate::estimate::{Estimate, Sampled};
use crate::rows::{By, Grouping, Site};
use crate::truths::Truth;

/// The most suspects that are named, and how many are named even if they did not grow.
const MOST: usize = 8;
const FEWEST: usize = 3;

/// Suspects that did not grow by this many standard errors are named only if there are few others.
const LEAST: f64 = 2.0;

/// The windows in which survivors are shown.
const WINDOWS: u64 = 8;

/// What was reachable over time, of all sites together.
#[derive(Clone, Debug)]
pub struct ByCycles {
    /// The moments at which that is known, and how much it was.
    pub reachable: Vec<(Truth, Estimate)>,
}

/// The verdict on a site, with its sizes.
#[derive(Clone, Debug)]
pub struct JudgedSite {
    /// The verdict.
    pub judgement: Judgement,
    /// What was reachable at [`Judgement::from`] and at [`Judgement::until`].
    pub before: Estimate,
    /// See there.
    pub after: Estimate,
    /// By how much it grew in a second between the two.
    pub growth: Estimate,
}

/// A site, its evidence, and the verdict.
struct Candidate {
    number: u32,
    judged: JudgedSite,
}

impl Aggregate {
    /// The leaks, if enough of the collector's cycles are known.
    pub(super) fn leaks_by_cycles(
        &self,
        history: History<'_>,
        table: &LocationTable,
        levels: usize,
    ) -> Option<Leaks> {
        let cohorts = &history.growth.cohorts;
        if cohorts.truths().moments().is_empty() {
            return None;
        }
        let grouping = Grouping { by: By::Location, site: history.site };
        let mut numbers = SiteNumbers::new(table, grouping);
        let nodes = self.site_nodes(table, history.site);
        let sites = self.evidence(history, &nodes, &mut numbers);
        let gone = gone_of(history, &sites);
        let progress = self.timeline.progress();
        let mut totals = vec![Amount::default(); cohorts.truths().moments().len()];
        let mut conclusive = false;
        let mut candidates = Vec::new();
        for (&number, evidence) in &sites {
            let life = self.life(history, evidence, gone.get(&number));
            for (total, size) in totals.iter_mut().zip(life.sizes()) {
                total.add(size);
            }
            if let Some(judgement) = judge(&life, &progress) {
                conclusive = true;
                candidates.push(Candidate { number, judged: self.sized(judgement) });
            }
        }
        let reachable = cohorts.truths().moments().iter().zip(&totals);
        let reachable = reachable
            .map(|(&truth, total)| (truth, self.estimate(Metric::Live, total.sampled)))
            .collect();
        let by_cycles = Some(ByCycles { reachable });
        let known_until = cohorts.truths().moments().last().map_or(0, |truth| truth.at);
        if !conclusive {
            return None;
        }
        let name = |number: u32| &numbers.sites[number as usize];
        candidates.sort_by(|one, other| {
            let key = |candidate: &Candidate| (rank(&candidate.judged), -weight(&candidate.judged));
            let ((one_rank, one_weight), (other_rank, other_weight)) = (key(one), key(other));
            one_rank
                .cmp(&other_rank)
                .then(one_weight.total_cmp(&other_weight))
                .then_with(|| name(one.number).cmp(name(other.number)))
        });
        let leaking = candidates.partition_point(|candidate| rank(&candidate.judged) == 0);
        let (leaking, others) = candidates.split_at(leaking);
        let mut found: Vec<Leak> = leaking
            .iter()
            .filter_map(|candidate| {
                let evidence = sites.get(&candidate.number)?;
                Some(self.judged_leak(name(candidate.number), evidence, &candidate.judged))
            })
            .collect();
        self.add_callers(&mut found, table, grouping, levels);
        let suspects = self.judged_suspects(others, |number| {
            sites.get(&number).map(|evidence| (name(number).clone(), evidence))
        });
        Some(Leaks { outlook: Outlook::Clear, found, suspects, known_until, by_cycles })
    }

    fn life<'a>(
        &self,
        history: History<'a>,
        evidence: &Evidence,
        gone: Option<&Vec<((usize, usize), Amount)>>,
    ) -> SiteLife<'a> {
        let cohorts = &history.growth.cohorts;
        let survivors = evidence.survivors.iter();
        let alive = survivors.map(|&(birth, block)| (birth, Amount::of(block, &self.scale)));
        let mut records: Vec<_> =
            evidence.series.iter().flat_map(|&series| cohorts.records(series)).copied().collect();
        records.sort_unstable_by_key(|record| record.birth);
        let mut largest = 0;
        // Several frames of one site: of all their records, those that are records of the site.
        records.retain(|record| {
            let is_record = record.count > largest;
            largest = largest.max(record.count);
            is_record
        });
        let mut gone = gone.cloned().unwrap_or_default();
        gone.extend(evidence.garbage.iter().filter_map(|&((birth, dead), block)| {
            let moments = cohorts.truths().seen(birth, dead)?;
            Some((moments, Amount::of(block, &self.scale)))
        }));
        let lowest = self.rates.weight(0).count;
        SiteLife::new(cohorts.truths(), gone, alive.collect(), records, (lowest, self.end))
    }

    fn sized(&self, judgement: Judgement) -> JudgedSite {
        let unit = self.scale.unit_bytes();
        let seconds = (judgement.until - judgement.from).max(1) as f64 / 1e6;
        let counts = judgement.after.count as f64 - judgement.before.count as f64;
        let bytes = counts * unit / seconds;
        // At rate 1 nothing is by chance but how many blocks come and go.
        let error = judgement.noise * unit / seconds;
        let reach = 1.96 * error;
        let growth = Estimate { bytes, error, low: bytes - reach, high: bytes + reach };
        JudgedSite {
            judgement,
            before: self.estimate(Metric::Live, judgement.before),
            after: self.estimate(Metric::Live, judgement.after),
            growth,
        }
    }

    fn judged_leak(&self, site: &Site, evidence: &Evidence, judged: &JudgedSite) -> Leak {
        let Judgement { until, .. } = judged.judgement;
        let window = (until / 4, until);
        let mut windows = vec![Sampled::default(); WINDOWS as usize];
        let width = (window.1 - window.0) / WINDOWS + 1;
        for &(birth, block) in &evidence.survivors {
            if (window.0..window.1).contains(&birth) {
                let at = ((birth - window.0) / width) as usize;
                windows[at] = windows[at].plus(block);
            }
        }
        let leak = self.leak(site, evidence, &windows, window);
        let growth = Estimate { low: judged.growth.low.max(0.0), ..judged.growth };
        Leak { growth, judged: Some(judged.clone()), ..leak }
    }

    fn judged_suspects<'a>(
        &self,
        others: &[Candidate],
        of: impl Fn(u32) -> Option<(Site, &'a Evidence)>,
    ) -> Suspects {
        let suspicious =
            others.iter().take_while(|candidate| rank(&candidate.judged) < LAST_RANK).count();
        let named = suspicious.clamp(FEWEST.min(others.len()), MOST);
        let since = others.first().map_or(0, |candidate| candidate.judged.judgement.from);
        let suspect = |candidate: &Candidate| {
            let (site, evidence) = of(candidate.number)?;
            let judged = &candidate.judged;
            let seconds = (judged.judgement.until - judged.judgement.from).max(1) as f64 / 1e6;
            let Estimate { bytes, error, low, high } = judged.growth;
            Some(Suspect {
                site,
                live: self.estimate(Metric::Live, evidence.at_end()),
                growth: Estimate {
                    bytes: bytes * seconds,
                    error: error * seconds,
                    low: low * seconds,
                    high: high * seconds,
                },
                allocated: self.estimate(Metric::Allocated, evidence.allocated),
                judged: Some(judged.clone()),
            })
        };
        Suspects {
            since,
            sites: others.iter().take(named).filter_map(suspect).collect(),
            others: suspicious.saturating_sub(named),
        }
    }
}

/// What went, by site: between which moments, and how much.
type GoneBySite = HashMap<u32, Vec<((usize, usize), Amount)>>;

/// What was seen and went, by site.
fn gone_of(history: History<'_>, sites: &HashMap<u32, Evidence>) -> GoneBySite {
    let mut site_of: HashMap<u32, u32> = HashMap::new();
    for (&number, evidence) in sites {
        site_of.extend(evidence.series.iter().map(|&series| (series, number)));
    }
    let mut gone: GoneBySite = HashMap::new();
    for (series, moments, amount) in history.growth.cohorts.gone() {
        if let Some(&site) = site_of.get(&series) {
            gone.entry(site).or_default().push((moments, amount));
        }
    }
    gone
}

/// Those that are no suspects.
const LAST_RANK: u8 = 5;

/// How suspicious a site is: 0 leaks.
fn rank(judged: &JudgedSite) -> u8 {
    let grew = judged.growth.bytes > 0.0 && judged.growth.bytes >= LEAST * judged.growth.error;
    match judged.judgement.verdict {
        Verdict::KeepsGrowing => 0,
        Verdict::WasGrowing => 1,
        Verdict::Slowing => 2,
        _ if !grew => LAST_RANK,
        Verdict::NotSeen | Verdict::Waits => 3,
        Verdict::Stopped | Verdict::TurnsOver | Verdict::HolderSteady => 4,
    }
}

/// By what suspects of a rank are ordered.
fn weight(judged: &JudgedSite) -> f64 {
    match (rank(judged), judged.judgement.shape) {
        (LAST_RANK, _) | (_, Some(Shape::Replacement)) => judged.after.bytes,
        _ => judged.growth.bytes,
    }
}
