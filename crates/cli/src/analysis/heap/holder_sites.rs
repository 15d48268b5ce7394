//! Where the blocks of each holder were allocated, by a snapshot and the trace that was being written.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use heaptap_graph::HeapAnalysis;
use heaptap_report::Scale;
use heaptap_report::diagnosis::{GainedSite, HolderGain, Keepers, StackSites};
use heaptap_report::figures::heap::titles::Titles;

use super::tracked::{TrackedBlocks, TrackedList};
use crate::exit_status::Failure;

/// Into how many stretches the time of a trace is divided.
const STRETCHES: usize = 8;

/// The samples of one site of a holder.
#[derive(Clone, Default)]
pub(crate) struct SiteSamples {
    samples: u64,
    /// When the oldest block was allocated, in microseconds since the Unix epoch.
    oldest: u64,
}

impl SiteSamples {
    fn add(&mut self, samples: u64, oldest: u64) {
        self.oldest = if self.samples == 0 { oldest } else { self.oldest.min(oldest) };
        self.samples = self.samples.saturating_add(samples);
    }
}

/// The samples of a holder.
#[derive(Clone, Default)]
struct HolderSamples {
    sites: BTreeMap<StackSites, SiteSamples>,
    births: [u64; STRETCHES],
}

impl HolderSamples {
    /// Adds those of another holder of the same name.
    fn merge(&mut self, other: HolderSamples) {
        for (site, one) in other.sites {
            self.sites.entry(site).or_default().add(one.samples, one.oldest);
        }
        for (sum, births) in self.births.iter_mut().zip(other.births) {
            *sum += births;
        }
    }
}

/// What a snapshot and its trace say of where holders' blocks were allocated.
pub(crate) struct HolderSites {
    scale: Scale,
    taken: u64,
    holders: BTreeMap<String, HolderSamples>,
}

/// The blocks of a snapshot that its trace tracks, each with its holder, without the rest of the heap.
pub(crate) struct HeldBlocks {
    file: PathBuf,
    listed: TrackedList,
    /// The holders of those that are reachable, by their numbers in `names`.
    holders: HashMap<u32, usize>,
    names: Vec<String>,
}

impl HeldBlocks {
    pub(crate) fn of(
        file: &Path,
        analysis: &HeapAnalysis,
        titles: &Titles<'_>,
        keepers: &Keepers<'_>,
    ) -> HeldBlocks {
        let listed = TrackedList::of(analysis);
        let (mut holders, mut names) = (HashMap::new(), Vec::new());
        let mut numbers: HashMap<u32, usize> = HashMap::new();
        for block in listed.blocks() {
            let Some(holder) = keepers.of(block) else { continue };
            let number = *numbers.entry(holder).or_insert_with(|| {
                names.push(titles.keeper(holder));
                names.len() - 1
            });
            holders.insert(block, number);
        }
        HeldBlocks { file: file.to_owned(), listed, holders, names }
    }

    /// The file of the snapshot.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Joins the snapshot with the trace that was being written: `trace`, or the one that the snapshot names. `None` if
    /// there was none.
    pub(crate) fn join(&self, trace: Option<&Path>) -> Result<Option<HolderSites>, Failure> {
        let origin = &self.listed.origin;
        if origin.trace_file().is_none() {
            return Ok(None);
        }
        let trace = origin.find_trace(&self.file, trace)?;
        let tracked = TrackedBlocks::read_stacks(&self.listed, &trace, "name that one too")?;
        let began = tracked.info().start_time;
        let width = (origin.taken_us.saturating_sub(began) / STRETCHES as u64).max(1);
        let mut sites: HashMap<u32, StackSites> = HashMap::new();
        let mut samples = vec![HolderSamples::default(); self.names.len()];
        for block in &tracked.blocks {
            let number = self.holders.get(&block.block);
            let Some(of_holder) = number.and_then(|number| samples.get_mut(*number)) else {
                continue;
            };
            let stack = block.stack.unwrap_or(u32::MAX);
            let site = sites
                .entry(stack)
                .or_insert_with(|| StackSites::of(tracked.stacks.get(stack), tracked.locations()));
            let stretch = (block.time.saturating_sub(began) / width) as usize;
            of_holder.births[stretch.min(STRETCHES - 1)] += block.samples;
            of_holder.sites.entry(site.clone()).or_default().add(block.samples, block.time);
        }
        let (scale, taken) = (tracked.scale(), origin.taken_us);
        let mut holders: BTreeMap<String, HolderSamples> = BTreeMap::new();
        for (name, samples) in self.names.iter().zip(samples) {
            holders.entry(name.clone()).or_default().merge(samples);
        }
        holders.retain(|_, samples| !samples.sites.is_empty());
        Ok(Some(HolderSites { scale, taken, holders }))
    }
}

impl HolderSites {
    /// What each holder has more than in an earlier snapshot of the same trace, by site.
    pub(crate) fn since(&self, earlier: Option<&HolderSites>) -> Vec<HolderGain> {
        let of_holder = |(name, samples): (&String, &HolderSamples)| {
            let before = earlier.and_then(|earlier| earlier.holders.get(name));
            HolderGain {
                holder: name.clone(),
                sites: self.gained(samples, before),
                births: samples.births.to_vec(),
            }
        };
        self.holders.iter().map(of_holder).collect()
    }

    fn gained(&self, now: &HolderSamples, before: Option<&HolderSamples>) -> Vec<GainedSite> {
        /// Sites of a holder that are listed, and the least share of one.
        const MOST: usize = 6;
        const LEAST: f64 = 0.02;
        // One line may be reached by several stacks.
        let (now, before) = (by_line(now), before.map(by_line).unwrap_or_default());
        let gain = |(line, (_, samples)): (&LineKey, &(StackSites, SiteSamples))| {
            let had = before.get(line).map_or(0, |(_, had)| had.samples);
            samples.samples as f64 - had as f64
        };
        let all: f64 = now.iter().map(|row| gain(row).max(0.0)).sum();
        let row = |row: (&LineKey, &(StackSites, SiteSamples))| {
            let (_, (site, samples)) = row;
            let gained = gain(row);
            GainedSite {
                site: site.own.clone(),
                via: site.via.clone(),
                called_from: site.callers.clone(),
                size: self.scale.bytes(samples.samples).into(),
                gained_bytes: gained * self.scale.unit_bytes(),
                oldest_us: self.taken.saturating_sub(samples.oldest),
                share: gained / all.max(1.0),
                source: None,
            }
        };
        let mut rows: Vec<GainedSite> = now.iter().map(row).collect();
        rows.sort_by(|one, other| {
            other.gained_bytes.total_cmp(&one.gained_bytes).then_with(|| one.site.cmp(&other.site))
        });
        rows.retain(|row| row.share >= LEAST);
        rows.truncate(MOST);
        rows
    }
}

/// File and line of own code, and its function.
type LineKey = (String, u32, String);

/// The sites of one line added up; the callers are those of the most samples.
fn by_line(samples: &HolderSamples) -> BTreeMap<LineKey, (StackSites, SiteSamples)> {
    let mut lines: BTreeMap<LineKey, (StackSites, SiteSamples, u64)> = BTreeMap::new();
    for (site, one) in &samples.sites {
        let key = (site.own.file.clone(), site.own.line, site.own.name.clone());
        let (most, sum, most_samples) = lines.entry(key).or_default();
        if one.samples > *most_samples {
            (*most, *most_samples) = (site.clone(), one.samples);
        }
        sum.add(one.samples, one.oldest);
    }
    lines.into_iter().map(|(key, (site, sum, _))| (key, (site, sum))).collect()
}
