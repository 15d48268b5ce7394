//! OpenTelemetry's profiles: a `ProfilesData` message, with a profile for each metric.
//!
//! The signal is in development upstream (`opentelemetry.proto.profiles.v1development`), and each
//! release may break it: this is that of v1.10.0, behind the feature `otlp`.
//!
//! Protocol buffers that follow each other parse as one message with the fields of both, so that
//! the data are written in pieces: the dictionary, then each profile.

mod proto;

use std::collections::HashMap;
use std::io::{self, Write};

use heaptap_report::rows::{By, Site};
use heaptap_report::{Counts, Metric, Stacks};
use prost::Message;

use crate::pprof_proto::StringTable;
use crate::{ExportInput, Format};
use proto::{
    AnyValue, Empty, Function, InstrumentationScope, KeyValue, Line, Location, Mapping, Profile,
    ProfilesData, ProfilesDictionary, Resource, ResourceProfiles, Sample, ScopeProfiles, Stack,
    Value, ValueType,
};

pub(crate) const FORMAT: Format = Format {
    name: "otlp",
    help: "OpenTelemetry profiles, ProfilesData of opentelemetry-proto v1.10.0 (v1development: it may change)",
    is_binary: true,
    takes_sidecar: false,
    by: By::Location,
    write,
};

/// The profiles: names and units as pprof has them for Go.
const PROFILES: [(&str, &str, Option<Metric>); 5] = [
    ("alloc_space", "bytes", Some(Metric::Allocated)),
    ("inuse_space", "bytes", Some(Metric::Live)),
    ("peak_space", "bytes", Some(Metric::Peak)),
    ("promoted_space", "bytes", Some(Metric::Promoted)),
    ("alloc_objects", "count", None),
];

fn write(input: &ExportInput<'_>, stacks: &Stacks<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut strings = StringTable::new();
    let mut string = |text: &str| strings.number(text) as i32;
    let program = string(&input.program());
    let space = ValueType { type_strindex: string("space"), unit_strindex: string("bytes") };
    let types = PROFILES.map(|(name, unit, _)| ValueType {
        type_strindex: string(name),
        unit_strindex: string(unit),
    });
    // The first entry of each table stands for nothing.
    let (location_table, function_table) = locations(stacks.sites(), &mut string);
    let mut stack_table = vec![Stack::default()];
    stack_table.extend(stacks.iter().map(|stack| Stack {
        location_indices: stack.sites().iter().map(|&site| site as i32 + 1).collect(),
    }));
    let dictionary = Some(ProfilesDictionary {
        mapping_table: vec![Mapping::default(), Mapping { filename_strindex: program }],
        location_table,
        function_table,
        link_table: vec![Empty {}],
        string_table: strings.list,
        attribute_table: vec![Empty {}],
        stack_table,
    });
    let data = ProfilesData { resource_profiles: Vec::new(), dictionary };
    out.write_all(&data.encode_to_vec())?;
    for (number, ((_, _, metric), sample_type)) in (1..).zip(PROFILES.into_iter().zip(types)) {
        let profile = profile(input, stacks, metric, sample_type, space);
        let profile = Profile { profile_id: profile_id(input, number), ..profile };
        let data = ProfilesData {
            resource_profiles: vec![resource_profiles(input, profile)],
            dictionary: None,
        };
        out.write_all(&data.encode_to_vec())?;
    }
    Ok(())
}

/// A location for each site, after that of nothing, and the functions they are in.
fn locations(
    sites: &[Site],
    string: &mut impl FnMut(&str) -> i32,
) -> (Vec<Location>, Vec<Function>) {
    let mut functions: HashMap<(&str, &str), i32> = HashMap::new();
    let (mut location_table, mut function_table) =
        (vec![Location::default()], vec![Function::default()]);
    for site in sites {
        let function_index = *functions.entry((&site.name, &site.file)).or_insert_with(|| {
            function_table.push(Function {
                name_strindex: string(&site.name),
                filename_strindex: string(&site.file),
            });
            function_table.len() as i32 - 1
        });
        let (line, column) = (i64::from(site.line), i64::from(site.chars.0));
        let lines = vec![Line { function_index, line, column }];
        location_table.push(Location { mapping_index: 1, lines });
    }
    (location_table, function_table)
}

fn profile(
    input: &ExportInput<'_>,
    stacks: &Stacks<'_>,
    metric: Option<Metric>,
    sample_type: ValueType,
    period_type: ValueType,
) -> Profile {
    let value = |counts: &Counts| match metric {
        Some(metric) => input.bytes(metric, counts).round() as i64,
        None => counts.blocks.round() as i64,
    };
    let samples = (1..).zip(stacks.iter()).filter_map(|(stack_index, stack)| {
        let value = value(&stack.counts);
        (value != 0).then(|| Sample { stack_index, values: vec![value] })
    });
    Profile {
        sample_type: Some(sample_type),
        samples: samples.collect(),
        time_unix_nano: input.nanos(0),
        duration_nano: input.aggregate.duration().saturating_mul(1000),
        period_type: Some(period_type),
        period: input.aggregate.sampling_period().round() as i64,
        profile_id: Vec::new(),
    }
}

/// Sixteen bytes that no other profile has: start, process, number.
fn profile_id(input: &ExportInput<'_>, number: u8) -> Vec<u8> {
    let process = input.info.pid << 8 | u64::from(number);
    [input.info.start_time.to_be_bytes(), process.to_be_bytes()].concat()
}

fn resource_profiles(input: &ExportInput<'_>, profile: Profile) -> ResourceProfiles {
    let attribute = |key: &str, value: Value| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
    };
    let host = String::from_utf8_lossy(&input.info.host).into_owned();
    let program = input.program();
    let service = program.rsplit('/').next().unwrap_or(&program).to_owned();
    let attributes = vec![
        attribute("service.name", Value::Text(service)),
        attribute("host.name", Value::Text(host)),
        attribute("process.pid", Value::Integer(input.info.pid as i64)),
        attribute("process.executable.path", Value::Text(program)),
    ];
    let scope = InstrumentationScope {
        name: "heaptap".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    ResourceProfiles {
        resource: Some(Resource { attributes }),
        scope_profiles: vec![ScopeProfiles { scope: Some(scope), profiles: vec![profile] }],
    }
}
