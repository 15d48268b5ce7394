//! The processed profile format of the Firefox profiler.
//!
//! Allocation samples give its views of allocations and of retained memory, for
//! any range of time that is selected there. They are not single blocks: what a
//! stack allocates in one slice of time and loses in another is one block.
//! What comes first is taken to go first. The live size over time is a counter,
//! finer than the slices.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use fxprof_processed_profile::{
    CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, Profile, SamplingInterval, StackHandle,
    ThreadHandle, Timestamp,
};
use heaptap_report::rows::By;
use heaptap_report::{Flow, Stack, Stacks};

use super::Exported;
use crate::text::json;

/// An allocation, or the end of one.
struct Change {
    slice: u32,
    stack: u32,
    /// The same for an allocation and its end.
    block: u64,
    /// Negative at the end.
    samples: i64,
}

/// The profiler slows down with the number of changes: 40 MB of them.
const MOST_CHANGES: usize = 1_000_000;

fn at(micros: u64) -> Timestamp {
    Timestamp::from_nanos_since_reference(micros.saturating_mul(1000))
}

pub(super) fn write(exported: &Exported<'_>, out: &mut dyn Write) -> io::Result<()> {
    let start = UNIX_EPOCH + Duration::from_micros(exported.info.start_time);
    let aggregate = exported.aggregate;
    let timeline = aggregate.timeline();
    let interval = SamplingInterval::from_nanos(timeline.width().saturating_mul(1000));
    let mut profile = Profile::new(&exported.program(), start.into(), interval);
    let process = profile.add_process(&exported.program(), exported.info.pid as u32, at(0));
    let thread = profile.add_thread(process, exported.info.pid as u32, at(0), true);
    profile.set_thread_name(thread, "allocations");
    let stacks = exported.stacks(By::Location);
    let handles = handles(&stacks, &mut profile, thread);
    let end = aggregate.duration();
    // The range of time that is shown is that of these samples.
    profile.add_sample(thread, at(0), None, CpuDelta::ZERO, 1);
    profile.add_sample(thread, at(end), None, CpuDelta::ZERO, 1);
    let bytes = aggregate.scale().word_bytes / aggregate.scale().rate;
    let (joined, changes) = changes(&stacks, aggregate.slices());
    let width = aggregate.slice_width() * joined as u64;
    for Change { slice, stack, block, samples } in changes {
        // In the middle of what is coming, and at the end of what is going.
        let offset = if samples > 0 { width / 2 } else { width - 1 };
        let time = (u64::from(slice) * width + offset).min(end);
        let size = (samples as f64 * bytes).round() as i64;
        profile.add_allocation_sample(thread, at(time), handles[stack as usize], block, size);
    }
    let counter = profile.add_counter(process, "malloc", "Memory", "Live size");
    let mut last = 0.0;
    for (place, bucket) in timeline.buckets().iter().enumerate() {
        let live = bucket.live as f64 * bytes;
        let time = timeline.width().saturating_mul(place as u64 + 1).min(end);
        profile.add_counter_sample(counter, at(time), live - last, 1);
        last = live;
    }
    json::write(out, &profile)
}

fn handles(
    stacks: &Stacks<'_>,
    profile: &mut Profile,
    thread: ThreadHandle,
) -> Vec<Option<StackHandle>> {
    let labels: Vec<_> = stacks
        .sites()
        .iter()
        .map(|site| match site.line {
            0 => profile.intern_string(&site.name),
            line => profile.intern_string(&format!("{} ({}:{line})", site.name, site.file)),
        })
        .collect();
    let intern = |stack: Stack<'_>| {
        let frames = stack.sites.iter().rev().map(|&site| FrameInfo {
            frame: Frame::Label(labels[site as usize]),
            category_pair: CategoryHandle::OTHER.into(),
            flags: FrameFlags::empty(),
        });
        let frames: Vec<FrameInfo> = frames.collect();
        profile.intern_stack_frames(thread, frames.into_iter())
    };
    stacks.iter().map(intern).collect()
}

/// What came and went, in the order of time, and how many slices became one for
/// that: none if there are not too many changes.
fn changes(stacks: &Stacks<'_>, slices: usize) -> (usize, Vec<Change>) {
    let mut joined = 1;
    loop {
        let mut changes = Vec::new();
        let fits = stacks.iter().enumerate().all(|(number, stack)| {
            first_in_first_out(number as u32, &stack.flows(), joined, &mut changes);
            changes.len() <= MOST_CHANGES || joined >= slices
        });
        if fits {
            changes.sort_by_key(|change| (change.slice, change.samples < 0));
            return (joined, changes);
        }
        joined *= 2;
    }
}

/// The blocks of one stack, of slices of which so many are one.
fn first_in_first_out(stack: u32, flows: &[Flow], joined: usize, changes: &mut Vec<Change>) {
    let mut waiting: VecDeque<(usize, u64)> = VecDeque::new();
    let mut number = 0;
    let mut block = |from: usize, to: Option<usize>, samples: u64| {
        // Addresses need only be different.
        let block = 16 * ((u64::from(stack) << 16) + number + 1);
        number += 1;
        let samples = samples as i64;
        changes.push(Change { slice: from as u32, stack, block, samples });
        changes.extend(to.map(|to| Change { slice: to as u32, stack, block, samples: -samples }));
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
            block(*from, Some(slice), part);
            went -= part;
            *samples -= part;
            if *samples == 0 {
                waiting.pop_front();
            }
        }
    }
    for (from, samples) in waiting {
        block(from, None, samples);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_first_goes_first() {
        let flow = |came, went| Flow { came, went };
        let flows = [flow(5, 0), flow(3, 6), flow(0, 0), flow(4, 1)];
        let told = |joined| {
            let mut changes = Vec::new();
            first_in_first_out(7, &flows, joined, &mut changes);
            changes.iter().map(|change| (change.slice, change.samples)).collect::<Vec<_>>()
        };
        let whole = [(0, 5), (1, -5), (1, 1), (1, -1), (1, 1), (3, -1), (1, 1), (3, 4)];
        assert_eq!(told(1), whole);
        assert_eq!(told(2), [(0, 6), (0, -6), (0, 1), (1, -1), (0, 1), (1, 4)]);
    }
}
