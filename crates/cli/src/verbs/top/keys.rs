//! What each key does.

use heaptap_report::figures::ALL_ROWS;
use heaptap_report::{ALL_SITE_FRAMES, Metric};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::verbs::top::app::{App, Screen};
use crate::verbs::top::table::Order;

/// What `m` chooses from.
const METRICS: [Metric; 4] = [Metric::Live, Metric::Allocated, Metric::Peak, Metric::Promoted];

impl App {
    /// Takes a key; true if it ends the program. [`App::settle`] brings the view up to date.
    pub(super) fn press(&mut self, key: KeyEvent) -> bool {
        if key.kind == KeyEventKind::Release {
            return false;
        }
        if is_interrupt(key) {
            return true;
        }
        if self.typed.is_some() {
            self.press_while_typing(key.code);
            return false;
        }
        if matches!(key.code, KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown) {
            // These mean rows that are to be shown.
            self.settle();
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
                Screen::Log | Screen::Diagnosis | Screen::Help => Screen::Sites,
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
            'l' => {
                let at = ALL_SITE_FRAMES.iter().position(|&site| site == self.query.site);
                let next = (at.unwrap_or(0) + 1) % ALL_SITE_FRAMES.len();
                self.query.site = ALL_SITE_FRAMES[next];
                self.selected = 0;
                self.renew();
            }
            's' => {
                self.settle();
                self.order = match self.order {
                    Order::Size if self.mark.is_some() => Order::Change,
                    Order::Size | Order::Change => Order::Name,
                    Order::Name => Order::Size,
                };
                self.sort();
            }
            'd' => self.set_mark(),
            'v' => self.diagnose(),
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
}

/// Whether this is Ctrl-C, which ends the program whatever else it does.
pub(super) fn is_interrupt(key: KeyEvent) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c')
}

/// Whether one of these keys, which wait for the view, will end the program: it need not wait
/// for those before it.
pub(super) fn ends_program<'a>(keys: impl Iterator<Item = &'a KeyEvent>, is_typing: bool) -> bool {
    let mut is_typing = is_typing;
    for key in keys.filter(|key| key.kind != KeyEventKind::Release) {
        match key.code {
            _ if is_interrupt(*key) => return true,
            KeyCode::Enter | KeyCode::Esc => is_typing = false,
            KeyCode::Char('q') if !is_typing => return true,
            KeyCode::Char('/') => is_typing = true,
            _ => {}
        }
    }
    false
}
