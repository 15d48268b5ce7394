//! The heap profile: for each stack, what it allocated and what of that was freed, at the end of
//! the trace.

use std::collections::HashMap;
use std::io;

use heaptap_report::{Metric, Stack, Stacks};

use super::packets::Packets;
use super::proto::{
    Callstack, Frame, HeapSample, InternedData, InternedString, Mapping, ProcessHeapSamples,
    ProfilePacket,
};
use crate::ExportInput;

/// Entries of a packet.
const MOST_ENTRIES: usize = 1 << 12;

/// The number of the one mapping, of its path, and of its build id, which is empty.
const MAPPING: u64 = 1;

pub(super) fn write(
    input: &ExportInput<'_>,
    stacks: &Stacks<'_>,
    packets: &mut Packets<'_>,
) -> io::Result<()> {
    intern_frames(input, stacks, packets)?;
    let mut callstacks = Vec::new();
    for (iid, stack) in (1..).zip(stacks.iter()) {
        // The outermost first.
        let frame_ids = stack.sites().iter().rev().map(|&site| u64::from(site) + 1).collect();
        callstacks.push(Callstack { iid, frame_ids });
        if callstacks.len() == MOST_ENTRIES {
            let callstacks = std::mem::take(&mut callstacks);
            packets.intern(InternedData { callstacks, ..InternedData::default() })?;
        }
    }
    packets.intern(InternedData { callstacks, ..InternedData::default() })?;
    let end = input.nanos(input.aggregate.duration());
    let mut stacks = (1..).zip(stacks.iter()).peekable();
    for index in 0.. {
        let part = stacks.by_ref().take(MOST_ENTRIES);
        let dump = ProcessHeapSamples {
            pid: input.info.pid,
            samples: part.map(|(id, stack)| sample(input, id, &stack)).collect(),
            timestamp: end,
            heap_name: "heaptap".to_owned(),
            sampling_interval_bytes: input.aggregate.sampling_period().round() as u64,
        };
        let continued = stacks.peek().is_some();
        packets.profile(end, ProfilePacket { process_dumps: vec![dump], continued, index })?;
        if !continued {
            break;
        }
    }
    Ok(())
}

/// Each site is a frame. What an address would be is its number: all that tools need of it is that
/// it differs.
fn intern_frames(
    input: &ExportInput<'_>,
    stacks: &Stacks<'_>,
    packets: &mut Packets<'_>,
) -> io::Result<()> {
    let string = |iid, text: &str| InternedString { iid, str: text.as_bytes().to_vec() };
    packets.intern(InternedData {
        build_ids: vec![string(MAPPING, "")],
        mapping_paths: vec![string(MAPPING, &input.program())],
        mappings: vec![Mapping { iid: MAPPING, build_id: MAPPING, path_string_ids: vec![MAPPING] }],
        ..InternedData::default()
    })?;
    let mut files: HashMap<&str, u64> = HashMap::new();
    let mut first = 1;
    for sites in stacks.sites().chunks(MOST_ENTRIES) {
        let mut data = InternedData::default();
        for (iid, site) in (first..).zip(sites) {
            let next = files.len() as u64 + 1;
            let file = *files.entry(&site.file).or_insert(next);
            if file == next {
                data.source_paths.push(string(file, &site.file));
            }
            data.function_names.push(string(iid, &site.name));
            data.frames.push(Frame {
                iid,
                function_name_id: iid,
                mapping_id: MAPPING,
                rel_pc: iid,
                source_path_iid: (!site.file.is_empty()).then_some(file),
                line_number: (site.line > 0).then_some(site.line),
            });
        }
        first += sites.len() as u64;
        packets.intern(data)?;
    }
    Ok(())
}

fn sample(input: &ExportInput<'_>, callstack_id: u64, stack: &Stack<'_>) -> HeapSample {
    let bytes = |metric| input.bytes(metric, &stack.counts).round() as u64;
    let (allocated, live) = (bytes(Metric::Allocated), bytes(Metric::Live));
    let freed = allocated.saturating_sub(live);
    let blocks = stack.counts.blocks.round();
    // How many blocks are dead is not known apart from their bytes.
    let dead = blocks * freed as f64 / (allocated as f64).max(1.0);
    HeapSample {
        callstack_id,
        self_allocated: allocated,
        self_freed: freed,
        alloc_count: blocks as u64,
        free_count: dead.round() as u64,
    }
}
