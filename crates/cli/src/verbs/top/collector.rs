//! The time line: the live size as a chart, and below it, on the same axis, what the collector did and
//! what memory the process had.

use heaptap_probes::History;
use heaptap_report::figures::probes::figures::ProbeClock;
use heaptap_report::figures::probes::intervals::{Interval, LiveBuckets, TimeLine, paused_shares};
use heaptap_report::figures::probes::words::{grouped, nanos};
use heaptap_report::figures::units::{bytes, percent, short_duration};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::text::terminal::{pad, wrap};
use crate::verbs::top::chart::{ChartOf, SCALE, bar, chart, cursor_column};

/// The columns of the names, at the left of the scale.
const NAMES: usize = 9;

/// The least height of the chart above the strips.
const LEAST_CHART: usize = 6;

/// The shortest time of a bar, in microseconds. The program is asked each tenth of a second: in less than a
/// few of these, rates would depend on how many of them are in it.
const SHORTEST: u64 = 500_000;

/// A line of bars: its name, its figure, and the unit of that.
struct Strip {
    name: &'static str,
    /// Those with a higher rank are left out first.
    rank: u8,
    figure: fn(&Interval) -> Option<f64>,
    shown: fn(f64) -> String,
}

static STRIPS: [Strip; 8] = [
    Strip {
        name: "minor GC",
        rank: 4,
        figure: |row| rate(row, row.minor_collections),
        shown: per_second,
    },
    Strip {
        name: "major GC",
        rank: 3,
        figure: |row| rate(row, row.major_collections),
        shown: per_second,
    },
    Strip { name: "paused", rank: 1, figure: paused_share, shown: percent },
    Strip { name: "longest", rank: 2, figure: longest, shown: nanos },
    Strip { name: "heap", rank: 0, figure: |row| whole(row.heap_bytes), shown: bytes },
    Strip { name: "in use", rank: 5, figure: |row| whole(row.heap_used_bytes), shown: bytes },
    Strip { name: "RSS", rank: 0, figure: |row| whole(row.rss_bytes), shown: bytes },
    Strip { name: "cgroup", rank: 6, figure: |row| whole(row.cgroup_usage_bytes), shown: bytes },
];

fn whole(number: Option<u64>) -> Option<f64> {
    number.map(|number| number as f64)
}

fn rate(row: &Interval, number: Option<u64>) -> Option<f64> {
    let seconds = row.to_us.saturating_sub(row.from_us).max(1) as f64 / 1e6;
    number.map(|number| number as f64 / seconds)
}

fn per_second(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.1}/s") } else { format!("{}/s", grouped(rate.round() as u64)) }
}

/// The share of the interval in which the program stood still. Bars overlap, so a pause that is
/// longer than one is in each.
fn paused_share(row: &Interval) -> Option<f64> {
    paused_shares(std::slice::from_ref(row)).pop().flatten()
}

fn longest(row: &Interval) -> Option<f64> {
    Some(row.paused().longest_ns as f64)
}

/// The screen. Without a sidecar, the chart alone.
pub(super) fn time_line(
    of: ChartOf<'_>,
    history: Option<&History>,
    columns: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let Some(history) = history else { return chart(of, columns, height) };
    let ChartOf { size, moment, .. } = of;
    let bars = columns.saturating_sub(NAMES + SCALE + 2).max(1);
    let live = LiveBuckets { bucket_us: size.bucket_us, most_bytes: &size.most_bytes };
    let line = TimeLine::new(history, live);
    let total = size.bucket_us.saturating_mul(size.most_bytes.len() as u64).max(1);
    let edge = |column: usize| (u128::from(total) * column as u128 / bars as u128) as u64;
    let row = |column: usize| {
        let to = edge(column + 1);
        line.interval(edge(column).min(to.saturating_sub(SHORTEST)), to)
    };
    let rows: Vec<Interval> = (0..bars).map(row).collect();
    let latest = history.span.map_or(0, |(_, last)| ProbeClock::of(history).micros(last));
    let facts = facts(&line, moment.unwrap_or(latest), columns);
    let room = height.saturating_sub(LEAST_CHART + facts.len());
    let strips = strips(&rows, cursor_column(size, moment, bars), room);
    let chart_height = height.saturating_sub(strips.len() + facts.len());
    let mut lines: Vec<Line<'static>> = chart(of, columns.saturating_sub(NAMES), chart_height)
        .into_iter()
        .map(|mut line| {
            line.spans.insert(0, Span::raw(" ".repeat(NAMES)));
            line
        })
        .collect();
    lines.extend(strips);
    lines.extend(facts);
    lines
}

/// As many strips as there is room for, of those of which something is known.
fn strips(rows: &[Interval], cursor: Option<usize>, room: usize) -> Vec<Line<'static>> {
    let known = |strip: &&Strip| {
        rows.iter().any(|row| (strip.figure)(row).is_some_and(|value| value > 0.0))
    };
    let mut shown: Vec<&Strip> = STRIPS.iter().filter(known).collect();
    while shown.len() > room {
        let last = shown.iter().enumerate().max_by_key(|(_, strip)| strip.rank);
        let Some((at, _)) = last else { break };
        shown.remove(at);
    }
    shown.into_iter().map(|strip| strip_line(strip, rows, cursor)).collect()
}

fn strip_line(strip: &Strip, rows: &[Interval], cursor: Option<usize>) -> Line<'static> {
    let values: Vec<Option<f64>> = rows.iter().map(strip.figure).collect();
    let most = values.iter().flatten().fold(0.0_f64, |most, &value| most.max(value));
    let label =
        format!("{}{:>SCALE$} ", pad(&format!(" {}", strip.name), NAMES), (strip.shown)(most));
    let mut spans = vec![Span::raw(label)];
    for (column, value) in values.into_iter().enumerate() {
        let drawn = value.filter(|&value| value > 0.0).map_or(' ', |value| bar(value, most));
        let style = match Some(column) == cursor {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => Style::new(),
        };
        spans.push(Span::styled(drawn.to_string(), style));
    }
    Line::from(spans)
}

/// The figures of the second before the moment in view, and the limits.
fn facts(line: &TimeLine<'_>, to: u64, columns: usize) -> Vec<Line<'static>> {
    let row = line.interval(to.saturating_sub(1_000_000), to.max(1));
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: Option<String>| {
        facts.extend(value.map(|value| format!("{name} {value}")));
    };
    let size = |size: Option<u64>| size.map(|size| bytes(size as f64));
    fact("heap", size(row.heap_bytes));
    fact("in use", size(row.heap_used_bytes));
    fact("promoted", row.promotion().map(percent));
    fact("RSS", size(row.rss_bytes));
    fact("cgroup", size(row.cgroup_usage_bytes));
    fact("limit", size(row.cgroup_limit_bytes));
    fact("threads", row.threads.map(grouped));
    fact("domains", row.domains.map(grouped));
    let paused = row.paused();
    let pauses = (paused.count > 0).then(|| {
        format!(
            "{} in {} pauses, longest {}",
            nanos(paused.total_ns as f64),
            grouped(paused.count),
            nanos(paused.longest_ns as f64)
        )
    });
    fact("paused", pauses);
    if facts.is_empty() {
        return Vec::new();
    }
    let text = format!("the second until {}: {}", short_duration(to as f64), facts.join(", "));
    let lines = wrap(&text, columns.saturating_sub(1)).into_iter();
    lines
        .map(|line| Line::styled(format!(" {line}"), Style::new().add_modifier(Modifier::DIM)))
        .collect()
}
