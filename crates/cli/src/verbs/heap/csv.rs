//! The table as comma-separated values.

use std::fmt::Write as _;

use heaptap_report::figures::heap::tables::HeapTable;

use crate::text::csv::quoted;

/// A heading, the rows, and one row for those that are not shown, if any.
pub(super) fn table(table: &HeapTable) -> String {
    let mut text = String::from(
        "name,roots,reachable_bytes,exclusive_bytes,first_reached_bytes,first_reached_blocks,outside_bytes,first_outside_bytes,mapped_bytes\n",
    );
    for row in &table.rows {
        let roots = row.roots.map(|roots| roots.to_string()).unwrap_or_default();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{},{roots},{},{},{},{},{},{},{}",
            quoted(&row.name),
            row.reachable_bytes,
            row.exclusive_bytes,
            row.first_reached.bytes,
            row.first_reached.blocks,
            row.outside_bytes,
            row.first_outside_bytes,
            row.mapped_bytes
        );
    }
    if table.other_rows > 0 {
        let others = &table.other_first_reached;
        let outside = table.other_first_outside_bytes;
        let _ = writeln!(
            text,
            "({} others),,,,{},{},,{outside},",
            table.other_rows, others.bytes, others.blocks
        );
    }
    text
}
