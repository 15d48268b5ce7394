//! Folded stacks of what is retained: one line for each node of the joined dominator tree.

use std::io::{self, Write};

use super::stacks::{MOST_STACKS, RetainedStacks};
use super::{SnapshotFormat, SnapshotInput};

pub(super) const FORMAT: SnapshotFormat = SnapshotFormat {
    name: "folded",
    help: "One line for each path of holders, with bytes",
    is_binary: false,
    has_fields: false,
    nodes: MOST_STACKS,
    write,
};

fn write(input: &SnapshotInput<'_>, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let stacks = RetainedStacks::new(input);
    let mut line = Vec::new();
    for (id, node) in stacks.nodes().filter(|(_, node)| node.blocks > 0) {
        line.clear();
        for above in stacks.path(id) {
            if !line.is_empty() {
                line.push(b';');
            }
            // Names are escaped but for what separates frames.
            let name = stacks.name(above).replace(';', "\\x3b");
            line.extend_from_slice(name.as_bytes());
        }
        writeln!(line, " {}", node.bytes)?;
        out.write_all(&line)?;
    }
    Ok(stacks.notes())
}
