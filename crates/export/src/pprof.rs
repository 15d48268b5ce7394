//! The format of pprof: a `Profile` message of its `profile.proto`, uncompressed,
//! which pprof accepts.
//!
//! Protocol buffers that follow each other parse as one message with the fields
//! of both, so the profile is written in pieces: first each sample as a `Profile`
//! of its own, then everything else.

use std::collections::HashMap;
use std::io::{self, Write};

use heaptap_report::rows::{By, Site};
use heaptap_report::{Metric, Stack, Stacks};
use prost::Message;

use crate::pprof_proto::{Function, Line, Location, Profile, Sample, StringTable, ValueType};
use crate::{ExportInput, Format};

pub(crate) const FORMAT: Format = Format {
    name: "pprof",
    help: "For `go tool pprof`",
    is_binary: true,
    takes_sidecar: false,
    by: By::Location,
    write,
};

/// The values of a stack after its number of blocks. By default, pprof shows the
/// last one.
const SPACES: [(&str, Metric); 4] = [
    ("promoted_space", Metric::Promoted),
    ("peak_space", Metric::Peak),
    ("inuse_space", Metric::Live),
    ("alloc_space", Metric::Allocated),
];

fn write(input: &ExportInput<'_>, stacks: &Stacks<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut strings = StringTable::new();
    let mut value_type = |name: &str, unit: &str| ValueType {
        r#type: strings.number(name),
        unit: strings.number(unit),
    };
    let mut sample_type = vec![value_type("alloc_objects", "count")];
    sample_type.extend(SPACES.map(|(name, _)| value_type(name, "bytes")));
    let period_type = Some(value_type("space", "bytes"));
    let (location, function) = locations(stacks.sites(), &mut strings);
    for stack in stacks.iter() {
        let sample = vec![sample(input, &stack)];
        out.write_all(&Profile { sample, ..Profile::default() }.encode_to_vec())?;
    }
    let profile = Profile {
        sample_type,
        sample: Vec::new(),
        location,
        function,
        time_nanos: input.info.start_time.saturating_mul(1000) as i64,
        duration_nanos: input.aggregate.duration().saturating_mul(1000) as i64,
        period_type,
        period: input.aggregate.sampling_period().round() as i64,
        default_sample_type: strings.number("alloc_space"),
        string_table: strings.list,
    };
    out.write_all(&profile.encode_to_vec())
}

/// A location for each site, numbered from 1 in their order, and the functions
/// they are in.
pub(crate) fn locations(
    sites: &[Site],
    strings: &mut StringTable,
) -> (Vec<Location>, Vec<Function>) {
    let mut functions: HashMap<(&str, &str), u64> = HashMap::new();
    let (mut location, mut function) = (Vec::new(), Vec::new());
    for (index, site) in sites.iter().enumerate() {
        let function_id = *functions.entry((&site.name, &site.file)).or_insert_with(|| {
            let id = function.len() as u64 + 1;
            let name = strings.number(&site.name);
            let filename = strings.number(&site.file);
            function.push(Function { id, name, system_name: name, filename });
            id
        });
        let line = vec![Line { function_id, line: i64::from(site.line) }];
        location.push(Location { id: index as u64 + 1, line });
    }
    (location, function)
}

fn sample(input: &ExportInput<'_>, stack: &Stack<'_>) -> Sample {
    let mut value = vec![stack.counts.blocks.round() as i64];
    value.extend(SPACES.map(|(_, metric)| input.bytes(metric, &stack.counts).round() as i64));
    let location_id = stack.sites().iter().map(|&site| u64::from(site) + 1).collect();
    Sample { location_id, value }
}
