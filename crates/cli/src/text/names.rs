//! Names in columns: cut to fit, and still different where they differ.

use std::collections::{BTreeSet, HashMap};

use heaptap_report::figures::probes::tree::ProbeTreeLine;
use heaptap_report::figures::units::bytes;
use heaptap_report::rows::Site;

use crate::text::escape::Escaped;
use crate::text::terminal::{fit, fit_path, pad, take, width};

/// A name that cannot write to the terminal.
pub(crate) fn escaped(name: &str) -> String {
    Escaped(name.as_bytes()).to_string()
}

/// The same, or a dash if there is none.
pub(crate) fn escaped_or_dash(name: &str) -> String {
    if name.is_empty() { "-".to_owned() } else { escaped(name) }
}

/// The name of a site, and more about it.
pub(crate) fn site_name(site: &Site) -> (String, String) {
    let (name, more) = site.parts();
    (escaped(&name), escaped(&more))
}

/// The label of a line in a tree of probes.
pub(crate) fn tree_label(line: &ProbeTreeLine) -> String {
    format!("{}{}", "  ".repeat(line.level), Escaped(line.label.as_bytes()))
}

/// A size with its sign.
pub(crate) fn signed(difference: f64) -> String {
    let sign = if difference < 0.0 { '-' } else { '+' };
    format!("{sign}{}", bytes(difference.abs()))
}

/// Names and what is said besides, such as the file, in two columns of together at most
/// `room` columns. Names are padded where something follows.
pub(crate) fn two_columns(rows: &[(String, String)], room: usize) -> Vec<(String, String)> {
    let longest = rows.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    // Names take the columns they need, but leave a third to the files.
    let has_files = rows.iter().any(|(_, file)| !file.is_empty());
    let column = longest.min(if has_files { room - room / 3 } else { room });
    let (names, files): (Vec<&str>, Vec<&str>) =
        rows.iter().map(|(name, file)| (name.as_str(), file.as_str())).unzip();
    let names = fit_distinct(&names, column, fit);
    let files = fit_distinct(&files, room.saturating_sub(column + 2), fit_path);
    let padded = |(name, file): (String, String)| match file.as_str() {
        "" => (name, file),
        _ => (pad(&name, column + 2), file),
    };
    names.into_iter().zip(files).map(padded).collect()
}

/// A name with its file in parentheses, in at most `room` columns. Each is cut by itself.
pub(crate) fn with_file((name, file): &(String, String), room: usize) -> String {
    if file.is_empty() {
        return fit(name, room);
    }
    let whole = format!("{name} ({file})");
    if width(&whole) <= room {
        return whole;
    }
    let name = fit(name, (room - room / 3).max(room.saturating_sub(width(file) + 3)));
    let file = fit_path(file, room.saturating_sub(width(&name) + 3));
    format!("{name} ({file})")
}

/// The names, cut by `cut` to at most `columns` columns. Names that differ look
/// different: where `cut` removes the difference, the part around it is shown, and if
/// that does not help, numbers.
pub(crate) fn fit_distinct(
    names: &[&str],
    columns: usize,
    cut: fn(&str, usize) -> String,
) -> Vec<String> {
    let mut alike: HashMap<String, BTreeSet<&str>> = HashMap::new();
    for name in names {
        alike.entry(cut(name, columns)).or_default().insert(name);
    }
    let mut chosen: HashMap<&str, String> = HashMap::new();
    let mut used: BTreeSet<String> = BTreeSet::new();
    for &name in names {
        if chosen.contains_key(name) {
            continue;
        }
        let mut text = cut(name, columns);
        let same = &alike[&text];
        if same.len() > 1 {
            text = around(name, common_prefix(same), columns);
        }
        let mut number = 2;
        while !used.insert(text.clone()) {
            let mark = format!("#{number}");
            text = format!("{}{mark}", cut(name, columns.saturating_sub(mark.len())));
            number += 1;
        }
        chosen.insert(name, text);
    }
    names.iter().map(|name| chosen[name].clone()).collect()
}

/// The number of characters that all names begin with.
fn common_prefix(names: &BTreeSet<&str>) -> usize {
    // In a sorted list, the first and the last name differ the most.
    let (Some(first), Some(last)) = (names.first(), names.last()) else { return 0 };
    first.chars().zip(last.chars()).take_while(|(one, other)| one == other).count()
}

/// The part of a name in which the character at `at` is.
fn around(name: &str, at: usize, columns: usize) -> String {
    let skipped = at.saturating_sub(columns / 3);
    let tail: String = name.chars().skip(skipped).collect();
    let (dots, room) = if skipped > 0 { ("…", columns.saturating_sub(1)) } else { ("", columns) };
    if width(&tail) <= room {
        return format!("{dots}{tail}");
    }
    let shown = take(tail.chars(), room.saturating_sub(1));
    // In `file:line`, no number is cut.
    let is_number = |c: char| c.is_ascii_digit() || c == ':' || c == '-';
    let shown = if name.contains(':') { shown.trim_end_matches(is_number) } else { &shown };
    format!("{dots}{shown}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_look_different() {
        let prefix = "A_long_module.with_a_long_function_";
        let names: Vec<String> =
            (0..150).map(|n| format!("{prefix}{n}_and_the_same_end_of_all_of_them")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for columns in [7, 20, 40, 80] {
            let cut = fit_distinct(&names, columns, fit);
            assert!(cut.iter().all(|name| width(name) <= columns), "{cut:?}");
            assert_eq!(cut.iter().collect::<BTreeSet<_>>().len(), names.len(), "{cut:?}");
        }
        assert_eq!(fit_distinct(&["a", "b", "a"], 5, fit), ["a", "b", "a"]);
        let two = ["a_common_beginning_1_then_the_end", "a_common_beginning_2_then_the_end"];
        assert_eq!(fit_distinct(&two, 16, fit), ["…ning_1_then_th…", "…ning_2_then_th…"]);
    }

    #[test]
    fn names_and_files_are_cut_by_themselves() {
        let row = |name: &str, file: &str| (name.to_owned(), file.to_owned());
        let site = row("Typecore.type_expect_", "typing/typecore.ml");
        assert_eq!(with_file(&site, 50), "Typecore.type_expect_ (typing/typecore.ml)");
        assert_eq!(with_file(&site, 38), "Typecore.type_expect_ (…/typecore.ml)");
        assert_eq!(with_file(&row("Main", ""), 38), "Main");
        let rows = two_columns(&[site, row("Main", "")], 60);
        let expected = [row("Typecore.type_expect_  ", "typing/typecore.ml"), row("Main", "")];
        assert_eq!(rows, expected);
    }
}
