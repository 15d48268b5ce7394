//! Where the blocks of each holder were allocated, by a snapshot and the trace that was being written.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use heaptap_graph::HeapAnalysis;
use heaptap_heap::MetaKey;
use heaptap_report::Scale;
use heaptap_report::diagnosis::{GainedSite, HolderGain, Keepers, StackSites};
use heaptap_report::figures::heap::titles::Titles;

use super::sites::trace_of;
use super::tracked::TrackedBlocks;
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

/// The samples of a holder.
#[derive(Clone, Default)]
struct HolderSamples {
    sites: BTreeMap<StackSites, SiteSamples>,
    births: [u64; STRETCHES],
}

/// What a snapshot and its trace say of where holders' blocks were allocated.
pub(crate) struct HolderSites {
    scale: Scale,
    taken: u64,
    holders: BTreeMap<String, HolderSamples>,
}

/// Joins a snapshot with the trace that was being written: `trace`, or the one that the snapshot names.
pub(crate) fn join_with_trace(
    analysis: &HeapAnalysis,
    snapshot: &Path,
    trace: Option<&Path>,
) -> Result<HolderSites, Failure> {
    let trace = trace_of(analysis, snapshot, trace)?;
    let tracked = TrackedBlocks::read_stacks(analysis, &trace, "name that one too")?;
    let taken = analysis.graph.facts().number(MetaKey::TIME).unwrap_or(0) / 1000;
    let began = tracked.info().start_time;
    let width = (taken.saturating_sub(began) / STRETCHES as u64).max(1);
    let (titles, keepers) = (Titles::new(analysis), Keepers::new(analysis));
    let mut names: HashMap<u32, String> = HashMap::new();
    let mut sites: HashMap<u32, StackSites> = HashMap::new();
    let mut holders: BTreeMap<String, HolderSamples> = BTreeMap::new();
    for block in &tracked.blocks {
        let Some(holder) = keepers.of(block.block) else { continue };
        let name = names.entry(holder).or_insert_with(|| titles.keeper(holder));
        let stack = block.stack.unwrap_or(u32::MAX);
        let site = sites
            .entry(stack)
            .or_insert_with(|| StackSites::of(tracked.stacks.get(stack), tracked.locations()));
        if !holders.contains_key(name) {
            holders.insert(name.clone(), HolderSamples::default());
        }
        let Some(of_holder) = holders.get_mut(name) else { continue };
        let stretch = (block.time.saturating_sub(began) / width) as usize;
        of_holder.births[stretch.min(STRETCHES - 1)] += block.samples;
        let sum = of_holder.sites.entry(site.clone()).or_default();
        sum.oldest = if sum.samples == 0 { block.time } else { sum.oldest.min(block.time) };
        sum.samples = sum.samples.saturating_add(block.samples);
    }
    Ok(HolderSites { scale: tracked.scale(), taken, holders })
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
        sum.oldest = if sum.samples == 0 { one.oldest } else { sum.oldest.min(one.oldest) };
        sum.samples = sum.samples.saturating_add(one.samples);
    }
    lines.into_iter().map(|(key, (site, sum, _))| (key, (site, sum))).collect()
}
