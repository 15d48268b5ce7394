//! pprof of what is retained: a sample for each node of the joined dominator tree. Flat is what
//! the blocks of a node take, cumulative what they retain.

use std::collections::HashMap;
use std::io::{self, Write};

use heaptap_graph::RetainedId;
use heaptap_heap::MetaKey;
use prost::Message;

use super::stacks::{MOST_STACKS, RetainedStacks};
use super::{SnapshotFormat, SnapshotInput};
use crate::pprof_proto::{Function, Line, Location, Profile, Sample, StringTable, ValueType};

pub(super) const FORMAT: SnapshotFormat = SnapshotFormat {
    name: "pprof",
    help: "For `go tool pprof`",
    is_binary: true,
    has_fields: false,
    nodes: MOST_STACKS,
    write,
};

/// The values of a sample. By default, pprof shows the last one.
const VALUES: [(&str, &str); 3] =
    [("blocks", "count"), ("outside_space", "bytes"), ("retained_space", "bytes")];

fn write(input: &SnapshotInput<'_>, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let stacks = RetainedStacks::new(input);
    let mut frames = Frames { strings: StringTable::new(), ids: HashMap::new() };
    let sample_type = VALUES
        .map(|(name, unit)| ValueType {
            r#type: frames.strings.number(name),
            unit: frames.strings.number(unit),
        })
        .to_vec();
    for (id, node) in stacks.nodes() {
        let location_id =
            stacks.path(id).into_iter().rev().map(|above| frames.id(&stacks, above)).collect();
        let value = [node.blocks, stacks.outside(id), node.bytes];
        let value = value.map(|value| i64::try_from(value).unwrap_or(i64::MAX)).to_vec();
        let sample = vec![Sample { location_id, value }];
        out.write_all(&Profile { sample, ..Profile::default() }.encode_to_vec())?;
    }
    let time = input.graph.facts().number(MetaKey::TIME).unwrap_or_default();
    let (location, function) = frames.tables();
    let profile = Profile {
        sample_type,
        location,
        function,
        time_nanos: i64::try_from(time).unwrap_or_default(),
        default_sample_type: frames.strings.number(VALUES[2].0),
        string_table: frames.strings.list,
        ..Profile::default()
    };
    out.write_all(&profile.encode_to_vec())?;
    Ok(stacks.notes())
}

/// A function and a location for each name, both with the same number.
struct Frames {
    strings: StringTable,
    /// From the number of a name to that of its function.
    ids: HashMap<i64, u64>,
}

impl Frames {
    fn id(&mut self, stacks: &RetainedStacks<'_>, node: RetainedId) -> u64 {
        let name = self.strings.number(&stacks.name(node));
        let next = self.ids.len() as u64 + 1;
        *self.ids.entry(name).or_insert(next)
    }

    fn tables(&self) -> (Vec<Location>, Vec<Function>) {
        let mut names: Vec<(u64, i64)> = self.ids.iter().map(|(name, id)| (*id, *name)).collect();
        names.sort_unstable();
        let location =
            |&(id, _): &(u64, i64)| Location { id, line: vec![Line { function_id: id, line: 0 }] };
        let function =
            |&(id, name): &(u64, i64)| Function { id, name, system_name: name, filename: 0 };
        (names.iter().map(location).collect(), names.iter().map(function).collect())
    }
}
