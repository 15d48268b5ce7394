//! The figures, laid out for people.

use std::fmt::Write as _;

use super::figures::{Figures, Line, Size, Sum, Time};
use crate::text::escape::Escaped;
use crate::text::terminal::{Page, fit, fit_path, pad, width};
use crate::text::units::{bytes, percent, short_duration};

/// Totals, then the table.
pub(crate) fn report(figures: &Figures, page: Page) -> String {
    let mut text = String::new();
    for (label, value) in totals(figures) {
        // Writing to a string does not fail.
        let value = fit(&value, page.width.saturating_sub(13));
        let _ = writeln!(text, "{} {value}", page.strong(&format!("{label:<12}")));
    }
    let line = sparkline(&figures.timeline.most_live_bytes, page.width.min(100) - 13);
    let _ = writeln!(text, "{} {line}", page.strong(&format!("{:<12}", "live size")));
    text.push('\n');
    table(&mut text, figures, page);
    for note in notes(figures) {
        let _ = writeln!(text, "\n{}", page.faint(&note));
    }
    text
}

/// A size with its error.
pub(crate) fn sized(size: &Size) -> String {
    format!("{} ± {}", bytes(size.bytes), percent(size.relative()))
}

fn totals(figures: &Figures) -> Vec<(&'static str, String)> {
    let totals = &figures.totals;
    let selected = if figures.selected { ", selected blocks only" } else { "" };
    let program = match figures.executable.as_str() {
        "" => "-".to_owned(),
        name => Escaped(name.as_bytes()).to_string(),
    };
    let within = |time: &Option<Time>| match time {
        Some(time) if time.error >= 1.0 => {
            format!("{} ± {}", short_duration(time.us), short_duration(time.error))
        }
        Some(time) => short_duration(time.us),
        None => "(longer than the trace)".to_owned(),
    };
    let promotion = &totals.promotion;
    vec![
        ("program", format!("{program}{selected}")),
        (
            "allocated",
            format!(
                "{} in {}",
                sized(&totals.allocated),
                short_duration(figures.duration_us as f64)
            ),
        ),
        (
            "peak live",
            format!("{} at {}", sized(&totals.peak), short_duration(totals.peak_us as f64)),
        ),
        ("live at end", sized(&totals.live)),
        (
            "promoted",
            format!(
                "{} ± {} of what was allocated young",
                percent(promotion.share),
                percent(promotion.error)
            ),
        ),
        (
            "lifetimes",
            format!(
                "half within {}, nine tenths within {}",
                within(&totals.median_lifetime),
                within(&totals.ninth_decile_lifetime)
            ),
        ),
    ]
}

/// Heights in one line of text, from 0 to the largest.
pub(crate) fn sparkline(values: &[f64], columns: usize) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let largest = values.iter().fold(0.0_f64, |most, &value| most.max(value));
    let columns = columns.min(values.len()).max(1);
    let mut line = String::new();
    for column in 0..columns {
        let (from, to) = (column * values.len() / columns, (column + 1) * values.len() / columns);
        let most = values.get(from..to).unwrap_or(&[]).iter().fold(0.0_f64, |a, &b| a.max(b));
        let height = if largest > 0.0 { most / largest * 7.0 } else { 0.0 };
        line.push(HEIGHTS[(height.round() as usize).min(7)]);
    }
    line
}

/// Columns before the name.
const NUMBERS: usize = 11 + 2 + 7 + 2 + 7 + 2;

fn table(text: &mut String, figures: &Figures, page: Page) {
    let shown = &figures.table;
    let title = format!("{} by {}", shown.metric, shown.by);
    let heading = format!("{:>11}  {:>7}  {:>7}  {title}", "size", "±", "share");
    let _ = writeln!(text, "{}", page.strong(&heading));
    let room = page.width.saturating_sub(NUMBERS);
    let names: Vec<(String, String)> = shown.rows.iter().map(label).collect();
    let longest = names.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    // Names get what they need, but leave the files a third.
    let has_files = names.iter().any(|(_, file)| !file.is_empty());
    let most = if has_files { room - room / 3 } else { room };
    let column = longest.min(most);
    for (line, (name, file)) in shown.rows.iter().zip(&names) {
        let name = fit(name, column);
        let file = fit_path(file, room.saturating_sub(column + 2));
        let place = if file.is_empty() {
            name
        } else {
            format!("{}  {}", pad(&name, column), page.faint(&file))
        };
        let _ = writeln!(text, "{}{place}", numbers(&line.sum, line.share));
        callers(text, line, line.sum.samples, 1, page);
    }
    if shown.others.rows > 0 {
        let others = crate::text::units::count(shown.others.rows as u64, "other", "others");
        let _ = writeln!(text, "{}{others}", numbers(&shown.others.sum, shown.others.share));
    }
    let total = format!("{}total", numbers(&shown.total, 1.0));
    let _ = writeln!(text, "{}", page.strong(&total));
}

fn numbers(sum: &Sum, share: f64) -> String {
    let error = percent(sum.size.relative());
    format!("{:>11}  {error:>7}  {:>7}  ", bytes(sum.size.bytes), percent(share))
}

/// What to call a row, and where it is.
fn label(line: &Line) -> (String, String) {
    let (name, place) = line.place.parts();
    let escaped = |text: &str| Escaped(text.as_bytes()).to_string();
    (escaped(&name), escaped(&place))
}

/// The callers that matter: a twentieth of the row, five of each at most.
fn callers(text: &mut String, line: &Line, row: u64, level: usize, page: Page) {
    for caller in line.callers.iter().take(5) {
        if caller.sum.samples.saturating_mul(20) < row {
            continue;
        }
        let share = super::figures::share(caller.sum.samples, row);
        let (name, _) = label(caller);
        let indent = NUMBERS + 2 * level;
        let name = fit(&name, page.width.saturating_sub(indent + 12));
        let from = format!("{}← {name} {}", " ".repeat(indent), percent(share));
        let _ = writeln!(text, "{}", page.faint(&from));
        callers(text, caller, row, level + 1, page);
    }
}

/// What must be said of the figures.
fn notes(figures: &Figures) -> Vec<String> {
    let mut notes = Vec::new();
    if figures.totals.samples < 100 {
        notes.push(format!(
            "Only {}: the figures are rough. A higher sampling rate gives better ones.",
            crate::text::units::count(figures.totals.samples, "sample", "samples")
        ));
    }
    let limits = &figures.limits;
    if limits.objects_followed_one_in > 1 {
        notes.push(format!(
            "So much was alive that one in {} blocks was followed; the errors include that.",
            limits.objects_followed_one_in
        ));
    }
    if limits.samples_missing_from_callers > 0 {
        notes.push(format!(
            "There are too many call paths to keep all: up to {} samples are missing from a caller.",
            limits.samples_missing_from_callers
        ));
    }
    notes
}
