//! OpenTelemetry profiles, read by the published messages: the figures are those of the aggregate.
#![cfg(feature = "otlp")]

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use heaptap_export::{ExportInput, Format, options};
use heaptap_report::rows::By;
use heaptap_report::{Aggregator, Metric, StackShape};
use heaptap_trace::{EventSource as _, Mode, Reader};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::profiles::v1development::{
    Function, Link, Location, Mapping, Profile, ProfilesData, ProfilesDictionary, Stack,
};
use prost::Message;

/// The innermost site of a sample.
fn site(dictionary: &ProfilesDictionary, stack: i32) -> (String, String, u32) {
    let Stack { location_indices } = &dictionary.stack_table[stack as usize];
    let location = &dictionary.location_table[location_indices[0] as usize];
    let line = location.lines[0];
    let function = dictionary.function_table[line.function_index as usize];
    let string = |index: i32| dictionary.string_table[index as usize].clone();
    (string(function.name_strindex), string(function.filename_strindex), line.line as u32)
}

#[test]
fn the_published_messages_read_the_figures_of_the_aggregate() {
    for name in ["tiny.v2.ctf", "made-maps.v2.ctf"] {
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../trace/tests/data");
        assert_figures(&Path::new(data).join(name));
    }
}

fn assert_figures(path: &Path) {
    let mut reader = Reader::new(File::open(path).unwrap(), Mode::Strict).unwrap();
    let mut aggregator = Aggregator::new(reader.info(), options());
    while let Some((event, table)) = reader.next_located().unwrap() {
        aggregator.event(&event, table);
    }
    let aggregate = aggregator.finish();
    assert!(aggregate.samples() > 0);
    let input = ExportInput {
        aggregate: &aggregate,
        info: reader.info(),
        locations: reader.locations(),
        metric: Metric::Allocated,
        shape: StackShape::default(),
        sidecars: None,
    };
    let mut bytes = Vec::new();
    Format::named("otlp").unwrap().write(&input, &mut bytes).unwrap();
    let data = ProfilesData::decode(&bytes[..]).unwrap();
    // Nothing was skipped: all fields are the schema's.
    assert_eq!(ProfilesData::decode(&data.encode_to_vec()[..]).unwrap(), data);
    assert_eq!(data.encoded_len(), bytes.len());

    let dictionary = data.dictionary.unwrap();
    assert_eq!(dictionary.mapping_table[0], Mapping::default());
    assert_eq!(dictionary.location_table[0], Location::default());
    assert_eq!(dictionary.function_table[0], Function::default());
    assert_eq!(dictionary.link_table, [Link::default()]);
    assert_eq!((&*dictionary.string_table[0], dictionary.attribute_table.len()), ("", 1));
    assert_eq!(dictionary.stack_table[0], Stack::default());

    let mut profiles: BTreeMap<String, Profile> = BTreeMap::new();
    for of_resource in &data.resource_profiles {
        let attributes = &of_resource.resource.as_ref().unwrap().attributes;
        let pid = attributes.iter().find(|attribute| attribute.key == "process.pid").unwrap();
        let pid = pid.value.as_ref().unwrap().value.clone();
        assert_eq!(pid, Some(Value::IntValue(reader.info().pid as i64)));
        for profile in of_resource.scope_profiles.iter().flat_map(|scope| &scope.profiles) {
            let name = profile.sample_type.unwrap().type_strindex;
            assert_eq!(profile.time_unix_nano, reader.info().start_time * 1000);
            assert_eq!(profile.profile_id.len(), 16);
            profiles.insert(dictionary.string_table[name as usize].clone(), profile.clone());
        }
    }
    assert_eq!(profiles.len(), 5);
    for (name, metric) in [("alloc_space", Metric::Allocated), ("inuse_space", Metric::Live)] {
        let mut found: BTreeMap<_, i64> = BTreeMap::new();
        for sample in &profiles[name].samples {
            *found.entry(site(&dictionary, sample.stack_index)).or_default() += sample.values[0];
        }
        let mut expected: BTreeMap<_, i64> = BTreeMap::new();
        for row in aggregate.rows(reader.locations(), By::Location, metric) {
            let bytes = aggregate.estimate(metric, metric.of(&row.counts)).bytes.round();
            if bytes > 0.0 {
                let key = (row.site.name, row.site.file, row.site.line);
                *expected.entry(key).or_default() += bytes as i64;
            }
        }
        assert!(!expected.is_empty(), "{name}");
        assert_eq!(found, expected, "{name}");
    }
    let objects: i64 = profiles["alloc_objects"].samples.iter().map(|s| s.values[0]).sum();
    assert!(objects > 0);
}
