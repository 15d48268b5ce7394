//! `heaptap top`: a trace in the terminal, while it is written.
//!
//! - `session`: what is asked of the trace, which `analysis::live` tails.
//! - `app`: the state of the view. `keys`: what each does to it. `table`: its rows.
//! - `sidecar`: what the program says of itself, in the file beside the trace.
//! - `draw`, `chart`, `collector`, `probes` and `diagnosis`: the screens. `lines`: JSON for scripts.
//!
//! One thread does everything but a diagnosis: it reads for a short while, draws, and waits up to 100 ms for
//! a key. So there is nothing to lock, and nothing runs when nothing happens. A second thread
//! waits for the terminal to go.

mod app;
mod chart;
mod collector;
mod diagnosis;
mod draw;
mod keys;
mod lines;
mod probes;
mod session;
mod sidecar;
mod table;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::{IsTerminal as _, stdout};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use heaptap_report::rows::By;
use heaptap_report::{Metric, Regex};
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyEvent};
use ratatui::{DefaultTerminal, Terminal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGTERM};

use crate::analysis::view::{SiteOption, metric, row_kind};
use crate::exit_status::{Failure, VerbResult, Verdict, help_end};
use crate::io::live_target::LiveTarget;
use crate::io::live_trace::{self, LiveState};
use crate::io::newest::one_or_newest;
use crate::io::output::print;
use crate::text::terminal::{Layout, is_dumb_terminal};
use app::App;
use session::{Query, Session};
use sidecar::SidecarView;

/// How long a key may have to wait while a trace is read.
const SLICE: Duration = Duration::from_millis(40);

/// How long nothing is done once the trace has ended and no key is pressed.
const PAUSE: Duration = Duration::from_millis(100);

/// How long one screen may wait for the sidecar to be read.
const PATIENCE: Duration = Duration::from_secs(5);

/// The exit status when the terminal is gone, as if by SIGHUP.
const HANG_UP: i32 = 128 + SIGHUP;

/// Watch a trace in the terminal while it is written, and go back in time
///
/// Shows where the memory of a running program goes, by function, location, file, module,
/// label, domain or source, with the same figures and errors as `heaptap report`. The view
/// can be stopped and moved to any earlier moment; the program runs on. The trace may be a
/// file that grows, the trace of a process, or a pipe. Several can watch the same file. When
/// another file takes its name, that one is followed. A trace that is complete can be looked
/// at in the same way.
///
/// The keys are listed at the bottom of the screen, and all of them by `?`.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap top trace.ctf
  heaptap top 4711
  ssh host tail -c +1 -f trace.ctf | heaptap top -
  heaptap top trace.ctf --once --by module
  heaptap top 4711 --json | jq .totals.live.bytes"
))]
pub(crate) struct Top {
    /// A trace, the number of a process that is traced, or `-` for standard input [default: the
    /// newest trace in this directory]
    #[arg(value_name = "FILE|PID", value_hint = ValueHint::FilePath)]
    trace: Option<PathBuf>,

    /// What a row is, at first
    #[arg(long, value_parser = row_kind(), default_value = "function")]
    by: By,

    /// What is measured, at first
    #[arg(long, value_parser = metric(), default_value = "live")]
    metric: Metric,

    #[command(flatten)]
    sites: SiteOption,

    /// Only blocks with a frame whose function or file matches, at first
    #[arg(long, value_name = "REGEX")]
    filter: Option<String>,

    /// Read what is written so far (of a pipe: all), print one screen as text, and end
    #[arg(long)]
    once: bool,

    /// Print a line of JSON each second until the trace ends, for scripts: its state, its events
    /// so far and how late they were, its totals; the last line has all that `report --json` has
    #[arg(long, conflicts_with = "once")]
    json: bool,

    /// How many rows --once prints
    #[arg(long, value_name = "ROWS", default_value_t = 20, requires = "once")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000))]
    top: u16,
}

impl Top {
    pub(crate) fn run(&self) -> VerbResult {
        let pattern = self.filter.as_deref().unwrap_or_default();
        let filter = self.filter.as_deref().map(Regex::new).transpose();
        let filter =
            filter.map_err(|error| Failure::Trouble(format!("--filter {pattern}: {error}")))?;
        let (by, metric) = (self.by, self.metric);
        let site = self.sites.choice(self.json);
        let query = Query { by, site, metric, filter, moment: None, old_before: None };
        let trace = LiveTarget::find(&one_or_newest(self.trace.as_deref())?)?.open()?;
        // What is wrong with the trace comes first: no terminal would help.
        if !self.once && !self.json {
            check_terminal()?;
        }
        if self.json {
            return lines::print_until_the_end(&mut Session::new(trace), &query);
        }
        let sidecar = SidecarView::of(trace.path());
        let mut app = App::new(Session::new(trace), query, pattern);
        app.sidecar = sidecar;
        if self.once {
            self.print(&mut app)?;
        } else {
            watch(&mut app)?;
        }
        Ok(if app.session.live.is_defective() { Verdict::Defective } else { Verdict::Sound })
    }

    /// Prints one screen.
    fn print(&self, app: &mut App) -> Result<(), Failure> {
        loop {
            app.session.advance(SLICE)?;
            match app.session.live.state() {
                LiveState::Ended => break,
                LiveState::Waiting if app.session.live.file().is_some() => break,
                LiveState::Waiting => app.session.live.wait(),
                LiveState::More | LiveState::Replaced | LiveState::Resumed => {}
            }
        }
        app.read_sidecar(PATIENCE);
        app.most_rows = usize::from(self.top);
        app.compute();
        let columns = u16::try_from(Layout::of_stdout().width).unwrap_or(120);
        print(text(app, columns, self.top + 10).as_bytes())
    }
}

/// The screen as text, without the keys and what is empty above them.
fn text(app: &mut App, columns: u16, lines: u16) -> String {
    let Ok(mut terminal) = Terminal::new(TestBackend::new(columns, lines));
    let Ok(_) = terminal.draw(|frame| draw::draw(frame, app));
    let buffer = terminal.backend().buffer();
    let line = |row: u16| -> String {
        let cells = (0..columns).map(|column| buffer[(column, row)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    };
    let mut lines: Vec<String> = (0..lines.saturating_sub(1)).map(line).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.join("\n") + "\n"
}

/// Draws and takes keys until one of them, or a signal, ends it.
fn watch(app: &mut App) -> Result<(), Failure> {
    let asked_to_end = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        // Without it, a signal would leave the terminal as it is.
        let _ = signal_hook::flag::register(signal, Arc::clone(&asked_to_end));
    }
    end_with_the_terminal();
    let mut terminal = ratatui::try_init().map_err(|error| terminal_failure(&error))?;
    let watched = watch_in(&mut terminal, app, &asked_to_end);
    ratatui::restore();
    watched
}

/// Ends the process when its terminal is gone. Whoever waits for keys then does so for ever, and
/// without pausing: the terminal is always at its end.
fn end_with_the_terminal() {
    thread::spawn(|| {
        let out = stdout();
        let mut terminal = [PollFd::new(&out, PollFlags::empty())];
        loop {
            match poll(&mut terminal, None) {
                // Nothing was asked for but what is always reported: an error, or the hang-up.
                Ok(_) => std::process::exit(HANG_UP),
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    });
}

fn watch_in(
    terminal: &mut DefaultTerminal,
    app: &mut App,
    asked_to_end: &AtomicBool,
) -> Result<(), Failure> {
    let failed = |error| terminal_failure(&error);
    let mut is_new = true;
    let mut waiting: VecDeque<KeyEvent> = VecDeque::new();
    while !asked_to_end.load(Ordering::Relaxed) {
        is_new |= app.advance(SLICE)?;
        if std::mem::take(&mut is_new) {
            terminal.draw(|frame| draw::draw(frame, app)).map_err(failed)?;
        }
        let mut wait = match app.session.live.state() {
            _ if !waiting.is_empty() => Duration::ZERO,
            LiveState::More | LiveState::Replaced | LiveState::Resumed => Duration::ZERO,
            LiveState::Waiting => live_trace::PACE,
            LiveState::Ended => PAUSE,
        };
        let begin = Instant::now();
        loop {
            while event::poll(wait).map_err(failed)? {
                match event::read().map_err(failed)? {
                    Event::Key(key) => waiting.push_back(key),
                    _ => is_new = true,
                }
                wait = Duration::ZERO;
            }
            if keys::ends_program(waiting.iter(), app.typed.is_some()) {
                return Ok(());
            }
            let Some(key) = waiting.pop_front() else { break };
            is_new = true;
            // What has come meanwhile is looked at first.
            if app.press(key) {
                return Ok(());
            }
            if begin.elapsed() > SLICE {
                break;
            }
        }
    }
    Ok(())
}

/// Fails unless the view can be drawn.
fn check_terminal() -> Result<(), Failure> {
    let instead = "`--once` prints one screen as text, `--json` a line each second, and `heaptap report` \
                   the whole table";
    if !stdout().is_terminal() {
        return Err(Failure::Trouble(format!("top needs a terminal; {instead}")));
    }
    if is_dumb_terminal() {
        return Err(Failure::Trouble(format!(
            "top draws on the whole screen, which this terminal cannot do (TERM is `dumb`); {instead}"
        )));
    }
    Ok(())
}

fn terminal_failure(error: &std::io::Error) -> Failure {
    Failure::Trouble(format!(
        "the terminal cannot be used: {error}; `--once` prints one screen as text"
    ))
}
