//! The heap profiles that Go's `/debug/pprof/heap` and `/debug/pprof/allocs` give, of any
//! program: what `go tool pprof` and collectors of such profiles ask a running program for.
//!
//! Both have the same four values of each stack and differ in which one is shown first. Asked
//! for a number of seconds, a program answers with what changed in them. Stacks of two moments
//! are told to be the same by a hash of their sites: a profile of the first moment takes 48
//! bytes for each stack, however deep it is.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write};

use heaptap_report::rows::{By, Site};
use heaptap_report::{BlockTable, Metric, StackShape, Stacks};
use prost::Message as _;

use crate::ExportInput;
use crate::pprof::locations;
use crate::pprof_proto::{Profile, Sample, StringTable, ValueType};

/// Names and units of the values, in Go's order.
const VALUES: [(&str, &str); 4] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
];

/// The most frames of a stack; the middle of a longer one is left out. Cycles are not folded:
/// the name of a fold changes when a recursion gets deeper, and the stack with it.
const SHAPE: StackShape = StackShape { fold: false, frames: Some(128) };

/// Which profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapProfile {
    /// `heap`: what is alive comes first.
    Heap,
    /// `allocs`: what was allocated.
    Allocs,
}

impl HeapProfile {
    fn first_value(self) -> &'static str {
        match self {
            HeapProfile::Heap => "inuse_space",
            HeapProfile::Allocs => "alloc_space",
        }
    }
}

/// The values of each stack at a moment.
pub struct HeapValues {
    hasher: [RandomState; 2],
    of_stacks: HashMap<StackKey, [i64; 4]>,
    /// Microseconds from the start of the trace.
    time: u64,
}

/// 128 bits of a hash. The keys of the hash are random, so that no program can choose names
/// that collide.
type StackKey = [u64; 2];

impl HeapValues {
    /// Those of a trace so far.
    pub fn of(input: &ExportInput<'_>, blocks: &BlockTable) -> HeapValues {
        let hasher = [RandomState::new(), RandomState::new()];
        let mut of_stacks = HashMap::new();
        let stacks = input.aggregate.stacks(input.locations, By::Location, SHAPE);
        let keys = SiteKeys::new(&hasher, stacks.sites());
        each_stack(input, blocks, &stacks, |sites, values| {
            of_stacks.insert(keys.of_stack(sites), values);
        });
        HeapValues { hasher, of_stacks, time: input.aggregate.duration() }
    }
}

/// Writes a profile of a trace so far; with `since`, what changed since then.
pub fn write_heap_profile(
    kind: HeapProfile,
    input: &ExportInput<'_>,
    blocks: &BlockTable,
    since: Option<&HeapValues>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let stacks = input.aggregate.stacks(input.locations, By::Location, SHAPE);
    let keys = since.map(|since| SiteKeys::new(&since.hasher, stacks.sites()));
    let mut written = Ok(());
    each_stack(input, blocks, &stacks, |sites, mut value| {
        if let (Some(since), Some(keys)) = (since, &keys)
            && let Some(before) = since.of_stacks.get(&keys.of_stack(sites))
        {
            value.iter_mut().zip(before).for_each(|(value, before)| *value -= before);
        }
        if written.is_ok() && value != [0; 4] {
            let location_id = sites.iter().map(|&site| u64::from(site) + 1).collect();
            let sample = vec![Sample { location_id, value: value.to_vec() }];
            written = out.write_all(&Profile { sample, ..Profile::default() }.encode_to_vec());
        }
    });
    written?;
    let mut strings = StringTable::new();
    let mut value_type = |(name, unit): (&str, &str)| ValueType {
        r#type: strings.number(name),
        unit: strings.number(unit),
    };
    let (sample_type, period_type) =
        (VALUES.map(&mut value_type).to_vec(), Some(value_type(("space", "bytes"))));
    let (location, function) = locations(stacks.sites(), &mut strings);
    let end = input.aggregate.duration();
    let begin = since.map_or(end, |since| since.time);
    let nanoseconds = |us: u64| us.saturating_mul(1000) as i64;
    let profile = Profile {
        sample_type,
        sample: Vec::new(),
        location,
        function,
        time_nanos: nanoseconds(input.info.start_time.saturating_add(begin)),
        duration_nanos: nanoseconds(end.saturating_sub(begin)),
        period_type,
        period: input.aggregate.sampling_period().round() as i64,
        default_sample_type: strings.number(kind.first_value()),
        string_table: strings.list,
    };
    out.write_all(&profile.encode_to_vec())
}

/// Passes the sites of each stack, the innermost first, and its values.
fn each_stack(
    input: &ExportInput<'_>,
    blocks: &BlockTable,
    stacks: &Stacks<'_>,
    mut take: impl FnMut(&[u32], [i64; 4]),
) {
    let live_blocks = blocks.live_blocks(input.aggregate);
    for stack in stacks.iter() {
        let bytes = |metric| input.bytes(metric, &stack.counts).round() as i64;
        let values = [
            stack.counts.blocks.round() as i64,
            bytes(Metric::Allocated),
            stack.sum(&live_blocks).round() as i64,
            bytes(Metric::Live),
        ];
        take(&stack.sites(), values);
    }
}

/// A hash of each site, from which those of stacks are made.
struct SiteKeys<'a> {
    hasher: &'a [RandomState; 2],
    of_sites: Vec<StackKey>,
}

impl<'a> SiteKeys<'a> {
    fn new(hasher: &'a [RandomState; 2], sites: &[Site]) -> Self {
        let key = |site: &Site| {
            let parts = (&site.name, &site.file, site.line, site.chars);
            [0, 1].map(|half: usize| hasher[half].hash_one(parts))
        };
        SiteKeys { hasher, of_sites: sites.iter().map(key).collect() }
    }

    fn of_stack(&self, sites: &[u32]) -> StackKey {
        let half = |half: usize| {
            let keys: Vec<u64> =
                sites.iter().map(|&site| self.of_sites[site as usize][half]).collect();
            self.hasher[half].hash_one(keys)
        };
        [half(0), half(1)]
    }
}
