//! Drawing the view. Every name from the trace is escaped: it cannot write to the terminal.

use heaptap_report::figures::units::{bytes, percent, short_duration};
use heaptap_report::figures::{Figures, by_name, sized};
use heaptap_report::rows::By;
use heaptap_report::{Caller, Metric};
use ratatui::Frame;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::io::live_trace::LiveState;
use crate::text::escape::Escaped;
use crate::text::names::{escaped, signed, site_name, two_columns, with_file};
use crate::text::terminal::{fit, fit_path, in_ascii, is_ascii_locale, pad, width, wrap};
use crate::verbs::top::app::{App, Screen};
use crate::verbs::top::chart::{ChartOf, cursor_column, strip};
use crate::verbs::top::collector::time_line;
use crate::verbs::top::probes::{Extent, log, probes, scrolled};
use crate::verbs::top::table::TableRow;

const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Columns before the name.
const NUMBERS: usize = 11 + 2 + 7 + 2 + 7 + 2;
const NUMBERS_OF_CHANGES: usize = 11 + 2 + 12 + 2 + 11 + 2;

/// Draws the screen, and scrolls the table so that the selected row is in view.
pub(super) fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let area = frame.area();
    let (columns, height) = (usize::from(area.width), usize::from(area.height));
    let mut lines = screen(app, columns, height);
    if is_ascii_locale() {
        let spans = lines.iter_mut().flat_map(|line| &mut line.spans);
        spans.for_each(|span| span.content = in_ascii(&span.content).into());
    }
    for (row, line) in lines.iter().take(height).enumerate() {
        frame.buffer_mut().set_line(area.x, area.y + row as u16, line, area.width);
    }
}

/// The lines of the screen, `height` of them at most.
fn screen(app: &mut App, columns: usize, height: usize) -> Vec<Line<'static>> {
    let mut lines = vec![title(app, columns)];
    lines.extend(totals(app, columns));
    lines.push(time_strip(app, columns));
    lines.extend(notices(app, columns));
    let room = height.saturating_sub(lines.len() + 1);
    let mut body = match app.screen {
        Screen::Sites => sites(app, columns, room),
        Screen::Timeline => {
            let pattern = escaped(&app.pattern);
            let of = ChartOf {
                size: &app.live_size,
                moment: app.query.moment,
                filter: app.query.filter.as_ref().map(|_| pattern.as_str()),
            };
            time_line(of, app.sidecar.history(), columns, room)
        }
        Screen::Probes | Screen::Log => {
            let extent = Extent { columns, lines: room, scrolled: app.scrolled };
            let draw = if app.screen == Screen::Log { log } else { probes };
            draw(&mut app.sidecar, app.query.moment, extent)
        }
        Screen::Callers => callers(app, columns, room),
        Screen::Diagnosis => diagnosis(app, columns, room),
        Screen::Help => help(app.scrolled, columns, room),
    };
    body.resize(room, Line::default());
    lines.extend(body);
    lines.push(footer(app, columns));
    lines
}

/// What is tailed, and which moment is shown.
fn title(app: &App, columns: usize) -> Line<'static> {
    let latest = short_duration(app.latest() as f64);
    let state = match (app.query.moment, app.session.live.state()) {
        (Some(moment), LiveState::Ended) => {
            format!("{} of {latest}, ended", short_duration(moment as f64))
        }
        (Some(moment), _) => format!("PAUSED at {} of {latest}", short_duration(moment as f64)),
        (None, LiveState::Ended) => format!("ended after {latest}"),
        (None, LiveState::More) => format!("reading, {latest}"),
        (None, _) => format!("live, {latest}"),
    };
    let state = format!(" {state} ");
    let room = columns.saturating_sub(width(&state));
    let name = match app.session.live.info() {
        Some(info) => {
            let program = format!(" {} (process {})", program_name(&info.executable), info.pid);
            let left = room.saturating_sub(width(&program) + 2);
            // A file of which little more than dots would be left is not named.
            match left {
                0..8 => program,
                _ => format!("{program}  {}", fit_path(app.session.live.name(), left)),
            }
        }
        None => format!(" {}: waiting for its first packet", app.session.live.name()),
    };
    Line::styled(format!("{}{state}", pad(&fit(&name, room), room)), REVERSED)
}

/// The name of a program without its directory.
pub(super) fn program_name(executable: &[u8]) -> String {
    let name = executable.rsplit(|&byte| byte == b'/').next().unwrap_or(executable);
    if name.is_empty() { "-".to_owned() } else { Escaped(name).to_string() }
}

fn totals(app: &App, columns: usize) -> Vec<Line<'static>> {
    let Some(figures) = &app.figures else { return Vec::new() };
    let totals = &figures.totals;
    let (live, allocated, peak) =
        (sized(&totals.live), sized(&totals.allocated), sized(&totals.peak));
    let mut text = format!("live {live}, allocated {allocated}, peak {peak}");
    if columns > 90 {
        text += &format!(" at {}", short_duration(totals.peak_us as f64));
    }
    wrap(&text, columns.saturating_sub(1))
        .into_iter()
        .map(|line| Line::raw(format!(" {line}")))
        .collect()
}

/// The live size in one line, with the moment that is shown.
fn time_strip(app: &App, columns: usize) -> Line<'static> {
    let bars = strip(&app.live_size, columns.saturating_sub(2));
    let cursor = cursor_column(&app.live_size, app.query.moment, bars.len());
    let mut spans = vec![Span::raw(" ")];
    for (column, bar) in bars.into_iter().enumerate() {
        let style = if Some(column) == cursor { REVERSED } else { FAINT };
        spans.push(Span::styled(bar.to_string(), style));
    }
    Line::from(spans)
}

/// What there is to say: the filter, the mark, what is missing.
fn notices(app: &App, columns: usize) -> Vec<Line<'static>> {
    let mut notices = Vec::new();
    if let Some(typed) = &app.typed {
        notices.push(format!("filter: {}▏", Escaped(typed.as_bytes())));
    } else if app.query.filter.is_some() {
        let pattern = escaped(&app.pattern);
        notices.push(format!("only blocks with a frame that matches /{pattern}/ (Esc: all)"));
    }
    notices.extend(app.problem.clone());
    if let Some(stop) = &app.sidecar.stopped {
        let text = Escaped(stop.text.as_bytes());
        notices.push(format!("paused by the program: {text} (Space: go on)"));
    }
    if let Some(mark) = &app.mark {
        let moment = short_duration(mark.moment as f64);
        notices.push(format!("changes since the mark at {moment} (d: remove it)"));
    }
    match app.session.live.replaced() {
        0 => {}
        1 => notices.push("another trace has taken the place of the first".to_owned()),
        count => notices.push(format!("this is trace {} of this name", count + 1)),
    }
    notices.extend(app.session.live.losses().into_iter().take(2));
    let fitted =
        |text: String| Line::styled(format!(" {}", fit(&text, columns.saturating_sub(1))), STRONG);
    notices.into_iter().map(fitted).collect()
}

/// What is measured, as a title says it of a trace that may grow.
fn metric_name(app: &App, figures: &Figures) -> String {
    let moment = match app.query.moment {
        Some(moment) => format!("at {}", short_duration(moment as f64)),
        None if app.session.live.state() == LiveState::Ended => "at the end".to_owned(),
        None => "now".to_owned(),
    };
    match app.query.metric {
        Metric::Live => format!("live {moment}"),
        Metric::Survived if app.query.old_before.is_some() => {
            format!("live {moment}, survived a whole major collection")
        }
        Metric::Survived => format!("live {moment}, survived a collection"),
        _ => figures.table.metric.clone(),
    }
}

/// The table.
fn sites(app: &mut App, columns: usize, room: usize) -> Vec<Line<'static>> {
    let Some(figures) = &app.figures else { return Vec::new() };
    let title = format!(
        "{} by {}, sorted by {}",
        metric_name(app, figures),
        figures.table.row_title(),
        app.order.name()
    );
    let (heading, left) = match &app.mark {
        None => (format!("{:>11}  {:>7}  {:>7}  ", "size", "±", "share"), NUMBERS),
        Some(_) => (format!("{:>11}  {:>12}  {:>11}  ", "size", "change", "±"), NUMBERS_OF_CHANGES),
    };
    let names = columns.saturating_sub(left);
    let mut lines = Vec::new();
    if width(&title) <= names {
        lines.push(Line::styled(format!("{heading}{title}"), STRONG));
    } else {
        lines.push(Line::styled(format!(" {}", fit(&title, columns.saturating_sub(1))), STRONG));
        lines.push(Line::styled(format!("{heading}{}", figures.table.row_title()), STRONG));
    }
    let mut total = total(figures, app.mark.is_some());
    // One line is the total's.
    let shown = room.saturating_sub(lines.len() + 1).clamp(1, app.most_rows);
    let least = (app.selected + 1).saturating_sub(shown);
    // A screen of another size begins at the top, if the selected row is in view then.
    if std::mem::replace(&mut app.room, shown) != shown {
        app.first = least;
    }
    app.first = app.first.min(app.selected).min(app.rows.len().saturating_sub(shown)).max(least);
    if app.rows.len() > shown {
        total +=
            &format!(", {} to {} shown", app.first + 1, (app.first + shown).min(app.rows.len()));
    }
    let rows = app.rows.iter().enumerate().skip(app.first).take(shown);
    let visible: Vec<(usize, &TableRow)> = rows.collect();
    let labels: Vec<(String, String)> =
        visible.iter().map(|(_, row)| site_name(&row.site)).collect();
    for ((at, row), (name, file)) in visible.into_iter().zip(two_columns(&labels, names)) {
        let text = format!("{}{name}", numbers(row));
        let missing = columns.saturating_sub(width(&text) + width(&file));
        let mut line = Line::from(vec![
            Span::raw(text),
            Span::styled(file, FAINT),
            Span::raw(" ".repeat(missing)),
        ]);
        if at == app.selected {
            line = line.style(REVERSED);
        }
        lines.push(line);
    }
    lines.push(Line::styled(total, STRONG));
    lines
}

fn total(figures: &Figures, has_mark: bool) -> String {
    let size = &figures.table.total.size;
    let rows = figures.table.rows.len();
    let (bytes, error) = size.columns();
    match has_mark {
        false => format!("{bytes:>11}  {error:>7}  {:>7}  total of {rows} rows", percent(1.0)),
        true => format!("{bytes:>11}  {:>12}  {:>11}  total of {rows} rows", "", ""),
    }
}

fn numbers(row: &TableRow) -> String {
    let (size, error) = row.size.columns();
    match row.change {
        None => format!("{size:>11}  {error:>7}  {:>7}  ", percent(row.share)),
        Some(change) => {
            format!("{size:>11}  {:>12}  {:>11}  ", signed(change.bytes), bytes(change.error))
        }
    }
}

/// The callers of the selected row, each with its share of the row.
fn callers(app: &mut App, columns: usize, room: usize) -> Vec<Line<'static>> {
    let Some(row) = app.rows.get(app.selected) else {
        return vec![Line::raw(" nothing is measured here: choose another metric with m or o")];
    };
    let site = with_file(&site_name(&row.site), columns.saturating_sub(12));
    let mut lines = vec![Line::styled(format!(" callers of {site}"), STRONG)];
    if matches!(app.query.by, By::Label | By::Domain | By::Kind | By::Source) {
        lines.push(Line::raw(format!(
            " a {} has no callers: choose other rows with b",
            by_name(app.query.by)
        )));
        return lines;
    }
    let all: u64 = app.callers.iter().map(|caller| caller.samples.count).sum();
    let mut tree = Vec::new();
    branch(&mut tree, &app.callers, all, 0, columns);
    if tree.is_empty() {
        lines.push(Line::raw(" it has none: the stacks begin here, or nothing is measured"));
    }
    app.scrolled = app.scrolled.min(tree.len().saturating_sub(1));
    lines.extend(tree.into_iter().skip(app.scrolled).take(room.saturating_sub(1)));
    lines
}

/// Callers of at least a hundredth of the row.
fn branch(
    lines: &mut Vec<Line<'static>>,
    callers: &[Caller],
    all: u64,
    level: usize,
    columns: usize,
) {
    let matters = |caller: &&Caller| caller.samples.count.saturating_mul(100) >= all;
    for caller in callers.iter().filter(matters) {
        let share = caller.samples.count as f64 / all.max(1) as f64;
        // On a narrow terminal, deep callers stay at the right.
        let indent = (2 * level).min(columns.saturating_sub(40));
        let left = format!("{:>8}  {}← ", percent(share), " ".repeat(indent));
        let left = if caller.library { left + "via " } else { left };
        let name = with_file(&site_name(&caller.site), columns.saturating_sub(width(&left)));
        lines.push(Line::raw(format!("{left}{name}")));
        branch(lines, &caller.callers, all, level + 1, columns);
    }
}

/// What is wrong with the program's memory.
fn diagnosis(app: &mut App, columns: usize, room: usize) -> Vec<Line<'static>> {
    let (title, lines) = app.diagnosis.lines(columns);
    app.scrolled = app.scrolled.min((lines.len() + 1).saturating_sub(room));
    scrolled(title, lines, Extent { columns, lines: room, scrolled: app.scrolled })
}

/// Every key and what it does.
const KEYS: [(&str, &str); 18] = [
    ("Tab, 1 to 5", "the screens: sites, time line, callers, probes, log"),
    ("↑ ↓ PgUp PgDn", "select a row, or scroll"),
    ("Enter", "the callers of the selected site"),
    ("v", "the verdict on the program's memory, by what is known so far"),
    ("Space", "pause: keep this moment in view; again: live"),
    ("← →", "back and on in time; with Shift in steps of ten"),
    ("Home", "the start of the trace"),
    ("End", "live: the latest moment"),
    ("m", "what is measured: live, allocated, at the peak, promoted"),
    (
        "o",
        "only what is live and has survived a collection, a major one if those are known; again: all",
    ),
    ("b", "rows: function, location, file, module, label, domain, source"),
    ("l", "rows name your own code, or library code if that allocates"),
    ("s", "sort by size, name, or change since the mark"),
    ("/", "only blocks with a frame that matches; empty: all"),
    ("d", "mark this moment, show changes since; again: remove the mark"),
    ("Esc", "back to the sites; there: without filter and mark"),
    ("?", "this help"),
    ("q, Ctrl-C", "quit; the program runs on"),
];

fn help(scrolled: usize, columns: usize, room: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (key, meaning) in KEYS {
        let mut parts = wrap(meaning, columns.saturating_sub(18)).into_iter();
        let first = parts.next().unwrap_or_default();
        lines.push(Line::from(vec![
            Span::styled(format!(" {}  ", pad(key, 14)), STRONG),
            Span::raw(first),
        ]));
        lines.extend(parts.map(|part| Line::raw(format!("{}{part}", " ".repeat(17)))));
    }
    let hidden = lines.len().saturating_sub(room);
    lines.into_iter().skip(scrolled.min(hidden)).take(room).collect()
}

/// As many keys as fit, the most useful first.
fn footer(app: &App, columns: usize) -> Line<'static> {
    const HINTS: [(&str, &str); 14] = [
        ("q", "quit"),
        ("?", "help"),
        ("Space", "pause"),
        ("←→", "time"),
        ("End", "live"),
        ("Enter", "callers"),
        ("Tab", "screens"),
        ("v", "verdict"),
        ("m", "metric"),
        ("b", "by"),
        ("l", "libraries"),
        ("/", "filter"),
        ("d", "mark"),
        ("o", "survived"),
    ];
    let hints =
        if app.typed.is_some() { &[("Enter", "apply"), ("Esc", "cancel")][..] } else { &HINTS };
    let (mut spans, mut used) = (Vec::new(), 0);
    for (key, meaning) in hints {
        used += width(key) + width(meaning) + 3;
        if used > columns {
            break;
        }
        spans.push(Span::styled(format!(" {key}"), STRONG));
        spans.push(Span::styled(format!(" {meaning} "), FAINT));
    }
    Line::from(spans)
}
