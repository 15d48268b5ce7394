//! The figures, laid out for people.

use std::fmt::Write as _;

use heaptap_report::figures::units::{bytes, count, percent, short_duration};
use heaptap_report::figures::{
    BlockHolders, Figures, JoinedSnapshot, Part, ReportRow, Sum, Time, Totals,
};
use heaptap_report::figures::{Size, Unseen, share, sized};

use crate::text::names::{escaped_or_dash, fit_distinct, site_name, two_columns};
use crate::text::terminal::{Layout, fit, sparkline, width, wrap, wrap_indented};

/// Totals, then the table.
pub(crate) fn report(figures: &Figures, layout: Layout) -> String {
    let mut text = String::new();
    for (label, value) in totals(figures) {
        // Writing to a string does not fail.
        let value = match label {
            "program" => fit(&value, layout.width.saturating_sub(13)),
            _ => wrap_indented(&value, 13, layout.width),
        };
        let _ = writeln!(text, "{} {value}", layout.strong(&format!("{label:<12}")));
    }
    if figures.totals.samples == 0 && (figures.is_unknown() || figures.sample_rate < 1.0) {
        append_before(&mut text, figures, layout);
        append_notes(&mut text, figures, layout);
        return text;
    }
    if !figures.carried_over {
        let line = sparkline(&figures.timeline.most_live_bytes, layout.width.min(100) - 13);
        let _ = writeln!(text, "{} {line}", layout.strong(&format!("{:<12}", "live size")));
    }
    text.push('\n');
    table(&mut text, figures, layout);
    append_before(&mut text, figures, layout);
    append_notes(&mut text, figures, layout);
    text
}

/// What was there before the trace began, and what held it.
fn append_before(text: &mut String, figures: &Figures, layout: Layout) {
    let Some(before) = &figures.before_attach else { return };
    let mut line = format!(
        "before the attach: exactly {} in {}",
        bytes(before.bytes as f64),
        count(before.blocks, "block", "blocks")
    );
    if before.outside_bytes > 0 {
        line += &format!(", which held {} {OUTSIDE}", bytes(before.outside_bytes as f64));
    }
    line += &format!(
        "; {} of garbage; {} before the trace began ({})",
        bytes(before.garbage_bytes as f64),
        short_duration(before.before_us as f64),
        before.file
    );
    // Writing to a string does not fail.
    let _ = writeln!(text, "\n{}", layout.strong(&wrap(&line, layout.width).join("\n")));
    let room = layout.width.saturating_sub(NUMBERS);
    for part in &before.held_by {
        let (size, share) = (bytes(part.bytes as f64), percent(part.share));
        let _ =
            writeln!(text, "{size:>11}  {:>7}  {share:>7}  {}", "exact", fit(&part.holder, room));
    }
}

fn append_notes(text: &mut String, figures: &Figures, layout: Layout) {
    for note in notes(figures) {
        let lines = wrap(&note, layout.width).join("\n");
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n{}", layout.faint(&lines));
    }
}

/// At this rate and above, tracing makes a program so much slower that its blocks live
/// noticeably longer.
const STRETCHING_RATE: f64 = 0.1;

/// `, of it 3 MiB ± 1 % outside the heap and 1 MiB ± 2 % that …`; nothing of what there is
/// none, and nothing at all if only bounds are known.
fn parts(whole: &Size, parts: &[(&Size, &str)]) -> String {
    let shown = parts.iter().filter(|(size, _)| size.bytes > 0.0 && !whole.is_bounded());
    let shown: Vec<String> =
        shown.map(|(size, place)| format!("{} {place}", sized(size))).collect();
    if shown.is_empty() { String::new() } else { format!(", of it {}", shown.join(" and ")) }
}

const OUTSIDE: &str = "outside the heap";

fn totals(figures: &Figures) -> Vec<(&'static str, String)> {
    let totals = &figures.totals;
    let selected = if figures.selected { ", selected blocks only" } else { "" };
    let program = escaped_or_dash(&figures.executable);
    if figures.is_unknown() {
        let unknown = "not known: the trace is cut short before the first sample".to_owned();
        return vec![("program", format!("{program}{selected}")), ("allocated", unknown)];
    }
    let mut lines = vec![
        ("program", format!("{program}{selected}")),
        (
            "allocated",
            format!(
                "{} in {}{}",
                sized(&totals.allocated),
                short_duration(figures.duration_us as f64),
                parts(&totals.allocated, &[(&totals.external, OUTSIDE)])
            ),
        ),
        ("peak live", peak(totals)),
        ("live at end", live_at_end(totals)),
        ("promoted", promoted(&totals.promotion, figures.carried_over)),
        ("lifetimes", lifetimes(figures)),
    ];
    lines.extend(figures.snapshot.as_ref().map(|snapshot| ("snapshot", joined(snapshot))));
    lines
}

fn peak(totals: &Totals) -> String {
    let at = match totals.peak.error {
        Some(_) => format!(" at {}", short_duration(totals.peak_us as f64)),
        None => String::new(),
    };
    sized(&totals.peak) + &at + &parts(&totals.peak, &[(&totals.peak_external, OUTSIDE)])
}

fn live_at_end(totals: &Totals) -> String {
    let of_it =
        [(&totals.live_external, OUTSIDE), (&totals.live_young, "that no collection has seen yet")];
    sized(&totals.live) + &parts(&totals.live, &of_it)
}

fn promoted(promotion: &Part, carried_over: bool) -> String {
    match promotion.error {
        Some(error) => {
            let share = percent(promotion.share);
            format!("{share} ± {} of what was allocated young", percent(error))
        }
        None if carried_over && promotion.share > 0.0 => {
            format!("at least {} of what was allocated young", percent(promotion.share))
        }
        None => "not known: no sample of what was allocated young".to_owned(),
    }
}

fn lifetimes(figures: &Figures) -> String {
    let within = |time: &Option<Time>| match time {
        Some(time) if time.error >= 1.0 => {
            format!("{} ± {}", short_duration(time.us), short_duration(time.error))
        }
        Some(time) => short_duration(time.us),
        None => "(longer than the trace)".to_owned(),
    };
    let totals = &figures.totals;
    if figures.carried_over || totals.samples == 0 {
        let why = if figures.carried_over { "not all ends were seen" } else { "no sample" };
        return format!("not known: {why}");
    }
    format!(
        "half within {}, nine tenths within {}{}",
        within(&totals.median_lifetime),
        within(&totals.ninth_decile_lifetime),
        if figures.sample_rate >= STRETCHING_RATE { "; longer than untraced" } else { "" }
    )
}

/// The snapshot, and what holds all blocks in it.
fn joined(snapshot: &JoinedSnapshot) -> String {
    let taken = short_duration(snapshot.taken_us as f64);
    format!("{}, taken at {taken}: {}", snapshot.file, held_by(&snapshot.held))
}

/// What was in a snapshot, and what held it.
fn held_by(held: &BlockHolders) -> String {
    match held.text() {
        Some(holders) => {
            format!("{} in its heap, held by {holders}", sized(&held.in_snapshot.size))
        }
        None => "no sampled block in its heap".to_owned(),
    }
}

/// Columns before the name.
const NUMBERS: usize = 11 + 2 + 7 + 2 + 7 + 2;

fn table(text: &mut String, figures: &Figures, layout: Layout) {
    let shown = &figures.table;
    let rows = figures.table.row_title();
    let title = format!("{} by {rows}", shown.metric);
    let room = layout.width.saturating_sub(NUMBERS);
    let title = if width(&title) <= room {
        title
    } else {
        let _ = writeln!(text, "{}", layout.strong(&title));
        rows
    };
    let heading = format!("{:>11}  {:>7}  {:>7}  {title}", "size", "±", "share");
    let _ = writeln!(text, "{}", layout.strong(&heading));
    let names: Vec<(String, String)> = shown.rows.iter().map(|row| site_name(&row.site)).collect();
    for (line, (name, file)) in shown.rows.iter().zip(two_columns(&names, room)) {
        let numbers = numbers(&line.sum, line.share);
        let _ = writeln!(text, "{numbers}{name}{}", layout.faint(&file));
        if let Some(held) = &line.held {
            append_holders(text, held, layout);
        }
        callers(text, line, line.sum.samples, 1, layout);
    }
    if shown.others.rows > 0 {
        let others = count(shown.others.rows as u64, "other", "others");
        let _ = writeln!(text, "{}{others}", numbers(&shown.others.sum, shown.others.share));
    }
    let total = format!("{}total", numbers(&shown.total, 1.0));
    let _ = writeln!(text, "{}", layout.strong(&total));
}

/// What holds the blocks of a row, below it.
fn append_holders(text: &mut String, held: &BlockHolders, layout: Layout) {
    let Some(holders) = held.text() else { return };
    let indent = detail_indent(1, layout);
    let line = format!("{} held by {holders}", sized(&held.in_snapshot.size));
    let line = wrap_indented(&line, indent, layout.width);
    let _ = writeln!(text, "{}{}", " ".repeat(indent), layout.faint(&line));
}

/// Where a line below a row begins: on a narrow terminal at its left, not below the names.
fn detail_indent(level: usize, layout: Layout) -> usize {
    let left = if layout.width >= NUMBERS + 50 { NUMBERS } else { 2 };
    (left + 2 * level).min(layout.width.saturating_sub(28))
}

fn numbers(sum: &Sum, share: f64) -> String {
    let (size, error) = sum.size.columns();
    format!("{size:>11}  {error:>7}  {:>7}  ", percent(share))
}

/// The callers that matter: a twentieth of the row, five of each at most.
fn callers(text: &mut String, line: &ReportRow, row: u64, level: usize, layout: Layout) {
    let matters = |caller: &&ReportRow| caller.sum.samples.saturating_mul(20) >= row;
    let shown: Vec<&ReportRow> = line.callers.iter().take(5).filter(matters).collect();
    let labels: Vec<(String, String)> =
        shown.iter().map(|caller| site_name(&caller.site)).collect();
    // A file is shown where the name is not enough.
    let name = |(name, file): &(String, String)| {
        let is_enough = labels.iter().filter(|(other, _)| other == name).count() == 1;
        if is_enough || file.is_empty() { name.clone() } else { format!("{name} ({file})") }
    };
    let names: Vec<String> = labels.iter().map(name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let indent = detail_indent(level, layout);
    let names = fit_distinct(&names, layout.width.saturating_sub(indent + 16), fit);
    for (caller, name) in shown.into_iter().zip(names) {
        let part = share(caller.sum.samples, row);
        let via = if caller.library { "via " } else { "" };
        let from = format!("{}← {via}{name} {}", " ".repeat(indent), percent(part));
        let _ = writeln!(text, "{}", layout.faint(&from));
        callers(text, caller, row, level + 1, layout);
    }
}

/// What no sample means, and what to do about it.
fn no_sample(figures: &Figures, unseen: &Unseen) -> String {
    let among = if figures.selected { " of the selected blocks" } else { "" };
    format!(
        "No sample{among}, at a sampling rate of {}: {:.0} words, {}, would have one with a \
         probability of 95 %. Trace the program with --rate {} for more.",
        figures.sample_rate,
        unseen.words,
        bytes(unseen.words * figures.word_bytes),
        unseen.better_rate()
    )
}

/// Notes on the accuracy of the figures.
fn notes(figures: &Figures) -> Vec<String> {
    let mut notes: Vec<String> =
        figures.cut_short.iter().map(|why| format!("Incomplete: {why}.")).collect();
    if figures.carried_over {
        notes.push(
            "These are files of one process, written one after the other, and none says what \
             became of the blocks of an earlier one. So what was alive is known within bounds \
             only, and has no error: a table shows the most that was alive at the end, and the \
             least that was alive before."
                .to_owned(),
        );
    }
    if figures.totals.samples == 0 && !figures.is_unknown() {
        notes.extend(Unseen::at(figures.sample_rate).map(|unseen| no_sample(figures, &unseen)));
    } else if figures.totals.samples < 100 && !figures.is_unknown() {
        notes.push(format!(
            "Only {}: the figures are rough. A higher sampling rate gives better ones.",
            count(figures.totals.samples, "sample", "samples")
        ));
    }
    if figures.table.is_of_peak && figures.totals.is_peak_corrected() {
        notes.push(format!(
            "The rows add up to {}, not to the peak live size of {}: they are what was seen alive \
             at the moment when most was. The largest of many noisy sizes is too large by chance, \
             and the peak live size is corrected for that.",
            sized(&figures.table.total.size),
            sized(&figures.totals.peak)
        ));
    }
    if figures.totals.live_young.bytes > figures.totals.live.bytes / 2.0 {
        notes.push(
            "More than half of what is live at the end is young: the program ended before a \
             collection could find what of it is garbage."
                .to_owned(),
        );
    }
    let unknown = figures.table.rows.iter().filter(|row| row.site.name.starts_with("(unknown"));
    let unknown: f64 = unknown.map(|row| row.share).sum();
    if unknown > 0.2 {
        notes.push(format!(
            "{} was allocated by code without debug information. Compile and link the program \
             with -g, and trace it again.",
            percent(unknown)
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
            "There are too many call paths to keep all: callers lack the rarest, each of {} at most.",
            count(limits.samples_missing_from_callers, "sample", "samples")
        ));
    }
    notes
}
