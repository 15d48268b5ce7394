//! Counters of the trace: live and allocated bytes, in all and by the sites that have most.

use std::collections::HashMap;
use std::io;

use heaptap_report::{Metric, Stack, Stacks};

use super::packets::{Packets, Track, Unit};
use crate::{ExportInput, frame_name};

/// The sites that have counters of their own.
const MOST_SITES: usize = 10;

/// Samples that came and went in each slice of time.
type SiteFlows = Vec<(u64, u64)>;

pub(super) fn write(
    input: &ExportInput<'_>,
    stacks: &Stacks<'_>,
    packets: &mut Packets<'_>,
    process: Track,
) -> io::Result<()> {
    write_totals(input, packets, process)?;
    let live = packets.track(process, "live size by site")?;
    let sites = NamedSites::new(stacks);
    let top = sites.top(stacks, Metric::Peak);
    write_sites(input, stacks, packets, &sites, (live, &top), |(came, went)| {
        came.saturating_sub(went)
    })?;
    let allocated = packets.track(process, "allocated by site")?;
    let top = sites.top(stacks, Metric::Allocated);
    write_sites(input, stacks, packets, &sites, (allocated, &top), |(came, _)| came)
}

fn write_totals(
    input: &ExportInput<'_>,
    packets: &mut Packets<'_>,
    process: Track,
) -> io::Result<()> {
    let aggregate = input.aggregate;
    let timeline = aggregate.timeline();
    let live = packets.counter(process, "live size", Unit::Bytes)?;
    let allocated = packets.counter(process, "allocated", Unit::Bytes)?;
    for counter in [live, allocated] {
        packets.count(counter, input.nanos(0), 0.0)?;
    }
    let mut sum = 0_u64;
    for (index, bucket) in (1..).zip(timeline.buckets()) {
        let time = timeline.width().saturating_mul(index).min(aggregate.duration());
        sum = sum.saturating_add(bucket.allocated);
        packets.count(live, input.nanos(time), input.sample_bytes(bucket.live.count))?;
        packets.count(allocated, input.nanos(time), input.sample_bytes(sum))?;
    }
    Ok(())
}

/// The innermost sites of stacks, by name: those of one line are one, since tracks of the same name would be
/// shown as one.
struct NamedSites {
    names: Vec<String>,
    /// The number of the name of each site.
    of_sites: Vec<u32>,
}

impl NamedSites {
    fn new(stacks: &Stacks<'_>) -> Self {
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut names = Vec::new();
        let of_sites = stacks.sites().iter().map(|site| {
            *numbers.entry(frame_name(site)).or_insert_with_key(|name| {
                names.push(name.clone());
                names.len() as u32 - 1
            })
        });
        let of_sites = of_sites.collect();
        NamedSites { names, of_sites }
    }

    fn of(&self, stack: &Stack<'_>) -> Option<u32> {
        stack.sites().first().map(|&site| self.of_sites[site as usize])
    }

    /// Those with the most samples of a metric, the largest first.
    fn top(&self, stacks: &Stacks<'_>, metric: Metric) -> Vec<u32> {
        let mut sums = vec![0_u64; self.names.len()];
        for stack in stacks.iter() {
            if let Some(site) = self.of(&stack) {
                let sum = &mut sums[site as usize];
                *sum = sum.saturating_add(metric.samples(&stack.counts));
            }
        }
        let mut sites: Vec<u32> = (0..sums.len() as u32).collect();
        sites.retain(|&site| sums[site as usize] > 0);
        sites.sort_unstable_by_key(|&site| (std::cmp::Reverse(sums[site as usize]), site));
        sites.truncate(MOST_SITES);
        sites
    }
}

/// A counter for each of these sites, with a value made of what came and went so far.
fn write_sites(
    input: &ExportInput<'_>,
    stacks: &Stacks<'_>,
    packets: &mut Packets<'_>,
    sites: &NamedSites,
    (parent, top): (Track, &[u32]),
    value: impl Fn((u64, u64)) -> u64,
) -> io::Result<()> {
    let aggregate = input.aggregate;
    let mut flows: HashMap<u32, SiteFlows> =
        top.iter().map(|&site| (site, vec![(0, 0); aggregate.slices()])).collect();
    for stack in stacks.iter() {
        let Some(sums) = sites.of(&stack).and_then(|site| flows.get_mut(&site)) else {
            continue;
        };
        for (sum, flow) in sums.iter_mut().zip(stack.flows()) {
            sum.0 += u64::from(flow.came);
            sum.1 += u64::from(flow.went);
        }
    }
    for site in top {
        let counter = packets.counter(parent, &sites.names[*site as usize], Unit::Bytes)?;
        packets.count(counter, input.nanos(0), 0.0)?;
        let mut sum = (0, 0);
        for (index, flow) in (1..).zip(&flows[site]) {
            sum = (sum.0 + flow.0, sum.1 + flow.1);
            let time = aggregate.slice_width().saturating_mul(index).min(aggregate.duration());
            let bytes = value(sum) as f64 * aggregate.flow_bytes();
            packets.count(counter, input.nanos(time), bytes.round())?;
        }
    }
    Ok(())
}
