//! Writes the tables of nodes, edges and strings.
//!
//! Edges are enumerated three times, to count all of them, to count those of each node, and to
//! write them: so they need no memory.

use std::io::{self, Write};
use std::ops::Range;

use super::nodes::{EdgeKind, NodeKind, NodeSource};
use super::string::{self, STRINGS};
use crate::json;

/// The numbers of a node.
const NODE_FIELDS: u64 = 6;
/// The most bytes in a number of a table.
const MOST_BYTES: u64 = u32::MAX as u64;
/// Bytes beyond [`MOST_BYTES`] become further nodes, at most this many for a node.
const MOST_FURTHER: u64 = 16;

/// Chrome's root comes before the nodes of the source.
const ROOT_NODES: u64 = 1;

const META: &str = concat!(
    r#"{"node_fields":["type","name","id","self_size","edge_count","detachedness"],"#,
    r#""node_types":[["hidden","array","string","object","code","closure","regexp","number","#,
    r#""native","synthetic","concatenated string","sliced string","symbol","bigint","#,
    r#""object shape"],"string","number","number","number","number"],"#,
    r#""edge_fields":["type","name_or_index","to_node"],"#,
    r#""edge_types":[["context","element","property","internal","hidden","shortcut","weak"],"#,
    r#""string_or_number","node"],"#,
    r#""trace_function_info_fields":["function_id","name","script_name","script_id","line","#,
    r#""column"],"trace_node_fields":["id","function_info_index","count","size","children"],"#,
    r#""sample_fields":["timestamp_us","last_assigned_id"],"#,
    r#""location_fields":["object_index","script_id","line","column"]}"#
);

/// Indexes of the types in [`META`].
fn node_type(kind: NodeKind) -> u64 {
    match kind {
        NodeKind::Block => 3,
        NodeKind::Outside => 8,
        NodeKind::Holder => 9,
    }
}

/// Type and name or index.
fn edge_columns(kind: EdgeKind) -> (u64, u64) {
    match kind {
        EdgeKind::Element(index) => (1, index),
        EdgeKind::Property(name) => (2, name),
        EdgeKind::Internal(name) => (3, name),
        EdgeKind::Weak(name) => (6, name),
    }
}

/// Bytes that a node cannot have in its own row, and those outside the heap.
struct FurtherNode {
    kind: NodeKind,
    name: u64,
    bytes: u64,
}

/// Further nodes come after those of the source.
#[derive(Default)]
struct FurtherNodes {
    nodes: Vec<FurtherNode>,
    /// The nodes of the source that have more bytes than fit, ascending, with their further nodes.
    of_nodes: Vec<(u64, Range<u64>)>,
    /// The further nodes of each area.
    of_areas: Vec<Range<u64>>,
    /// Bytes that did not fit.
    lost: u64,
}

impl FurtherNodes {
    fn new(source: &dyn NodeSource) -> FurtherNodes {
        let mut further = FurtherNodes::default();
        for owner in 0..source.len() as u64 {
            let row = source.node(owner);
            if row.bytes > MOST_BYTES {
                let parts = further.add(row.kind, row.name, row.bytes - MOST_BYTES);
                further.of_nodes.push((owner, parts));
            }
        }
        for bytes in source.areas() {
            let parts = further.add(NodeKind::Outside, string::OUTSIDE, *bytes);
            further.of_areas.push(parts);
        }
        further
    }

    /// Nodes for this number of bytes.
    fn add(&mut self, kind: NodeKind, name: u64, mut bytes: u64) -> Range<u64> {
        let from = self.nodes.len() as u64;
        for _ in 0..MOST_FURTHER {
            if bytes == 0 {
                break;
            }
            let part = bytes.min(MOST_BYTES);
            self.nodes.push(FurtherNode { kind, name, bytes: part });
            bytes -= part;
        }
        self.lost = self.lost.saturating_add(bytes);
        from..self.nodes.len() as u64
    }

    /// Enumerates the further nodes to which edges of a node lead.
    fn of(&self, source: &dyn NodeSource, node: u64, further: &mut dyn FnMut(u64)) {
        if let Ok(at) = self.of_nodes.binary_search_by_key(&node, |entry| entry.0) {
            self.of_nodes[at].1.clone().for_each(&mut *further);
        }
        source.areas_of(node, &mut |area| {
            self.of_areas[area as usize].clone().for_each(&mut *further);
        });
    }
}

/// Writes the file, and returns how many bytes did not fit into it.
pub(super) fn write_tables(source: &dyn NodeSource, out: &mut dyn Write) -> io::Result<u64> {
    let further = FurtherNodes::new(source);
    let mut edges = 1;
    let nodes = source.len() as u64;
    for node in 0..nodes {
        edges += count_edges(source, &further, node);
    }
    let all = ROOT_NODES + nodes + further.nodes.len() as u64;
    write!(
        out,
        r#"{{"snapshot":{{"meta":{META},"node_count":{all},"edge_count":{edges},"trace_function_count":0}},"#
    )?;
    out.write_all(b"\n\"nodes\":[")?;
    write_nodes(source, &further, out)?;
    out.write_all(b"],\n\"edges\":[")?;
    write_edges(source, &further, out)?;
    out.write_all(
        b"],\n\"trace_function_infos\":[],\n\"trace_tree\":[],\n\"samples\":[],\n\"locations\":[],\n",
    )?;
    out.write_all(b"\"strings\":[")?;
    let mut line = Vec::new();
    let fixed = STRINGS.iter().map(|text| (*text).to_owned());
    for (index, name) in fixed.chain(source.names()).enumerate() {
        line.clear();
        line.extend_from_slice(if index == 0 { b"" } else { b",\n" });
        json::put(&mut line, &name);
        out.write_all(&line)?;
    }
    out.write_all(b"]}\n")?;
    Ok(further.lost)
}

fn count_edges(source: &dyn NodeSource, further: &FurtherNodes, node: u64) -> u64 {
    let mut count = 0;
    source.edges(node, &mut |_, _| count += 1);
    further.of(source, node, &mut |_| count += 1);
    count
}

fn write_nodes(
    source: &dyn NodeSource,
    further: &FurtherNodes,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut row = TableRow::new(out);
    let holder = node_type(NodeKind::Holder);
    row.write([holder, string::EMPTY, 1, 0, 1, 0])?;
    let mut id = 1;
    for node in 0..source.len() as u64 {
        let edges = count_edges(source, further, node);
        let found = source.node(node);
        // V8's ids of blocks are odd.
        id += 2;
        let bytes = found.bytes.min(MOST_BYTES);
        row.write([node_type(found.kind), found.name, id, bytes, edges, 0])?;
    }
    for node in &further.nodes {
        id += 2;
        row.write([node_type(node.kind), node.name, id, node.bytes, 0, 0])?;
    }
    Ok(())
}

fn write_edges(
    source: &dyn NodeSource,
    further: &FurtherNodes,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut row = TableRow::new(out);
    let mut write = |kind: EdgeKind, node: u64| {
        let (edge_type, name) = edge_columns(kind);
        row.write([edge_type, name, node * NODE_FIELDS])
    };
    write(EdgeKind::Element(1), ROOT_NODES)?;
    let first_further = ROOT_NODES + source.len() as u64;
    for node in 0..source.len() as u64 {
        let mut result = Ok(());
        source.edges(node, &mut |kind, target| {
            if result.is_ok() {
                result = write(kind, ROOT_NODES + target);
            }
        });
        further.of(source, node, &mut |target| {
            if result.is_ok() {
                result = write(EdgeKind::Internal(string::OUTSIDE), first_further + target);
            }
        });
        result?;
    }
    Ok(())
}

/// Rows of numbers with commas between them, a row a line.
struct TableRow<'a> {
    out: &'a mut dyn Write,
    text: Vec<u8>,
    is_first: bool,
}

impl<'a> TableRow<'a> {
    fn new(out: &'a mut dyn Write) -> TableRow<'a> {
        TableRow { out, text: Vec::new(), is_first: true }
    }

    fn write<const N: usize>(&mut self, numbers: [u64; N]) -> io::Result<()> {
        self.text.clear();
        for (column, number) in numbers.into_iter().enumerate() {
            if column > 0 || !self.is_first {
                self.text.push(b',');
            }
            put_number(&mut self.text, number);
        }
        self.text.push(b'\n');
        self.is_first = false;
        self.out.write_all(&self.text)
    }
}

fn put_number(text: &mut Vec<u8>, mut number: u64) {
    let start = text.len();
    loop {
        text.push(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text[start..].reverse();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal() {
        let mut text = Vec::new();
        for number in [0, 7, 10, 4711, u64::MAX] {
            put_number(&mut text, number);
            text.push(b' ');
        }
        assert_eq!(text, format!("0 7 10 4711 {} ", u64::MAX).into_bytes());
    }
}
