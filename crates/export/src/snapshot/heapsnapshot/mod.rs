//! The `.heapsnapshot` of Chrome's developer tools: JSON with a table of nodes and a table of edges.
//!
//! The tables are those that V8 writes (`src/profiler/heap-snapshot-generator.cc`, V8 12): a row of
//! six numbers for a node, of three for an edge. Chrome reads them into arrays of 32-bit numbers.
//!
//! - `nodes`: the nodes of a whole snapshot, or of one in which alike blocks are joined.
//! - `table`: how they are written; `string`: the numbers of strings.
//!
//! Node 0 is Chrome's root, node 1 its "(GC roots)", which are the holders' program. Holders are
//! synthetic nodes. What custom blocks have outside the heap are native nodes.

mod nodes;
mod string;
mod table;

use std::io::{self, Write};

use super::{SnapshotFormat, SnapshotInput};
use nodes::{JoinedNodes, NodeSource, WholeNodes};
use table::write_tables;

pub(super) const FORMAT: SnapshotFormat = SnapshotFormat {
    name: "heapsnapshot",
    help: "Of a heap snapshot: for the Memory panel of Chrome's DevTools, and memlab",
    is_binary: false,
    has_fields: true,
    // About 35 bytes each; DevTools holds the file in memory.
    nodes: 10_000_000,
    write,
};

fn write(input: &SnapshotInput<'_>, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let whole = input.tree.len();
    let mut notes = input.mapped_note();
    if whole <= input.nodes {
        notes.extend(write_source(&WholeNodes::new(input), out)?);
        return Ok(notes);
    }
    let source = JoinedNodes::new(input);
    notes.extend(write_source(&source, out)?);
    notes.insert(
        0,
        format!(
            "{whole} nodes are more than {}: blocks that are alike and held alike are joined into \
             {} nodes, and an edge leads from what dominates to what is dominated; --nodes sets \
             another limit",
            input.nodes,
            source.len()
        ),
    );
    Ok(notes)
}

fn write_source(source: &dyn NodeSource, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let lost = write_tables(source, out)?;
    let note =
        "bytes are left out: a block or what it has outside the heap is too big for DevTools";
    Ok((lost > 0).then(|| format!("{lost} {note}")).into_iter().collect())
}
