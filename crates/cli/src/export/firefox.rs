//! The processed profile format of the Firefox profiler.
//!
//! Allocation samples give its views of allocations and of retained memory: for
//! each call path one block that stays, for what is alive at the end, and one
//! that goes, for the rest. The live size over time is a counter.

use std::time::{Duration, UNIX_EPOCH};

use fxprof_processed_profile::{
    CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, Profile, SamplingInterval, Timestamp,
};
use heaptap_report::Metric;

use super::Exported;
use crate::json;

fn at(micros: u64) -> Timestamp {
    Timestamp::from_nanos_since_reference(micros.saturating_mul(1000))
}

pub(super) fn write(exported: &Exported<'_>) -> Vec<u8> {
    let start = UNIX_EPOCH + Duration::from_micros(exported.info.start_time);
    let aggregate = exported.aggregate;
    let timeline = aggregate.timeline();
    let interval = SamplingInterval::from_nanos(timeline.width().saturating_mul(1000));
    let mut profile = Profile::new(&exported.program(), start.into(), interval);
    let process = profile.add_process(&exported.program(), exported.info.pid as u32, at(0));
    let thread = profile.add_thread(process, exported.info.pid as u32, at(0), true);
    profile.set_thread_name(thread, "allocations");
    let end = at(aggregate.duration());
    let labels: Vec<_> = exported
        .stacks
        .sites
        .iter()
        .map(|site| match site.line {
            0 => profile.intern_string(&site.name),
            line => profile.intern_string(&format!("{} ({}:{line})", site.name, site.file)),
        })
        .collect();
    for (path, (sites, counts)) in exported.stacks.stacks.iter().enumerate() {
        let frames: Vec<FrameInfo> = sites
            .iter()
            .rev()
            .map(|&site| FrameInfo {
                frame: Frame::Label(labels[site as usize]),
                category_pair: CategoryHandle::OTHER.into(),
                flags: FrameFlags::empty(),
            })
            .collect();
        let stack = profile.intern_stack_frames(thread, frames.into_iter());
        let live = exported.bytes(Metric::Live, counts).round() as i64;
        let gone = exported.bytes(Metric::Allocated, counts).round() as i64 - live;
        // Addresses need only be different.
        let address = 16 * (path as u64 + 1);
        profile.add_sample(thread, at(0), stack, CpuDelta::ZERO, 1);
        if live > 0 {
            profile.add_allocation_sample(thread, at(0), stack, address, live);
        }
        if gone > 0 {
            profile.add_allocation_sample(thread, at(0), stack, address + 8, gone);
            profile.add_allocation_sample(thread, end, stack, address + 8, -gone);
        }
    }
    let counter = profile.add_counter(process, "malloc", "Memory", "Live size");
    let mut last = 0.0;
    let scale = aggregate.scale();
    for (place, bucket) in timeline.buckets().iter().enumerate() {
        let live = bucket.live as f64 * scale.word_bytes / scale.rate;
        let time = at(timeline.width().saturating_mul(place as u64 + 1));
        profile.add_counter_sample(counter, time, live - last, 1);
        last = live;
    }
    let mut text = Vec::new();
    json::put(&mut text, &profile);
    text.push(b'\n');
    text
}
