//! HPROF 1.0.2, the heap dumps of Java, for Eclipse MAT and others.
//!
//! The layout is that of `src/hotspot/share/services/heapDumper.cpp` (JDK 17). A block becomes an object whose class
//! is the block's kind. The format has no sizes of objects: readers compute them. Eclipse MAT counts two ids for the
//! header of an object, 4 bytes more for that of an array, the fields or elements, and rounds up to 8 bytes, or to the
//! distance of ids if that is more (`HprofParserHandlerImpl.java`, MAT 1.17). With ids of 4 bytes, one for each block,
//! the header has 8 bytes, as in OCaml, a reference has 4, and the sizes come out right:
//!
//! - A block of a kind with a fixed size is an instance with a reference for each field, null if the
//!   field is no pointer, and as many bytes of padding: 8 + 8 × words.
//! - Any other block is an array of 2 × words - 1 references, its fields first: 12 + 4 × (2 × words - 1)
//!   bytes. What has no field, the slots of a suspended stack and the data of an ephemeron, is in the
//!   second half, or, if it does not fit, in an array of its own.
//! - What blocks keep outside the heap is an array of bytes, all of them in the file: 12 + elements, so
//!   that it has 12 elements less than bytes. The blocks refer to it as to what has no field. Mapped files are left out.
//!
//! Keys of ephemerons are left out. A Java heap has weak references, as objects of `java.lang.ref`, but MAT's dominator
//! tree follows them like any other, and a key would no longer be retained by what really holds it.
//!
//! - `records`: writes records, and parts of the heap dump in segments.
//! - `classes`: the classes of kinds and holders.
//! - `objects`: the blocks.
//! - `roots`: modules as classes with static fields, threads with frames, C roots as JNI globals.

mod classes;
mod objects;
mod records;
mod roots;

use std::io::{self, Write};

use heaptap_graph::{Node, OutsideBytes};
use heaptap_heap::MetaKey;

use super::{SnapshotFormat, SnapshotInput};
use classes::ClassTable;
use objects::ObjectWriter;
use records::DumpWriter;
use roots::RootWriter;

pub(super) const FORMAT: SnapshotFormat = SnapshotFormat {
    name: "hprof",
    help: "Of a heap snapshot: for Eclipse MAT and other tools for heap dumps of Java",
    is_binary: true,
    has_fields: true,
    // MAT has 31 bits for the number of an object.
    nodes: i32::MAX as usize,
    write,
};

fn write(input: &SnapshotInput<'_>, out: &mut dyn Write) -> io::Result<Vec<String>> {
    if input.tree.len() > input.nodes {
        return Err(io::Error::other(format!(
            "{} objects are more than the {} that --nodes or Eclipse MAT allow; \
             --to heapsnapshot joins blocks that are alike",
            input.tree.len(),
            input.nodes
        )));
    }
    let nanoseconds = input.graph.facts().number(MetaKey::TIME).unwrap_or_default();
    let mut dump = DumpWriter::new(out, nanoseconds / 1_000_000)?;
    let mut classes = ClassTable::new(input, &mut dump)?;
    RootWriter::new(input, &mut classes).write(&mut dump)?;
    let mut objects = ObjectWriter::new(input, classes);
    for position in 0..input.tree.len() as u32 {
        if let Node::Block(block) = input.tree.node(position) {
            objects.write(block, &mut dump)?;
        }
    }
    dump.finish()?;
    let OutsideBytes { allocated, .. } = objects.omitted();
    let note = "bytes outside the heap are not in the file, which would need as many bytes; \
                use --to heapsnapshot to see them";
    let mut notes = input.mapped_note();
    notes.extend((allocated > 0).then(|| format!("{allocated} {note}")));
    Ok(notes)
}
