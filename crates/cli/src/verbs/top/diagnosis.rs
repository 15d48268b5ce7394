//! The panel with the diagnosis of what is known so far. It is made by a thread of its own while the panel is in view,
//! so that the display goes on.

use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use heaptap_report::diagnosis::{Diagnosis, PageDiagnosis};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use crate::analysis::page_diagnosis::{DiagnosedFiles, DiagnosisOptions};
use crate::text::diagnosis::{facts, finding, is_said, looked_at, verdict};
use crate::text::names::escaped;
use crate::text::terminal::{fit, wrap};

const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);

/// How long one is shown at least while the program runs; longer if it takes long to make.
const APART: Duration = Duration::from_secs(10);
/// The most of the time that is spent on them.
const SHARE: u32 = 5;

/// Columns before the facts of a finding.
const INDENT: usize = 14;

/// The latest diagnosis, and the next if it is being made.
#[derive(Default)]
pub(super) struct DiagnosisView {
    latest: Option<Made>,
    making: Option<Making>,
    /// A key asks for another one.
    is_asked_for: bool,
    /// The age that was drawn, in seconds.
    shown_age: u64,
}

struct Made {
    diagnosis: PageDiagnosis,
    /// When it was begun: it knows of nothing later.
    begun: Instant,
    cost: Duration,
    /// Whether the program ran then.
    so_far: bool,
}

struct Making {
    result: Receiver<PageDiagnosis>,
    begun: Instant,
    so_far: bool,
}

impl DiagnosisView {
    /// Takes what was made, and begins to make another if that is due. Returns whether there is something new to draw.
    /// `trace`: its file, unless it is a pipe.
    pub(super) fn advance(&mut self, trace: Option<&Path>, is_running: bool) -> bool {
        let changed = self.take();
        if self.is_due(is_running) {
            self.begin(trace, is_running);
            return true;
        }
        let age = self.age().filter(|_| is_running).unwrap_or_default().as_secs();
        std::mem::replace(&mut self.shown_age, age) != age || changed
    }

    /// Another one is asked for, however old this one is.
    pub(super) fn renew(&mut self) {
        self.is_asked_for = self.latest.is_some();
    }

    /// Another trace is in view.
    pub(super) fn forget(&mut self) {
        *self = DiagnosisView::default();
    }

    fn age(&self) -> Option<Duration> {
        self.latest.as_ref().map(|made| made.begun.elapsed())
    }

    fn take(&mut self) -> bool {
        let Some(making) = &self.making else { return false };
        let diagnosis = match making.result.try_recv() {
            Ok(diagnosis) => diagnosis,
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => {
                PageDiagnosis::Failed { error: "the diagnosis stopped".to_owned() }
            }
        };
        let (begun, so_far) = (making.begun, making.so_far);
        self.latest = Some(Made { diagnosis, begun, cost: begun.elapsed(), so_far });
        self.making = None;
        true
    }

    fn is_due(&self, is_running: bool) -> bool {
        let is_old = |made: &Made| {
            made.so_far != is_running
                || is_running && made.begun.elapsed() >= APART.max(made.cost * SHARE)
        };
        self.making.is_none() && (self.is_asked_for || self.latest.as_ref().is_none_or(is_old))
    }

    fn begin(&mut self, trace: Option<&Path>, so_far: bool) {
        self.is_asked_for = false;
        let files = DiagnosedFiles::of_trace(trace.unwrap_or(Path::new("-")));
        let (sender, result) = channel();
        let make = move || {
            // Nobody waits for it any more if the program ends.
            let _ = sender.send(files.in_background(&DiagnosisOptions::default(), so_far));
        };
        // If no thread can be started, the channel is closed.
        let _ = thread::Builder::new().spawn(make);
        self.making = Some(Making { result, begun: Instant::now(), so_far });
    }

    /// The title of the panel, and its lines.
    pub(super) fn lines(&self, columns: usize) -> (String, Vec<Line<'static>>) {
        let Some(made) = &self.latest else {
            return (" diagnosis: reading what there is so far…".to_owned(), Vec::new());
        };
        let age = match (made.so_far, made.begun.elapsed().as_secs()) {
            (true, seconds) => format!(" so far, {seconds} s old"),
            (false, _) => String::new(),
        };
        let more = if self.making.is_some() { ", reading again…" } else { "" };
        let lines = match &made.diagnosis {
            PageDiagnosis::Ready { diagnosis, .. } => diagnosis_lines(diagnosis, columns),
            PageDiagnosis::Failed { error } => wrapped("", error, columns, Style::new()),
            PageDiagnosis::Waiting => Vec::new(),
        };
        (format!(" diagnosis{age}{more}"), lines)
    }
}

fn diagnosis_lines(diagnosis: &Diagnosis, columns: usize) -> Vec<Line<'static>> {
    let mut lines = wrapped("", &verdict(diagnosis), columns, STRONG);
    if let Some(command) = &diagnosis.verdict.command {
        lines.extend(wrapped("try", command, columns, Style::new()));
    }
    for (number, one) in diagnosis.findings.iter().enumerate() {
        if number > 0 || !is_said(diagnosis, one) {
            lines.push(Line::default());
            lines.extend(wrapped("", &finding(one), columns, Style::new()));
        }
        for (label, fact) in facts(one) {
            lines.extend(wrapped(label, &fact, columns, Style::new()));
        }
    }
    lines.push(Line::default());
    lines.extend(wrapped("looked at", &looked_at(&diagnosis.examined), columns, FAINT));
    for remark in &diagnosis.remarks {
        lines.extend(wrapped("remark", remark, columns, FAINT));
    }
    lines
}

/// A text behind its label; without one, from the left.
fn wrapped(label: &str, text: &str, columns: usize, style: Style) -> Vec<Line<'static>> {
    let indent = if label.is_empty() { 1 } else { INDENT };
    let room = columns.saturating_sub(indent + 1);
    let parts = wrap(&escaped(text), room).into_iter().enumerate();
    let line = |(at, part): (usize, String)| {
        let label = if at == 0 { label } else { "" };
        Line::styled(format!(" {label:<width$}{}", fit(&part, room), width = indent - 1), style)
    };
    parts.map(line).collect()
}
