//! The screens of what the program says of itself: its probes, and its log.

use heaptap_probes::{History, Probe, Sample};
use heaptap_report::figures::probes::figures::{ProbeClock, ProbeFigures, ProbeLine, opened};
use heaptap_report::figures::probes::tree::probe_tree;
use heaptap_report::figures::probes::words::brief;
use heaptap_report::figures::units::count;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::text::escape::Escaped;
use crate::text::names::tree_label;
use crate::text::terminal::{fit, pad, sparkline, width, wrap};
use crate::verbs::top::sidecar::SidecarView;

const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);

/// Which part of a screen is asked for.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub(super) columns: usize,
    pub(super) lines: usize,
    /// The first lines that are not shown.
    pub(super) scrolled: usize,
}

/// The probes as a tree, each with its state at the moment in view and its past.
pub(super) fn probes(
    view: &mut SidecarView,
    moment: Option<u64>,
    extent: Extent,
) -> Vec<Line<'static>> {
    let problem = view.problem();
    let (Some(figures), Some(history)) = (view.figures(moment), view.history()) else {
        return explained(problem.as_deref().unwrap_or_default(), extent);
    };
    if figures.probes.is_empty() {
        return explained("the program has opened no probe", extent);
    }
    let mut lines = explained(problem.as_deref().unwrap_or_default(), extent);
    lines.extend(tree_lines(&figures, history, moment, extent.columns));
    let title = format!(" {}", count(figures.probes.len() as u64, "probe", "probes"));
    scrolled(title, lines, extent)
}

/// The widths of the columns of the tree.
struct Columns {
    name: usize,
    state: usize,
    more: usize,
    past: usize,
}

fn tree_lines(
    figures: &ProbeFigures,
    history: &History,
    moment: Option<u64>,
    columns: usize,
) -> Vec<Line<'static>> {
    let tree = probe_tree(figures.probes.iter().map(|probe| probe.name.as_str()));
    let time = moment.map_or(u64::MAX, |moment| ProbeClock::of(history).time(moment));
    let past: Vec<&Probe> = opened(history, time).collect();
    let states: Vec<(String, String)> = figures
        .probes
        .iter()
        .map(|probe| match &probe.state {
            None => (String::new(), "never changed".to_owned()),
            Some(state) => brief(state),
        })
        .collect();
    let labels: Vec<String> = tree.iter().map(tree_label).collect();
    let widest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
    let state = widest(&mut states.iter().map(|(state, _)| width(state))).min(20);
    let more = widest(&mut states.iter().map(|(_, more)| width(more)))
        .min(columns.saturating_sub(state) / 2);
    let name = widest(&mut labels.iter().map(|label| width(label)));
    // One long name does not take the room of all others.
    let name = name.min(columns.saturating_sub(state + more + 6)).min(columns / 2).max(12);
    // What is left shows the past, if that is worth it.
    let left = columns.saturating_sub(name + state + more + 8);
    let wide = Columns { name, state, more, past: if left < 10 { 0 } else { left.min(60) } };
    let mut lines = Vec::new();
    for (line, label) in tree.iter().zip(labels) {
        let label = pad(&fit(&label, wide.name), wide.name);
        let Some(at) = line.probe else {
            lines.push(Line::styled(format!(" {}", label.trim_end()), STRONG));
            continue;
        };
        let (state, more) = states.get(at).cloned().unwrap_or_default();
        let state = fit(&state, wide.state);
        let indent = " ".repeat(wide.state.saturating_sub(width(&state)));
        let bars =
            past.get(at).map(|probe| spark(probe, history, moment, wide.past)).unwrap_or_default();
        lines.push(Line::from(vec![
            Span::raw(format!(
                " {label}  {indent}{state}  {}",
                pad(&fit(&more, wide.more), wide.more)
            )),
            Span::styled(format!("  {bars}"), FAINT),
        ]));
    }
    lines
}

/// The past of a probe as bars, until the moment in view: of a total its growth in a second or in the
/// time of a bar, whichever is longer, else the number.
fn spark(probe: &Probe, history: &History, moment: Option<u64>, columns: usize) -> String {
    let Some((first, last)) = history.span.filter(|_| columns > 0) else { return String::new() };
    if probe.series.last().is_none_or(|sample| sample.number().is_none()) {
        return String::new();
    }
    let clock = ProbeClock::of(history);
    let end = moment.map_or(last, |moment| clock.time(moment)).max(first);
    let number = |time: u64| probe.series.at(time).and_then(Sample::number).unwrap_or(0.0);
    let edge = |column: usize| {
        let part = u128::from(end - first) * column as u128 / columns as u128;
        first + part as u64
    };
    let window = edge(1).saturating_sub(first).max(1_000_000_000);
    let value = |column: usize| {
        let to = edge(column + 1);
        // Before the start nothing is known, and at the start what was before it.
        let from = to.saturating_sub(window).max(clock.time(0));
        let before = if probe.kind.is_total() { number(from) } else { 0.0 };
        number(to) - before
    };
    sparkline(&(0..columns).map(value).collect::<Vec<f64>>(), columns)
}

/// The log with the latest line first, and where the program asked to stop.
pub(super) fn log(
    view: &mut SidecarView,
    moment: Option<u64>,
    extent: Extent,
) -> Vec<Line<'static>> {
    let problem = view.problem();
    let Some(figures) = view.figures(moment) else {
        return explained(problem.as_deref().unwrap_or_default(), extent);
    };
    let line = |line: &ProbeLine, is_stop: bool| {
        let mark = if is_stop { "pause: " } else { "" };
        (line.time_us, is_stop, format!("{mark}{}", Escaped(line.text.as_bytes())))
    };
    let mut all: Vec<(u64, bool, String)> =
        figures.log.iter().map(|found| line(found, false)).collect();
    all.extend(figures.stops.iter().map(|found| line(found, true)));
    if all.is_empty() {
        return explained("the program has logged nothing", extent);
    }
    all.sort_by_key(|(time, ..)| std::cmp::Reverse(*time));
    let lost = match figures.lost_log_lines {
        0 => String::new(),
        lost => format!(", {lost} lost"),
    };
    let title =
        format!(" log, {}{lost}, the latest first", count(all.len() as u64, "line", "lines"));
    let room = extent.columns.saturating_sub(15);
    let mut lines = explained(problem.as_deref().unwrap_or_default(), extent);
    for (time, is_stop, text) in all.into_iter().skip(extent.scrolled).take(extent.lines) {
        let style = if is_stop { STRONG } else { Style::new() };
        let time = format!(" {:>11.3}  ", time as f64 / 1e6);
        let mut parts = wrap(&text, room).into_iter().map(|part| fit(&part, room));
        let first = parts.next().unwrap_or_default();
        lines.push(Line::from(vec![Span::styled(time, FAINT), Span::styled(first, style)]));
        lines.extend(parts.map(|part| Line::styled(format!("{}{part}", " ".repeat(14)), style)));
    }
    scrolled(title, lines, Extent { scrolled: 0, ..extent })
}

/// A title and what is below it.
pub(super) fn scrolled(
    title: String,
    lines: Vec<Line<'static>>,
    extent: Extent,
) -> Vec<Line<'static>> {
    let room = extent.lines.saturating_sub(1);
    let hidden = lines.len().saturating_sub(room).min(extent.scrolled);
    let mut all = vec![Line::styled(title, STRONG)];
    all.extend(lines.into_iter().skip(hidden).take(room));
    all
}

/// A sentence; no line if there is none.
fn explained(text: &str, extent: Extent) -> Vec<Line<'static>> {
    if text.is_empty() {
        return Vec::new();
    }
    let lines = wrap(text, extent.columns.saturating_sub(2));
    lines
        .into_iter()
        .map(|line| Line::raw(format!(" {}", fit(&line, extent.columns.saturating_sub(1)))))
        .collect()
}
