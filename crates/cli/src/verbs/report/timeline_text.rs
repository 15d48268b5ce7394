//! The time line, laid out for people and for spreadsheets.

use std::fmt::Write as _;

use heaptap_report::figures::probes::intervals::{Interval, Paused};
use heaptap_report::figures::probes::words::{grouped, nanos};
use heaptap_report::figures::units::{bytes, count, percent, short_duration};

use crate::text::terminal::{Layout, width, wrap, wrap_indented};
use crate::verbs::report::timeline::TimelineFigures;

/// A column: its heading, and what it shows of an interval.
struct Column {
    heading: &'static str,
    /// Columns with a higher rank are left out first where there is no room.
    rank: u8,
    cell: fn(&Interval) -> Option<String>,
}

static COLUMNS: [Column; 12] = [
    Column { heading: "from", rank: 0, cell: |row| Some(short_duration(row.from_us as f64)) },
    Column { heading: "live est.", rank: 1, cell: |row| row.live_bytes.map(bytes) },
    Column { heading: "minor", rank: 2, cell: |row| row.minor_collections.map(grouped) },
    Column { heading: "major", rank: 2, cell: |row| row.major_collections.map(grouped) },
    Column { heading: "paused", rank: 3, cell: |row| pause(row, row.paused().total_ns) },
    Column { heading: "longest", rank: 3, cell: |row| pause(row, row.paused().longest_ns) },
    Column { heading: "promoted", rank: 7, cell: |row| row.promotion().map(percent) },
    Column { heading: "heap", rank: 4, cell: |row| size(row.heap_bytes) },
    Column { heading: "in use", rank: 6, cell: |row| size(row.heap_used_bytes) },
    Column { heading: "RSS", rank: 5, cell: |row| size(row.rss_bytes) },
    Column { heading: "cgroup", rank: 8, cell: |row| size(row.cgroup_usage_bytes) },
    Column { heading: "threads", rank: 9, cell: threads },
];

fn size(size: Option<u64>) -> Option<String> {
    size.map(|size| bytes(size as f64))
}

fn pause(row: &Interval, ns: u64) -> Option<String> {
    (row.paused().count > 0).then(|| nanos(ns as f64))
}

/// Threads, and domains if there are several.
fn threads(row: &Interval) -> Option<String> {
    let threads = row.threads?;
    let domains = row.domains.filter(|&domains| domains > 1);
    Some(domains.map_or(threads.to_string(), |domains| format!("{threads} ({domains} dom.)")))
}

/// The table, then totals.
pub(crate) fn report(figures: &TimelineFigures, layout: Layout) -> String {
    let mut text = String::new();
    table(&mut text, figures, layout);
    text.push('\n');
    for (label, value) in totals(figures) {
        let value = wrap_indented(&value, 13, layout.width);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{} {value}", layout.strong(&format!("{label:<12}")));
    }
    text
}

/// A column with its cells.
struct FilledColumn {
    column: &'static Column,
    cells: Vec<String>,
    width: usize,
}

impl FilledColumn {
    /// `None` if nothing is known.
    fn of(column: &'static Column, rows: &[Interval]) -> Option<FilledColumn> {
        let cells: Vec<Option<String>> = rows.iter().map(column.cell).collect();
        cells.iter().any(Option::is_some).then(|| {
            let cells: Vec<String> =
                cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned())).collect();
            let widest = cells.iter().map(|cell| width(cell)).max().unwrap_or(0);
            FilledColumn { column, cells, width: widest.max(width(column.heading)) }
        })
    }

    fn aligned(&self, cell: &str) -> String {
        format!("{}{cell}", " ".repeat(self.width.saturating_sub(width(cell))))
    }
}

fn table(text: &mut String, figures: &TimelineFigures, layout: Layout) {
    let rows = &figures.intervals;
    let mut shown: Vec<FilledColumn> =
        COLUMNS.iter().filter_map(|column| FilledColumn::of(column, rows)).collect();
    let mut hidden = Vec::new();
    while shown.iter().map(|column| column.width + 2).sum::<usize>()
        > layout.width.saturating_add(2)
    {
        let last = shown.iter().enumerate().max_by_key(|(_, filled)| filled.column.rank);
        let Some((at, _)) = last.filter(|(_, filled)| filled.column.rank > 0) else { break };
        hidden.push(shown.remove(at).column.heading);
    }
    let headings: Vec<String> =
        shown.iter().map(|filled| filled.aligned(filled.column.heading)).collect();
    let _ = writeln!(text, "{}", layout.strong(&headings.join("  ")));
    for row in 0..rows.len() {
        let cells = shown.iter().filter_map(|filled| Some(filled.aligned(filled.cells.get(row)?)));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  "));
    }
    if !hidden.is_empty() {
        let note = format!("There is no room for {}: see --json or --csv.", hidden.join(", "));
        let _ = writeln!(text, "{}", layout.faint(&wrap(&note, layout.width).join("\n")));
    }
}

/// Sums, and the largest values with their times.
fn totals(figures: &TimelineFigures) -> Vec<(&'static str, String)> {
    let total = &figures.total;
    let selected = if figures.selected { ", of selected blocks only" } else { "" };
    let end =
        if figures.complete { "" } else { "; the time line has no end: killed or still running" };
    let mut lines =
        vec![("duration", format!("{}{end}", short_duration(figures.duration_us as f64)))];
    if let Some(live) = total.live_bytes {
        lines.push(("live est.", format!("{} at most, by the samples{selected}", bytes(live))));
    }
    let collections: Vec<String> = [
        total.minor_collections.map(|number| format!("{} minor", grouped(number))),
        total.major_collections.map(|number| format!("{} major", grouped(number))),
        total.compactions.map(|number| count(number, "compaction", "compactions")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !collections.is_empty() {
        lines.push(("collections", collections.join(", ")));
    }
    let kinds = [("minor", total.minor), ("major", total.major), ("finalisers", total.finalisers)];
    for (kind, paused) in kinds.into_iter().filter(|(_, paused)| paused.count > 0) {
        lines.push(("paused", format!("{kind}: {}", pauses(&paused, figures.duration_us))));
    }
    if let Some(share) = total.promotion() {
        let words = format!("{} of the words allocated in the minor heap", percent(share));
        lines.push(("promoted", words));
    }
    type Figure = fn(&Interval) -> Option<u64>;
    let largest: [(&'static str, Figure); 3] = [
        ("heap", |row| row.heap_bytes),
        ("RSS", |row| row.rss_bytes),
        ("cgroup", |row| row.cgroup_usage_bytes),
    ];
    for (label, figure) in largest {
        let Some(most) = figure(total) else { continue };
        let row = figures.intervals.iter().find(|row| figure(row) == Some(most));
        let from = row.map_or(0, |row| row.from_us);
        let mut value =
            format!("{} at most, after {}", bytes(most as f64), short_duration(from as f64));
        if let Some(limit) =
            total.cgroup_limit_bytes.filter(|&limit| label == "cgroup" && limit > 0)
        {
            let share = percent(most as f64 / limit as f64);
            value += &format!(", {share} of the limit of {}", bytes(limit as f64));
        }
        lines.push((label, value));
    }
    if let Some(first) = figures.pressure.first() {
        let times = count(figures.pressure.len() as u64, "time", "times");
        let (left, after) =
            (bytes(first.headroom_bytes as f64), short_duration(first.time_us as f64));
        lines.push((
            "pressure",
            format!("memory ran short {times}, first after {after} with {left} left"),
        ));
    }
    if figures.lost_slices > 0 {
        let lost = count(figures.lost_slices, "pause is", "pauses are");
        lines.push(("summed", format!("{lost} in the totals, but not recorded one by one")));
    }
    lines
}

fn pauses(paused: &Paused, duration_us: u64) -> String {
    let share = paused.total_ns as f64 / (duration_us as f64 * 1e3).max(1.0);
    format!(
        "{} in {}, {} of the time, longest {}",
        nanos(paused.total_ns as f64),
        count(paused.count, "pause", "pauses"),
        percent(share),
        nanos(paused.longest_ns as f64)
    )
}

/// The intervals as comma-separated values; what is not known is empty.
pub(crate) fn csv(figures: &TimelineFigures) -> String {
    let mut text = String::from(
        "from_us,to_us,minor_collections,major_collections,compactions,pauses,paused_ns,longest_pause_ns,\
         minor_words,promoted_words,heap_bytes,heap_used_bytes,rss_bytes,cgroup_usage_bytes,\
         cgroup_limit_bytes,threads,domains,live_bytes\n",
    );
    let known = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    for row in &figures.intervals {
        let Paused { count, total_ns, longest_ns } = row.paused();
        let cells = [
            row.from_us.to_string(),
            row.to_us.to_string(),
            known(row.minor_collections),
            known(row.major_collections),
            known(row.compactions),
            count.to_string(),
            total_ns.to_string(),
            longest_ns.to_string(),
            known(row.minor_words),
            known(row.promoted_words),
            known(row.heap_bytes),
            known(row.heap_used_bytes),
            known(row.rss_bytes),
            known(row.cgroup_usage_bytes),
            known(row.cgroup_limit_bytes),
            known(row.threads),
            known(row.domains),
            row.live_bytes.map(|live| live.to_string()).unwrap_or_default(),
        ];
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}
