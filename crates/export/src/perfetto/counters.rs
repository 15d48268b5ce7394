//! Counters of the trace: live and allocated bytes, in all and by the sites that have most.

use std::collections::HashMap;
use std::io;

use heaptap_report::{Metric, Stacks};

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
    let sites = top_sites(stacks, Metric::Peak);
    write_sites(input, stacks, packets, (live, &sites), |(came, went)| came.saturating_sub(went))?;
    let allocated = packets.track(process, "allocated by site")?;
    let sites = top_sites(stacks, Metric::Allocated);
    write_sites(input, stacks, packets, (allocated, &sites), |(came, _)| came)
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
        packets.count(live, input.nanos(time), input.sample_bytes(bucket.live))?;
        packets.count(allocated, input.nanos(time), input.sample_bytes(sum))?;
    }
    Ok(())
}

/// The innermost sites with the most samples of a metric, the largest first.
fn top_sites(stacks: &Stacks<'_>, metric: Metric) -> Vec<u32> {
    let mut sums: HashMap<u32, u64> = HashMap::new();
    for stack in stacks.iter() {
        if let Some(&site) = stack.sites().first() {
            let sum = sums.entry(site).or_default();
            *sum = sum.saturating_add(metric.samples(&stack.counts));
        }
    }
    let mut sites: Vec<(u32, u64)> = sums.into_iter().filter(|&(_, sum)| sum > 0).collect();
    sites.sort_unstable_by_key(|&(site, sum)| (std::cmp::Reverse(sum), site));
    sites.into_iter().take(MOST_SITES).map(|(site, _)| site).collect()
}

/// A counter for each site, with a value made of what came and went so far.
fn write_sites(
    input: &ExportInput<'_>,
    stacks: &Stacks<'_>,
    packets: &mut Packets<'_>,
    (parent, sites): (Track, &[u32]),
    value: impl Fn((u64, u64)) -> u64,
) -> io::Result<()> {
    let aggregate = input.aggregate;
    let mut flows: HashMap<u32, SiteFlows> =
        sites.iter().map(|&site| (site, vec![(0, 0); aggregate.slices()])).collect();
    for stack in stacks.iter() {
        let Some(sums) = stack.sites().first().and_then(|site| flows.get_mut(site)) else {
            continue;
        };
        for (sum, flow) in sums.iter_mut().zip(stack.flows()) {
            sum.0 += u64::from(flow.came);
            sum.1 += u64::from(flow.went);
        }
    }
    for site in sites {
        let name = frame_name(&stacks.sites()[*site as usize]);
        let counter = packets.counter(parent, &name, Unit::Bytes)?;
        packets.count(counter, input.nanos(0), 0.0)?;
        let mut sum = (0, 0);
        for (index, flow) in (1..).zip(&flows[site]) {
            sum = (sum.0 + flow.0, sum.1 + flow.1);
            let time = aggregate.slice_width().saturating_mul(index).min(aggregate.duration());
            packets.count(counter, input.nanos(time), input.sample_bytes(value(sum)))?;
        }
    }
    Ok(())
}
