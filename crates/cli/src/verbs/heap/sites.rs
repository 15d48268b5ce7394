//! `--by site`: where what is alive was allocated.

use std::fmt::Write as _;

use heaptap_report::figures::heap::sites::{SiteFigures, SiteRow};
use heaptap_report::figures::sized;
use heaptap_report::figures::units::{bytes, count, percent, short_duration};

use crate::text::csv::{optional, quoted};
use crate::text::names::escaped;
use crate::text::terminal::{Layout, fit, wrap};

/// Totals, then two lines for each site.
pub(super) fn text(figures: &SiteFigures, layout: Layout) -> String {
    let of = match &figures.within {
        Some(holder) => format!("{holder} retains"),
        None => "Reachable are".into(),
    };
    let outside = match figures.exact_outside_bytes {
        0 => String::new(),
        held => format!(" and {} outside the heap", bytes(held as f64)),
    };
    let head = format!(
        "{of} {}{outside}; the {} of it that {} follows stand for {}",
        bytes(figures.exact_bytes as f64),
        count(figures.sampled_blocks, "block", "blocks"),
        escaped(&figures.trace),
        sized(&figures.estimated)
    );
    let mut text = format!("{}\n", wrap(&head, layout.width).join("\n"));
    let titles = format!("{:>10} {:>8} {:>8} {:>9}  site and who holds it", "size", "±", "", "age");
    // Writing to a string does not fail.
    let _ = writeln!(text, "\n{}", layout.strong(&fit(&titles, layout.width)));
    let room = layout.width.saturating_sub(NUMBERS).max(10);
    for row in &figures.rows {
        append(&mut text, row, room, layout);
    }
    if figures.other_rows > 0 {
        let share = percent(figures.other_share);
        let _ = writeln!(
            text,
            "{:>10} {:>8} {share:>8} {:>9}  ({} others)",
            "", "", "", figures.other_rows
        );
    }
    text
}

/// Columns before the names.
const NUMBERS: usize = 11 + 9 + 9 + 9 + 2;

fn append(text: &mut String, row: &SiteRow, room: usize, layout: Layout) {
    let (name, file) = row.site.parts();
    let site = if file.is_empty() { name } else { format!("{name} {file}") };
    let (size, error) = row.size.columns();
    let _ = writeln!(
        text,
        "{:>10} {:>8} {:>8} {:>9}  {}",
        size,
        error,
        percent(row.share),
        short_duration(row.median_age_us as f64),
        fit(&escaped(&site), room)
    );
    let held = format!("held by {} ({})", row.holder, percent(row.holder_share));
    let _ = writeln!(text, "{:NUMBERS$}{}", "", layout.faint(&fit(&held, room)));
}

/// A heading and the rows.
pub(super) fn csv(figures: &SiteFigures) -> String {
    let mut text = String::from(
        "name,file,line,samples,bytes,error,low,high,share,median_age_us,oldest_us,holder,holder_share\n",
    );
    for row in &figures.rows {
        let size = &row.size;
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{},{},{},{},{}",
            quoted(&row.site.name),
            quoted(&row.site.file),
            row.site.line,
            row.samples,
            size.bytes,
            optional(size.error),
            size.low,
            size.high,
            row.share,
            row.median_age_us,
            row.oldest_us,
            quoted(&row.holder),
            row.holder_share
        );
    }
    text
}
