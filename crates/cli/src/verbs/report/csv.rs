//! The table as comma-separated values.

use std::fmt::Write as _;

use super::Place;
use super::figures::{Figures, Line, Sum};

/// A heading, the rows, and if some are not shown, one for them.
pub(crate) fn table(figures: &Figures) -> String {
    let mut text =
        String::from("name,file,line,start_char,end_char,samples,bytes,error,low,high,share\n");
    for line in &figures.table.rows {
        let Line { place, sum, share, .. } = line;
        let Place { name, file, line, chars } = place;
        let (name, file) = (quoted(name), quoted(file));
        let spot = if *line == 0 { ",,".into() } else { format!("{line},{},{}", chars.0, chars.1) };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name},{file},{spot},{},{share}", numbers(sum));
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

/// As RFC 4180 has it. Line breaks stay inside quotes.
fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(super::quoted("plain"), "plain");
        assert_eq!(super::quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
