//! Probes, laid out for people.

use std::fmt::Write as _;

use heaptap_report::figures::probes::figures::{ProbeFigures, ProbeLine, ProbeRow};
use heaptap_report::figures::probes::tree::probe_tree;
use heaptap_report::figures::probes::words::described;
use heaptap_report::figures::units::{count, short_duration};

use crate::text::escape::Escaped;
use crate::text::names::{escaped_or_dash, tree_label};
use crate::text::terminal::{Layout, fit, pad, width, wrap_indented};

/// The widest column of names. A name may have 1,024 bytes, and would push all others aside.
const WIDEST_NAMES: usize = 60;

/// The most lines of the log in a report; `--log` prints all.
const LOG_LINES: usize = 10;

/// Totals, the tree, the last lines of the log, and where the program asked to stop.
pub(crate) fn report(figures: &ProbeFigures, layout: Layout) -> String {
    let mut text = String::new();
    for (label, value) in head(figures) {
        let value = wrap_indented(&value, 13, layout.width);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{} {value}", layout.strong(&format!("{label:<12}")));
    }
    if !figures.probes.is_empty() {
        text.push('\n');
        tree(&mut text, &figures.probes, layout);
    }
    let hidden = figures.log.len().saturating_sub(LOG_LINES);
    let more = match hidden {
        0 => String::new(),
        _ => format!(" (the last {LOG_LINES} of {} lines; --log shows all)", figures.log.len()),
    };
    lines(&mut text, &format!("log{more}"), &figures.log[hidden..], layout);
    lines(&mut text, "pauses that the program asked for", &figures.stops, layout);
    text
}

/// The whole log, and nothing else.
pub(crate) fn log(figures: &ProbeFigures) -> String {
    let mut text = String::new();
    for line in &figures.log {
        let _ = writeln!(text, "{}", log_line(line));
    }
    text
}

fn head(figures: &ProbeFigures) -> Vec<(&'static str, String)> {
    let program = escaped_or_dash(&figures.program);
    let program = match figures.pid {
        Some(pid) => format!("{program} (process {pid})"),
        None => program,
    };
    let end = if figures.complete { "" } else { ", without an end: killed or still running" };
    let mut head = vec![
        ("program", program),
        ("until", format!("{}{end}", short_duration(figures.moment_us as f64))),
        ("probes", figures.probes.len().to_string()),
    ];
    if figures.lost_log_lines > 0 {
        let lost = count(figures.lost_log_lines, "line of the log", "lines of the log");
        head.push(("lost", format!("{lost}: there was no room for them")));
    }
    head
}

/// The tree: name, kind, state.
fn tree(text: &mut String, probes: &[ProbeRow], layout: Layout) {
    let lines = probe_tree(probes.iter().map(|probe| probe.name.as_str()));
    let labels: Vec<String> = lines.iter().map(tree_label).collect();
    let longest = labels.iter().map(|label| width(label)).max().unwrap_or(0);
    // Names leave room for what is said of them.
    let column = longest.min((layout.width / 2).max(20)).min(WIDEST_NAMES);
    for (line, label) in lines.iter().zip(labels) {
        // In a file names are whole.
        let label = if layout.width == usize::MAX { label } else { fit(&label, column) };
        let label = pad(&label, column);
        let Some(probe) = line.probe.and_then(|at| probes.get(at)) else {
            let _ = writeln!(text, "{}", layout.strong(label.trim_end()));
            continue;
        };
        let kind = layout.faint(&format!("{:<5}", probe.kind));
        let state = wrap_indented(&described(probe), column + 9, layout.width);
        let _ = writeln!(text, "{label}  {kind}  {state}");
    }
}

fn lines(text: &mut String, title: &str, lines: &[ProbeLine], layout: Layout) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{}", layout.strong(title));
    for line in lines {
        let _ = writeln!(text, "{}", fit(&log_line(line), layout.width));
    }
}

pub(crate) fn log_line(line: &ProbeLine) -> String {
    let seconds = line.time_us as f64 / 1e6;
    format!("{seconds:>12.6}  {}", Escaped(line.text.as_bytes()))
}
