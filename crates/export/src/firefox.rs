//! The processed profile format of the Firefox Profiler.
//!
//! Allocation samples feed its views of allocated and of retained memory, for any
//! selected range of time. A sample is not a single block: it stands for what a
//! stack allocates in one slice of time and frees in another, first in, first
//! out. The live size over time is a counter, finer than the slices.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use fxprof_processed_profile::{
    CategoryHandle, CpuDelta, Frame, FrameFlags, FrameHandle, FrameInfo, ProcessHandle, Profile,
    SamplingInterval, StackHandle, ThreadHandle, Timestamp,
};
use heaptap_report::rows::{By, Site};
use heaptap_report::{Aggregate, Flow, Stacks};

use crate::{ExportInput, Format, frame_name, json};

pub(crate) const FORMAT: Format = Format {
    name: "firefox",
    help: "For profiler.firefox.com",
    is_binary: false,
    takes_sidecar: false,
    by: By::Location,
    write,
};

/// An allocation sample: an allocation, or its end.
struct AllocationSample {
    slice: u32,
    stack: u32,
    /// The same for an allocation and its end, different from all others.
    address: u64,
    /// Negative at the end.
    samples: i64,
}

/// The profiler slows down with the number of allocation samples. This many take
/// 40 MB here.
const MOST_ALLOCATION_SAMPLES: usize = 1_000_000;

fn write(input: &ExportInput<'_>, stacks: &Stacks<'_>, out: &mut dyn Write) -> io::Result<()> {
    let start = UNIX_EPOCH + Duration::from_micros(input.info.start_time);
    let aggregate = input.aggregate;
    let width = aggregate.timeline().width();
    let interval = SamplingInterval::from_nanos(width.saturating_mul(1000));
    let mut profile = Profile::new(&input.program(), start.into(), interval);
    let process = profile.add_process(&input.program(), input.info.pid as u32, at(0));
    let thread = profile.add_thread(process, input.info.pid as u32, at(0), true);
    profile.set_thread_name(thread, "allocations");
    add_allocations(&mut profile, thread, aggregate, stacks);
    add_live_size(&mut profile, process, aggregate);
    json::write(out, &profile)
}

fn at(micros: u64) -> Timestamp {
    Timestamp::from_nanos_since_reference(micros.saturating_mul(1000))
}

fn add_allocations(
    profile: &mut Profile,
    thread: ThreadHandle,
    aggregate: &Aggregate,
    stacks: &Stacks<'_>,
) {
    let handles = intern_stacks(stacks, profile, thread);
    let end = aggregate.duration();
    // The profiler shows the range of time of these samples.
    profile.add_sample(thread, at(0), None, CpuDelta::ZERO, 1);
    profile.add_sample(thread, at(end), None, CpuDelta::ZERO, 1);
    let bytes = aggregate.flow_bytes();
    let (joined, allocations) = allocation_samples(stacks, aggregate.slices());
    let width = aggregate.slice_width() * joined as u64;
    for AllocationSample { slice, stack, address, samples } in allocations {
        // Allocations are in the middle of their slice, ends at its end.
        let offset = if samples > 0 { width / 2 } else { width - 1 };
        let time = (u64::from(slice) * width + offset).min(end);
        let size = (samples as f64 * bytes).round() as i64;
        profile.add_allocation_sample(thread, at(time), handles[stack as usize], address, size);
    }
}

fn add_live_size(profile: &mut Profile, process: ProcessHandle, aggregate: &Aggregate) {
    let counter = profile.add_counter(process, "malloc", "Memory", "Live size");
    let (bytes, timeline) = (aggregate.scale().unit_bytes(), aggregate.timeline());
    let mut last = 0.0;
    for (index, bucket) in timeline.buckets().iter().enumerate() {
        let live = bucket.live.count as f64 * bytes;
        let bucket_end = timeline.width().saturating_mul(index as u64 + 1);
        let time = bucket_end.min(aggregate.duration());
        profile.add_counter_sample(counter, at(time), live - last, 1);
        last = live;
    }
}

/// The handle of each stack. The profile holds stacks as a tree, as `stacks` does, so
/// that each node is looked up once.
fn intern_stacks(
    stacks: &Stacks<'_>,
    profile: &mut Profile,
    thread: ThreadHandle,
) -> Vec<Option<StackHandle>> {
    let mut frame = |site: &Site| {
        let info = FrameInfo {
            frame: Frame::Label(profile.intern_string(&frame_name(site))),
            category_pair: CategoryHandle::OTHER.into(),
            flags: FrameFlags::empty(),
        };
        profile.intern_frame(thread, info)
    };
    let frames: Vec<FrameHandle> = stacks.sites().iter().map(&mut frame).collect();
    let mut nodes = vec![None];
    for &(parent, site) in stacks.nodes() {
        let parent = nodes[parent as usize];
        nodes.push(Some(profile.intern_stack(thread, parent, frames[site as usize])));
    }
    stacks.iter().map(|stack| nodes[stack.node() as usize]).collect()
}

/// The allocation samples of all stacks in the order of time, and the number of
/// slices that were joined into one so that there are not too many of them.
fn allocation_samples(stacks: &Stacks<'_>, slices: usize) -> (usize, Vec<AllocationSample>) {
    let mut joined = 1;
    loop {
        let mut all = Vec::new();
        let fits = stacks.iter().enumerate().all(|(number, stack)| {
            first_in_first_out(number as u32, &stack.flows(), joined, &mut all);
            all.len() <= MOST_ALLOCATION_SAMPLES || joined >= slices
        });
        if fits {
            all.sort_by_key(|sample| (sample.slice, sample.samples < 0));
            return (joined, all);
        }
        joined *= 2;
    }
}

/// Adds the allocation samples of one stack, with `joined` slices taken as one.
fn first_in_first_out(stack: u32, flows: &[Flow], joined: usize, all: &mut Vec<AllocationSample>) {
    let mut waiting: VecDeque<(usize, u64)> = VecDeque::new();
    let mut number = 0;
    let mut add = |from: usize, to: Option<usize>, samples: u64| {
        let address = 16 * ((u64::from(stack) << 16) + number + 1);
        number += 1;
        let samples = samples as i64;
        all.push(AllocationSample { slice: from as u32, stack, address, samples });
        all.extend(to.map(|to| AllocationSample {
            slice: to as u32,
            stack,
            address,
            samples: -samples,
        }));
    };
    for (slice, flows) in flows.chunks(joined).enumerate() {
        let came: u64 = flows.iter().map(|flow| u64::from(flow.came)).sum();
        if came > 0 {
            waiting.push_back((slice, came));
        }
        let mut went: u64 = flows.iter().map(|flow| u64::from(flow.went)).sum();
        while went > 0
            && let Some((from, samples)) = waiting.front_mut()
        {
            let part = went.min(*samples);
            add(*from, Some(slice), part);
            went -= part;
            *samples -= part;
            if *samples == 0 {
                waiting.pop_front();
            }
        }
    }
    for (from, samples) in waiting {
        add(from, None, samples);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_first_goes_first() {
        let flow = |came, went| Flow { came, went };
        let flows = [flow(5, 0), flow(3, 6), flow(0, 0), flow(4, 1)];
        let samples_of = |joined| {
            let mut all = Vec::new();
            first_in_first_out(7, &flows, joined, &mut all);
            all.iter().map(|sample| (sample.slice, sample.samples)).collect::<Vec<_>>()
        };
        let whole = [(0, 5), (1, -5), (1, 1), (1, -1), (1, 1), (3, -1), (1, 1), (3, 4)];
        assert_eq!(samples_of(1), whole);
        assert_eq!(samples_of(2), [(0, 6), (0, -6), (0, 1), (1, -1), (0, 1), (1, 4)]);
    }
}
