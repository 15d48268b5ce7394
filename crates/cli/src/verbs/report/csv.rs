//! The table as comma-separated values.

use std::fmt::Write as _;

use heaptap_figures::CallSite;
use heaptap_figures::{Figures, ReportRow, Sum};

use crate::text::csv::quoted;

/// A heading, the rows, and one row for those that are not shown, if any.
pub(crate) fn table(figures: &Figures) -> String {
    let mut text =
        String::from("name,file,line,start_char,end_char,samples,bytes,error,low,high,share\n");
    for ReportRow { site, sum, share, .. } in &figures.table.rows {
        let CallSite { name, file, line, chars } = site;
        let (name, file) = (quoted(name), quoted(file));
        let position =
            if *line == 0 { ",,".into() } else { format!("{line},{},{}", chars.0, chars.1) };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name},{file},{position},{},{share}", numbers(sum));
    }
    let others = &figures.table.others;
    if others.rows > 0 {
        let name = format!("({} others)", others.rows);
        let _ = writeln!(text, "{name},,,,,{},{}", numbers(&others.sum), others.share);
    }
    text
}

fn numbers(sum: &Sum) -> String {
    let Sum { samples, size } = sum;
    format!("{samples},{},{},{},{}", size.bytes, size.error, size.low, size.high)
}
