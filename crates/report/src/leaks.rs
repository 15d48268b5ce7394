//! Sites whose live size keeps growing.
//!
//! A leak has two signs. First, about the same share of the site's blocks is still
//! alive, whenever they were allocated: the ages of the survivors are spread over
//! the whole run, while a steady site has only young ones and a filled cache only
//! old ones. Second, the live size of the site grows by more than sampling explains.
//!
//! Garbage that is not collected yet looks like a leak. So only survivors that are
//! old enough to have survived two collections count as evidence: [`judged`].

mod by_cycles;
mod judged;
mod rule;
mod site_life;
mod suspects;
mod windows;

use hashbrown::HashMap;
use heaptap_trace::LocationTable;

use crate::aggregate::{Aggregate, Metric, Survivor};
use crate::blocks::LiveHistory;
use crate::callers::{Caller, SiteNumbers};
use crate::estimate::{Estimate, Sampled};
use crate::growth::{Growth, series_of};
use crate::library_calls::LibraryCall;
use crate::own_code::SiteFrame;
use crate::rows::{By, Grouping, Site};
use crate::site_nodes::SiteNodes;
pub use by_cycles::{ByCycles, JudgedSite};
use judged::Judged;
pub(crate) use rule::goes_on;
pub use rule::{Judgement, Shape, Verdict};
pub use suspects::{Suspect, Suspects};
use windows::FEWEST;

/// The least growth, in standard errors. A program has thousands of sites, so two
/// would give false alarms.
pub(crate) const CERTAIN: f64 = 5.0;

/// Whether the trace can show leaks at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// Yes.
    Clear,
    /// It is too short.
    TooShort,
    /// Nearly nothing was sampled, or selected.
    TooFew,
    /// Old blocks are collected too rarely, or never, to distinguish a leak from
    /// garbage that is not collected yet.
    RarelyCollected,
}

/// A site that keeps growing.
#[derive(Clone, Debug)]
pub struct Leak {
    /// Where it allocates.
    pub site: Site,
    /// What is alive of it at the end.
    pub live: Estimate,
    /// How fast that grows: bytes for each second.
    pub growth: Estimate,
    /// What it allocated in all.
    pub allocated: Estimate,
    /// The part of what is alive that was alive when the trace started.
    pub older: Estimate,
    /// How many microseconds before that the oldest of it was allocated; 0 if there is none.
    pub oldest: u64,
    /// Bytes still alive, by the window in which they were allocated, the oldest first.
    /// The windows are equal in time, or in what the program allocated in them.
    pub survivors: Vec<f64>,
    /// Microseconds at which the first window begins and the last one ends.
    pub window: (u64, u64),
    /// It grows less and less, over time and over what the program allocates, as a cache
    /// does that fills.
    pub slowing: bool,
    /// The callers, by live samples.
    pub callers: Vec<Caller>,
    /// The library functions through which the site allocates, by live samples, if it is own code.
    pub library_calls: Vec<LibraryCall>,
    /// The verdict by the collector's cycles, if they are known.
    pub judged: Option<JudgedSite>,
}

/// The result of a search for leaks.
#[derive(Clone, Debug)]
pub struct Leaks {
    /// Whether the trace can show leaks.
    pub outlook: Outlook,
    /// The sites, the fastest first.
    pub found: Vec<Leak>,
    /// If the trace cannot show leaks: the sites that grew most.
    pub suspects: Suspects,
    /// The time up to which survivors are evidence, in microseconds; 0 if there is none.
    pub known_until: u64,
    /// What was reachable at the beginning of the collector's cycles, if they are known.
    pub by_cycles: Option<ByCycles>,
}

/// The evidence on one site.
#[derive(Default)]
struct Evidence {
    /// The series of its live size.
    series: Vec<u32>,
    /// Birth and samples of each object that is alive at the end, as far as is known.
    survivors: Vec<(u64, Sampled)>,
    /// Those that the collector has not found, but that a heap snapshot has found dead: birth and then.
    garbage: Vec<((u64, u64), Sampled)>,
    allocated: Sampled,
    /// Survivors that are older than the trace, and by how much the oldest is.
    older: Sampled,
    oldest: u64,
}

impl Evidence {
    /// What the trace has at the end, garbage that the collector has not found included.
    fn at_end(&self) -> Sampled {
        let garbage = self.garbage.iter().map(|&(_, sampled)| sampled);
        sum(&self.survivors, 0).plus(garbage.sum())
    }
}

/// What is alive over time and at the end.
#[derive(Clone, Copy)]
struct History<'a> {
    growth: &'a Growth,
    survivors: &'a [Survivor],
    /// Series are the sites' frames, not pairs of frames.
    by_frame: bool,
    /// Which frame of a stack is its site.
    site: SiteFrame,
}

impl Aggregate {
    /// Finds leaks. Needs [`crate::OverTime::LiveSize`] and [`crate::Depth::Whole`].
    pub fn leaks(&self, table: &LocationTable, site: SiteFrame, levels: usize) -> Leaks {
        let (growth, survivors) = (&self.growth, &self.survivors[..]);
        self.leaks_in(History { growth, survivors, by_frame: false, site }, table, levels)
    }

    /// The same with the history of the table that these blocks were selected from. Needs
    /// [`crate::Depth::Whole`].
    pub fn leaks_with(&self, history: &LiveHistory, table: &LocationTable, levels: usize) -> Leaks {
        let &LiveHistory { ref growth, ref survivors, site } = history;
        self.leaks_in(History { growth, survivors, by_frame: true, site }, table, levels)
    }

    fn leaks_in(&self, history: History<'_>, table: &LocationTable, levels: usize) -> Leaks {
        let growth = history.growth;
        if self.has_enough()
            && let Some(leaks) = self.leaks_by_cycles(history, table, levels)
        {
            return leaks;
        }
        let judged = match self.judged(growth) {
            Ok(judged) => judged,
            Err(outlook) => {
                let suspects = self.suspects(history, table);
                let found = Vec::new();
                return Leaks { outlook, found, suspects, known_until: 0, by_cycles: None };
            }
        };
        let grouping = Grouping { by: By::Location, site: history.site };
        let mut numbers = SiteNumbers::new(table, grouping);
        let nodes = self.site_nodes(table, history.site);
        let sites = self.evidence(history, &nodes, &mut numbers);
        let mut found: Vec<Leak> = sites
            .iter()
            .filter_map(|(&number, evidence)| {
                let (windows, slowing) = judged.windows(&evidence.survivors)?;
                self.grows(growth, evidence, &judged)?;
                let site = &numbers.sites[number as usize];
                Some(Leak { slowing, ..self.leak(site, evidence, &windows.samples, judged.window) })
            })
            .collect();
        found.sort_by(|one, other| {
            other.growth.bytes.total_cmp(&one.growth.bytes).then_with(|| one.site.cmp(&other.site))
        });
        self.add_callers(&mut found, table, grouping, levels);
        Leaks {
            outlook: Outlook::Clear,
            found,
            suspects: Suspects::default(),
            known_until: judged.window.1,
            by_cycles: None,
        }
    }

    /// Adds who calls the sites, and what they allocate through.
    fn add_callers(
        &self,
        found: &mut [Leak],
        table: &LocationTable,
        grouping: Grouping,
        levels: usize,
    ) {
        let sites: Vec<Site> = found.iter().map(|leak| leak.site.clone()).collect();
        if sites.is_empty() {
            return;
        }
        let callers = self.callers(table, grouping, Metric::Live, &sites, levels);
        for (leak, callers) in found.iter_mut().zip(callers) {
            leak.callers = callers;
        }
        if grouping.site == SiteFrame::Own {
            let calls = self.library_calls(table, By::Location, Metric::Live, &sites);
            for (leak, calls) in found.iter_mut().zip(calls) {
                leak.library_calls = calls;
            }
        }
    }

    /// The part of the run that is evidence, or why there is none.
    fn judged(&self, growth: &Growth) -> Result<Judged, Outlook> {
        const FEWEST_POINTS: usize = 16;
        if !self.has_enough() {
            return Err(Outlook::TooFew);
        }
        if growth.len() < FEWEST_POINTS {
            return Err(Outlook::TooShort);
        }
        Judged::new(self, growth).ok_or(Outlook::RarelyCollected)
    }

    /// Whether there are samples enough for any verdict. Of several rates, what would have been sampled at the
    /// lowest decides: nothing is seen more clearly than the least clear stretch is.
    fn has_enough(&self) -> bool {
        self.allocated.count / self.rates.weight(0).count.max(1) >= FEWEST
    }

    fn evidence(
        &self,
        history: History<'_>,
        nodes: &SiteNodes,
        numbers: &mut SiteNumbers<'_>,
    ) -> HashMap<u32, Evidence> {
        let mut sites: HashMap<u32, Evidence> = HashMap::new();
        // The site of each series.
        let all = match history.by_frame {
            true => self.frames.codes().len() + 1,
            false => history.growth.series_count(),
        };
        let mut site_of: Vec<Option<u32>> = vec![None; all];
        for (path, counts) in self.counts.iter().enumerate() {
            let node = nodes.of(self.paths.node(path as u32));
            let series = match history.by_frame {
                true => series_of(self.paths.frame(node)),
                false => history.growth.series_of_path(path as u32),
            };
            // Without live sizes over time there are no series.
            let Some(known) = site_of.get_mut(series as usize) else { continue };
            let site = *known.get_or_insert_with(|| {
                let site = numbers.site_of(self.frame(node)).unwrap_or(0);
                sites.entry(site).or_default().series.push(series);
                site
            });
            if let Some(evidence) = sites.get_mut(&site) {
                let allocated = Metric::Allocated.of(&counts);
                evidence.allocated = evidence.allocated.plus(allocated);
            }
        }
        for &Survivor { birth, before, dead, series, sampled } in history.survivors {
            let site = site_of.get(series as usize).copied().flatten();
            if let Some(evidence) = site.and_then(|site| sites.get_mut(&site)) {
                match dead {
                    None => evidence.survivors.push((birth, sampled)),
                    Some(dead) => evidence.garbage.push(((birth, dead), sampled)),
                }
                if before > 0 {
                    evidence.older = evidence.older.plus(sampled);
                    evidence.oldest = evidence.oldest.max(before);
                }
            }
        }
        sites
    }

    fn leak(
        &self,
        site: &Site,
        evidence: &Evidence,
        survivors: &[Sampled],
        window: (u64, u64),
    ) -> Leak {
        let weight = self.scale.unit_bytes();
        Leak {
            site: site.clone(),
            live: self.estimate(Metric::Live, evidence.at_end()),
            growth: self.kept_each_second(survivors, window),
            allocated: self.estimate(Metric::Allocated, evidence.allocated),
            older: self.estimate(Metric::Live, evidence.older),
            oldest: evidence.oldest,
            survivors: survivors.iter().map(|of_window| of_window.count as f64 * weight).collect(),
            window,
            slowing: false,
            callers: Vec::new(),
            library_calls: Vec::new(),
            judged: None,
        }
    }

    /// Whether a site grew; `None` if that is not certain.
    fn grows(&self, growth: &Growth, evidence: &Evidence, judged: &Judged) -> Option<()> {
        let series = live_of(growth, evidence);
        let first = (judged.window.0 / growth.width()).saturating_sub(1) as usize;
        let since = (first as u64 + 1) * growth.width();
        // Objects born since then that survive, and objects alive then that died: the two
        // count different words, so their variances add.
        let all = sum(&evidence.survivors, 0);
        let came = sum(&evidence.survivors, since);
        let went = series.get(first)?.saturating_sub(all.count - came.count);
        let (gained, both) = (came.count as f64 - went as f64, came.count as f64 + went as f64);
        let (early, late) = judged.floors(growth.width(), &series, first)?;
        // What a unit of a count adds to its variance: 1 for samples of one rate. Of what went, of
        // several rates, the worst is assumed.
        let spread = self.worst_spread();
        let noise = (both * spread).sqrt();
        let of_floors = ((late + early) * spread).sqrt();
        if gained < CERTAIN * noise || late - early < CERTAIN / 2.0 * of_floors {
            return None;
        }
        Some(())
    }

    /// The variance of a count for each unit of it if all of it was sampled at the lowest rate, as
    /// of Poisson events.
    fn worst_spread(&self) -> f64 {
        self.rates.weight(0).count as f64
    }

    /// The bytes kept of each second's allocations: the median of the windows, since
    /// the youngest may still hold garbage. It has 1.25 times the error of the mean.
    fn kept_each_second(&self, survivors: &[Sampled], (from, to): (u64, u64)) -> Estimate {
        let windows = survivors.len() as f64;
        let mut ordered = survivors.to_vec();
        ordered.sort_unstable_by_key(|of_window| of_window.count);
        let median = ordered.get(ordered.len() / 2).copied().unwrap_or_default();
        let times = |of_window: u64| (of_window as f64 * windows) as u64;
        let all = Sampled { count: times(median.count), variance: times(median.variance) };
        let all = self.estimate(Metric::Live, all);
        let seconds = (to - from) as f64 / 1e6;
        let (bytes, error) = (all.bytes / seconds, 1.25 * all.error / seconds);
        let reach = 1.96 * error;
        Estimate { bytes, error, low: (bytes - reach).max(0.0), high: bytes + reach }
    }
}

/// The live samples of a site at each point.
fn live_of(growth: &Growth, evidence: &Evidence) -> Vec<u64> {
    let mut series = vec![0_u64; growth.len()];
    for &number in &evidence.series {
        for (sum, live) in series.iter_mut().zip(growth.series(number)) {
            *sum = sum.saturating_add(live);
        }
    }
    series
}

/// Samples of the objects born from `since` on.
fn sum(survivors: &[(u64, Sampled)], since: u64) -> Sampled {
    survivors.iter().filter(|&&(birth, _)| birth >= since).map(|&(_, sampled)| sampled).sum()
}
