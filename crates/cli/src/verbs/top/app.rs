//! The state of the view, and what each key does to it.

use std::time::{Duration, Instant};

use heaptap_figures::{ALL_ROWS, Figures};
use heaptap_report::{Caller, Metric, Regex};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::exit_status::Failure;
use crate::verbs::top::session::{LiveSize, Query, Session};
use crate::verbs::top::sidecar::SidecarView;
use crate::verbs::top::table::{Mark, Order, TableRow, rows};

/// The shortest time between two computations of the figures, unless a key asks for them.
const PACE: Duration = Duration::from_millis(250);

/// What `m` chooses from.
const METRICS: [Metric; 4] = [Metric::Live, Metric::Allocated, Metric::Peak, Metric::Promoted];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Screen {
    Sites,
    Timeline,
    Callers,
    Probes,
    Log,
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
    /// The selected row, and the first that is shown. The drawing keeps the one in view.
    pub(super) selected: usize,
    pub(super) first: usize,
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
    /// The metric before `o`.
    metric: Metric,
    /// The figures are not those that the view asks for.
    is_stale: bool,
    /// The trace has grown since the figures were computed.
    has_grown: bool,
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
            most_rows: usize::MAX,
            scrolled: 0,
            mark: None,
            figures: None,
            rows: Vec::new(),
            callers: Vec::new(),
            live_size: LiveSize::default(),
            sidecar: SidecarView::default(),
            metric,
            is_stale: true,
            has_grown: false,
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
        }
        self.has_grown |= changed;
        if let Some(moment) = self.sidecar.due_stop(self.session.live.latest()) {
            self.stop_at(moment);
            return Ok(true);
        }
        let is_due = self.computed.elapsed() >= PACE.max(self.cost * 4);
        if self.is_stale || self.has_grown && is_due {
            self.compute();
            return Ok(true);
        }
        Ok(changed)
    }

    /// Reads on in the sidecar, for at most this long. Returns whether anything changed.
    pub(super) fn read_sidecar(&mut self, time: Duration) -> bool {
        let start = self.session.live.info().map(|info| info.start_time);
        self.sidecar.advance(start, Instant::now() + time)
    }

    /// Computes what is shown.
    pub(super) fn compute(&mut self) {
        let begin = Instant::now();
        self.live_size = self.session.live_size();
        if self.is_stale || self.query.moment.is_none() {
            self.query.old_before = self.sidecar.old_before(self.query.moment);
            self.figures = self.session.figures(&self.query);
            self.sort();
            if self.screen == Screen::Callers {
                self.find_callers();
            }
        }
        (self.is_stale, self.has_grown) = (false, false);
        (self.computed, self.cost) = (Instant::now(), begin.elapsed());
    }

    fn sort(&mut self) {
        let chosen = self.rows.get(self.selected).map(|row| row.site.clone());
        let figures = self.figures.as_ref();
        self.rows =
            figures.map_or_else(Vec::new, |figures| rows(figures, self.mark.as_ref(), self.order));
        // The selection stays with its row, unless it is at the top.
        let kept = chosen.filter(|_| self.selected > 0);
        let kept = kept.and_then(|site| self.rows.iter().position(|row| row.site == site));
        self.selected = kept.unwrap_or(0);
    }

    fn find_callers(&mut self) {
        let site = self.rows.get(self.selected).map(|row| row.site.clone());
        self.callers = site.map_or_else(Vec::new, |site| self.session.callers(&self.query, site));
    }

    /// Takes a key; true if it ends the program.
    pub(super) fn press(&mut self, key: KeyEvent) -> bool {
        if key.kind == KeyEventKind::Release {
            return false;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return true;
        }
        if self.typed.is_some() {
            self.press_while_typing(key.code);
            return false;
        }
        let steps = if key.modifiers.contains(KeyModifiers::SHIFT) { 10 } else { 1 };
        match key.code {
            KeyCode::Char('q') => return true,
            KeyCode::Char('?') => self.show(Screen::Help),
            KeyCode::Esc if self.screen == Screen::Sites => self.clear(),
            KeyCode::Esc => self.show(Screen::Sites),
            KeyCode::Tab => self.show(match self.screen {
                Screen::Sites => Screen::Timeline,
                Screen::Timeline => Screen::Callers,
                Screen::Callers => Screen::Probes,
                Screen::Probes => Screen::Log,
                Screen::Log | Screen::Help => Screen::Sites,
            }),
            KeyCode::Char('1') => self.show(Screen::Sites),
            KeyCode::Char('2') => self.show(Screen::Timeline),
            KeyCode::Char('3') | KeyCode::Enter => self.show(Screen::Callers),
            KeyCode::Char('4') => self.show(Screen::Probes),
            KeyCode::Char('5') => self.show(Screen::Log),
            KeyCode::Char(' ') => self.pause(),
            KeyCode::Left => self.go_back(steps),
            KeyCode::Right => self.go_on(steps),
            KeyCode::Home => self.look_at(Some(0)),
            KeyCode::End => self.look_at(None),
            KeyCode::Up => self.select(-1),
            KeyCode::Down => self.select(1),
            KeyCode::PageUp => self.select(-10),
            KeyCode::PageDown => self.select(10),
            KeyCode::Char(letter) => self.press_letter(letter),
            _ => {}
        }
        false
    }

    fn press_letter(&mut self, letter: char) {
        match letter {
            'm' => {
                let at = METRICS.iter().position(|&metric| metric == self.metric).unwrap_or(0);
                self.measure(METRICS[(at + 1) % METRICS.len()]);
                self.metric = self.query.metric;
            }
            'o' if self.query.metric == Metric::Survived => self.measure(self.metric),
            'o' => self.measure(Metric::Survived),
            'b' => {
                let at = ALL_ROWS.iter().position(|&by| by == self.query.by).unwrap_or(0);
                self.query.by = ALL_ROWS[(at + 1) % ALL_ROWS.len()];
                self.selected = 0;
                self.renew();
            }
            's' => {
                self.order = match self.order {
                    Order::Size if self.mark.is_some() => Order::Change,
                    Order::Size | Order::Change => Order::Name,
                    Order::Name => Order::Size,
                };
                self.sort();
            }
            'd' => self.set_mark(),
            '/' => self.typed = Some(self.pattern.clone()),
            _ => {}
        }
    }

    fn press_while_typing(&mut self, code: KeyCode) {
        let Some(typed) = &mut self.typed else { return };
        match code {
            KeyCode::Char(letter) => typed.push(letter),
            KeyCode::Backspace => drop(typed.pop()),
            KeyCode::Esc => self.typed = None,
            KeyCode::Enter => {
                let pattern = self.typed.take().unwrap_or_default();
                self.filter(&pattern);
            }
            _ => {}
        }
    }

    /// Shows only blocks with a frame that matches; all of them if the pattern is empty.
    fn filter(&mut self, pattern: &str) {
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
    fn clear(&mut self) {
        self.problem = None;
        if self.query.filter.is_some() || self.mark.is_some() {
            (self.query.filter, self.mark) = (None, None);
            self.pattern.clear();
            self.order = Order::Size;
            self.renew_only();
        }
    }

    fn show(&mut self, screen: Screen) {
        (self.screen, self.scrolled) = (screen, 0);
        if screen == Screen::Callers {
            self.find_callers();
        }
    }

    fn select(&mut self, rows: isize) {
        match self.screen {
            Screen::Sites => {
                let last = self.rows.len().saturating_sub(1);
                self.selected = self.selected.saturating_add_signed(rows).min(last);
            }
            _ => self.scrolled = self.scrolled.saturating_add_signed(rows),
        }
    }

    fn measure(&mut self, metric: Metric) {
        self.query.metric = metric;
        self.renew();
    }

    /// The question has changed, and with it the sizes at the mark.
    fn renew(&mut self) {
        if let Some(mark) = &self.mark {
            let moment = mark.moment;
            let old_before = self.sidecar.old_before(Some(moment));
            let query = Query { moment: Some(moment), old_before, ..self.query.clone() };
            self.mark = self.session.figures(&query).map(|figures| Mark::new(moment, &figures));
        }
        self.renew_only();
    }

    fn renew_only(&mut self) {
        self.is_stale = true;
        self.compute();
    }

    /// Keeps this moment in view while the trace grows, or returns to the latest.
    fn pause(&mut self) {
        let moment = match self.query.moment {
            Some(_) => None,
            None => Some(self.session.live.latest()),
        };
        self.look_at(moment);
    }

    fn look_at(&mut self, moment: Option<u64>) {
        self.query.moment = moment;
        self.sidecar.look_at(moment);
        self.renew_only();
    }

    /// Stands where the program asks for it, unless somebody looks at another moment.
    fn stop_at(&mut self, moment: u64) {
        if self.query.moment.is_none() {
            self.look_at(Some(moment));
        }
    }

    /// A second; less in a trace of less than 20 of them.
    fn step(&self) -> u64 {
        (self.session.live.latest() / 20).clamp(1, 1_000_000)
    }

    fn go_back(&mut self, steps: u64) {
        let from = self.query.moment.unwrap_or(self.session.live.latest());
        self.look_at(Some(from.saturating_sub(steps * self.step())));
    }

    fn go_on(&mut self, steps: u64) {
        let Some(from) = self.query.moment else { return };
        // Beyond the latest moment, it stays there.
        self.look_at(Some((from + steps * self.step()).min(self.session.live.latest())));
    }

    /// Sets a mark at the moment in view, from which differences are shown; removes it if
    /// there is one.
    fn set_mark(&mut self) {
        self.mark = match (&self.mark, &self.figures) {
            (None, Some(figures)) => {
                let moment = self.query.moment.unwrap_or(figures.duration_us);
                Some(Mark::new(moment, figures))
            }
            _ => None,
        };
        self.order = if self.mark.is_some() { Order::Change } else { Order::Size };
        self.sort();
    }
}
