//! The state of the view, and what can be done to it.

use std::time::{Duration, Instant};

use heaptap_report::figures::Figures;
use heaptap_report::{Caller, Metric, Regex};

use crate::exit_status::Failure;
use crate::io::live_trace::LiveState;
use crate::verbs::top::diagnosis::DiagnosisView;
use crate::verbs::top::session::{LiveSize, Query, Session};
use crate::verbs::top::sidecar::SidecarView;
use crate::verbs::top::table::{Mark, Order, TableRow, rows};

/// The shortest time between two computations of the figures, unless a key asks for them.
const PACE: Duration = Duration::from_millis(250);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Screen {
    Sites,
    Timeline,
    Callers,
    Probes,
    Log,
    Diagnosis,
    Help,
}

/// What a person looks at.
pub(super) struct App {
    pub(super) session: Session,
    pub(super) screen: Screen,
    pub(super) query: Query,
    pub(super) order: Order,
    /// The filter as it was typed.
    pub(super) pattern: String,
    /// The filter while it is being typed.
    pub(super) typed: Option<String>,
    /// Why the last filter is none.
    pub(super) problem: Option<String>,
    /// The selected row, the first that is shown, and how many there was room for. The drawing
    /// keeps the selected one in view.
    pub(super) selected: usize,
    pub(super) first: usize,
    pub(super) room: usize,
    /// The most rows that are shown, if the screen has room for more.
    pub(super) most_rows: usize,
    /// How far the list of callers is scrolled.
    pub(super) scrolled: usize,
    pub(super) mark: Option<Mark>,
    pub(super) figures: Option<Figures>,
    pub(super) rows: Vec<TableRow>,
    pub(super) callers: Vec<Caller>,
    pub(super) live_size: LiveSize,
    /// What the program says of itself.
    pub(super) sidecar: SidecarView,
    /// What is wrong with its memory.
    pub(super) diagnosis: DiagnosisView,
    /// The metric before `o`.
    pub(super) metric: Metric,
    /// The figures are not those that the view asks for. Keys only say so: what several of them ask
    /// for is computed once.
    is_stale: bool,
    /// The sizes at the mark are those of another question.
    is_mark_stale: bool,
    are_callers_stale: bool,
    /// The trace has grown since the figures were computed.
    has_grown: bool,
    /// The second that is shown.
    second: u64,
    computed: Instant,
    /// How long that took.
    cost: Duration,
}

impl App {
    pub(super) fn new(session: Session, query: Query, pattern: &str) -> App {
        let metric = query.metric;
        App {
            session,
            screen: Screen::Sites,
            query,
            order: Order::Size,
            pattern: pattern.to_owned(),
            typed: None,
            problem: None,
            selected: 0,
            first: 0,
            room: 0,
            most_rows: usize::MAX,
            scrolled: 0,
            mark: None,
            figures: None,
            rows: Vec::new(),
            callers: Vec::new(),
            live_size: LiveSize::default(),
            sidecar: SidecarView::default(),
            diagnosis: DiagnosisView::default(),
            metric,
            is_stale: true,
            is_mark_stale: false,
            are_callers_stale: false,
            has_grown: false,
            second: 0,
            computed: Instant::now(),
            cost: Duration::ZERO,
        }
    }

    /// Reads on for at most this long, and brings the figures up to date if that is due.
    /// Returns whether there is something new to draw.
    pub(super) fn advance(&mut self, time: Duration) -> Result<bool, Failure> {
        let replaced = self.session.live.replaced();
        let mut changed = self.session.advance(time)?;
        changed |= self.read_sidecar(time);
        if self.session.live.replaced() != replaced {
            // Moments of another trace mean nothing in this one.
            (self.query.moment, self.mark) = (None, None);
            self.is_stale = true;
            self.diagnosis.forget();
        }
        self.has_grown |= changed;
        changed |= self.advance_diagnosis();
        if let Some(moment) = self.sidecar.due_stop(self.latest()) {
            self.stop_at(moment);
        }
        let is_due = self.computed.elapsed() >= PACE.max(self.cost * 4);
        if self.is_stale || self.has_grown && is_due {
            self.compute();
            return Ok(true);
        }
        self.settle();
        // Time goes by, whether or not anything is sampled.
        let latest = self.latest();
        let ticks = latest / 1_000_000 != self.second;
        if ticks {
            self.second = latest / 1_000_000;
            self.live_size.extend_to(latest);
        }
        Ok(changed || ticks)
    }

    /// Microseconds from the start of the trace to the latest moment that is known of.
    pub(super) fn latest(&self) -> u64 {
        self.session.live.latest().max(self.sidecar.latest())
    }

    /// Reads on in the sidecar, for at most this long. Returns whether anything changed.
    pub(super) fn read_sidecar(&mut self, time: Duration) -> bool {
        let live = &self.session.live;
        let start = live.info().map(|info| info.start_time);
        self.sidecar.advance(start, (live.path(), live.file_start()), Instant::now() + time)
    }

    /// Has the diagnosis made while it is in view. Returns whether there is another one to draw.
    fn advance_diagnosis(&mut self) -> bool {
        let live = &self.session.live;
        let is_running = live.state() != LiveState::Ended;
        self.screen == Screen::Diagnosis && self.diagnosis.advance(live.path(), is_running)
    }

    /// Shows the diagnosis; if it is in view, another one.
    pub(super) fn diagnose(&mut self) {
        if self.screen == Screen::Diagnosis {
            self.diagnosis.renew();
        } else {
            self.show(Screen::Diagnosis);
        }
    }

    /// Computes what is shown.
    pub(super) fn compute(&mut self) {
        let begin = Instant::now();
        self.live_size = self.session.live_size(self.query.filter.as_ref());
        self.live_size.extend_to(self.latest());
        if std::mem::take(&mut self.is_mark_stale)
            && let Some(Mark { moment, .. }) = self.mark
        {
            let old_before = self.sidecar.old_before(Some(moment));
            let query = Query { moment: Some(moment), old_before, ..self.query.clone() };
            self.mark = self.session.figures(&query).map(|figures| Mark::new(moment, &figures));
        }
        if self.is_stale || self.query.moment.is_none() {
            self.query.old_before = self.sidecar.old_before(self.query.moment);
            self.figures = self.session.figures(&self.query);
            self.sort();
            self.are_callers_stale = self.screen == Screen::Callers;
        }
        (self.is_stale, self.has_grown) = (false, false);
        self.settle();
        (self.computed, self.cost) = (Instant::now(), begin.elapsed());
    }

    /// Computes what keys have asked for since.
    pub(super) fn settle(&mut self) {
        if self.is_stale {
            return self.compute();
        }
        if std::mem::take(&mut self.are_callers_stale) {
            let site = self.rows.get(self.selected).map(|row| row.site.clone());
            self.callers =
                site.map_or_else(Vec::new, |site| self.session.callers(&self.query, site));
        }
    }

    pub(super) fn sort(&mut self) {
        let chosen = self.rows.get(self.selected).map(|row| row.site.clone());
        let figures = self.figures.as_ref();
        self.rows =
            figures.map_or_else(Vec::new, |figures| rows(figures, self.mark.as_ref(), self.order));
        // The selection stays with its row, unless it is at the top.
        let kept = chosen.filter(|_| self.selected > 0);
        let kept = kept.and_then(|site| self.rows.iter().position(|row| row.site == site));
        self.selected = kept.unwrap_or(0);
    }

    /// Shows only blocks with a frame that matches; all of them if the pattern is empty.
    pub(super) fn filter(&mut self, pattern: &str) {
        self.problem = None;
        let filter = match pattern {
            "" => None,
            _ => match Regex::new(pattern) {
                Ok(regex) => Some(regex),
                Err(error) => {
                    // The first line repeats the pattern, the last says what is wrong.
                    let why = error.to_string();
                    let why = why.lines().last().unwrap_or_default().trim().to_owned();
                    self.problem = Some(format!("/{pattern}/ is no pattern: {why}"));
                    return;
                }
            },
        };
        (self.query.filter, self.pattern) = (filter, pattern.to_owned());
        self.renew();
    }

    /// Without filter and mark.
    pub(super) fn clear(&mut self) {
        self.problem = None;
        if self.query.filter.is_some() || self.mark.is_some() {
            (self.query.filter, self.mark) = (None, None);
            self.pattern.clear();
            self.order = Order::Size;
            self.is_stale = true;
        }
    }

    pub(super) fn show(&mut self, screen: Screen) {
        (self.screen, self.scrolled) = (screen, 0);
        self.are_callers_stale = screen == Screen::Callers;
    }

    pub(super) fn select(&mut self, rows: isize) {
        match self.screen {
            Screen::Sites => {
                let last = self.rows.len().saturating_sub(1);
                self.selected = self.selected.saturating_add_signed(rows).min(last);
            }
            _ => self.scrolled = self.scrolled.saturating_add_signed(rows),
        }
    }

    pub(super) fn measure(&mut self, metric: Metric) {
        self.query.metric = metric;
        self.renew();
    }

    /// The question has changed, and with it the sizes at the mark.
    pub(super) fn renew(&mut self) {
        (self.is_stale, self.is_mark_stale) = (true, true);
    }

    /// Keeps this moment in view while the trace grows, or returns to the latest.
    pub(super) fn pause(&mut self) {
        let moment = match self.query.moment {
            Some(_) => None,
            None => Some(self.latest()),
        };
        self.look_at(moment);
    }

    pub(super) fn look_at(&mut self, moment: Option<u64>) {
        self.query.moment = moment;
        self.sidecar.look_at(moment);
        self.is_stale = true;
    }

    /// Stands where the program asks for it, unless somebody looks at another moment.
    fn stop_at(&mut self, moment: u64) {
        if self.query.moment.is_none() {
            self.look_at(Some(moment));
        }
    }

    /// A second; less in a trace of less than 20 of them.
    fn step(&self) -> u64 {
        (self.latest() / 20).clamp(1, 1_000_000)
    }

    pub(super) fn go_back(&mut self, steps: u64) {
        let from = self.query.moment.unwrap_or(self.latest());
        self.look_at(Some(from.saturating_sub(steps * self.step())));
    }

    pub(super) fn go_on(&mut self, steps: u64) {
        let Some(from) = self.query.moment else { return };
        // Beyond the latest moment, it stays there.
        self.look_at(Some((from + steps * self.step()).min(self.latest())));
    }

    /// Sets a mark at the moment in view, from which differences are shown; removes it if
    /// there is one.
    pub(super) fn set_mark(&mut self) {
        if self.has_grown {
            self.compute();
        }
        self.settle();
        let moment = self.query.moment.unwrap_or(self.latest());
        self.mark = match (&self.mark, &self.figures) {
            (None, Some(figures)) => Some(Mark::new(moment, figures)),
            _ => None,
        };
        self.order = if self.mark.is_some() { Order::Change } else { Order::Size };
        self.sort();
    }
}
