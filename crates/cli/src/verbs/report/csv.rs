//! The table as comma-separated values.

use std::fmt::Write as _;

use heaptap_report::figures::{BlockHolders, Figures, ReportRow, Sum};
use heaptap_report::rows::Site;

use crate::text::csv::{optional, quoted};

/// How many holders of a row have columns.
const HOLDERS: usize = 3;

/// A heading, the rows, and one row for those that are not shown, if any.
pub(crate) fn table(figures: &Figures) -> String {
    let mut text =
        String::from("name,file,line,start_char,end_char,samples,bytes,error,low,high,share");
    if figures.snapshot.is_some() {
        text.push_str(&holder_headings());
    }
    text.push_str(",sites");
    text.push('\n');
    let sites = figures.table.sites.name();
    for ReportRow { site, sum, share, held, .. } in &figures.table.rows {
        let Site { name, file, line, chars } = site;
        let (name, file) = (quoted(name), quoted(file));
        let position =
            if *line == 0 { ",,".into() } else { format!("{line},{},{}", chars.0, chars.1) };
        // Writing to a string does not fail.
        let held = held.as_ref().map(holders).unwrap_or_default();
        let _ = writeln!(text, "{name},{file},{position},{},{share}{held},{sites}", numbers(sum));
    }
    let others = &figures.table.others;
    if others.rows > 0 {
        let name = format!("({} others)", others.rows);
        let held = figures.snapshot.as_ref().map(|_| ",".repeat(2 + 5 * HOLDERS));
        let held = held.unwrap_or_default();
        let numbers = numbers(&others.sum);
        let _ = writeln!(text, "{name},,,,,{numbers},{}{held},{sites}", others.share);
    }
    text
}

fn numbers(sum: &Sum) -> String {
    let Sum { samples, size, .. } = sum;
    format!("{samples},{},{},{},{}", size.bytes, optional(size.error), size.low, size.high)
}

/// The headings of what holds the blocks of a row.
fn holder_headings() -> String {
    let mut text = String::from(",in_snapshot_bytes,in_snapshot_error");
    for number in 1..=HOLDERS {
        for column in ["", "_bytes", "_error", "_share", "_share_error"] {
            // Writing to a string does not fail.
            let _ = write!(text, ",holder_{number}{column}");
        }
    }
    text
}

/// What is in the snapshot, and its greatest holders.
fn holders(held: &BlockHolders) -> String {
    let size = &held.in_snapshot.size;
    let mut text = format!(",{},{}", size.bytes, optional(size.error));
    for number in 0..HOLDERS {
        // Writing to a string does not fail.
        let _ = match held.held_by.get(number) {
            Some(part) => write!(
                text,
                ",{},{},{},{},{}",
                quoted(&part.holder),
                part.sum.size.bytes,
                optional(part.sum.size.error),
                part.share,
                part.share_error
            ),
            None => write!(text, ",,,,,"),
        };
    }
    text
}
