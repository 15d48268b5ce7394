//! The view without a terminal: its figures, its screens and its keys.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use heaptap_report::figures::{ALL_ROWS, Figures, TableOptions, TableView};
use heaptap_report::rows::By;
use heaptap_report::{Depth, Metric, Options, SiteFrame};
use heaptap_trace::{Block, Encoder, Format, Frames, LocationTable, Source, TraceInfo};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::app::{App, Screen};
use super::diagnosis::DiagnosisView;
use super::draw::program_name;
use super::keys::ends_program;
use super::session::{Query, Session};
use super::text;
use crate::analysis::aggregate::AggregatedTrace;
use crate::analysis::page_diagnosis::{DiagnosedFiles, DiagnosisOptions};
use crate::io::live_trace::{LiveState, LiveTrace};
use crate::text::terminal::width;
use heaptap_client::Process;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/data").join(name)
}

fn query(by: By, metric: Metric) -> Query {
    let site = SiteFrame::Innermost;
    Query { by, site, metric, filter: None, moment: None, old_before: None }
}

/// Makes a file look as if nobody had written it for an hour: then nobody will.
fn age(path: &Path) {
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    File::options().append(true).open(path).unwrap().set_modified(hour_ago).unwrap();
}

/// A session that has read a trace to its end.
fn session(path: &Path) -> Session {
    let mut session = Session::new(LiveTrace::open(path, None).unwrap());
    while session.live.state() != LiveState::Ended {
        session.advance(Duration::from_secs(1)).unwrap();
    }
    session
}

fn app(name: &str) -> App {
    let mut app = App::new(session(&data(name)), query(By::Function, Metric::Live), "");
    app.compute();
    app
}

fn press(app: &mut App, code: KeyCode) -> bool {
    let ends = app.press(KeyEvent::new(code, KeyModifiers::NONE));
    app.settle();
    ends
}

fn type_text(app: &mut App, text: &str) {
    text.chars().for_each(|letter| assert!(!press(app, KeyCode::Char(letter))));
}

/// The JSON of a report.
fn reported(path: &Path, by: By, metric: Metric, at: Option<u64>) -> serde_json::Value {
    let depth = match by {
        By::Label => Depth::Label,
        By::Domain => Depth::Domain,
        By::Kind => Depth::Kind,
        By::Source => Depth::Source,
        _ => Depth::Innermost,
    };
    let options = Options { depth, at, ..Options::default() };
    let trace = AggregatedTrace::read(&[path.to_owned()], options).unwrap();
    let view = TableView { by, site: SiteFrame::Innermost, metric, at: None };
    let table = TableOptions { view, top: 0, callers: None };
    serde_json::to_value(Figures::of(&trace.figures(false), &table)).unwrap()
}

/// Four domains, which collect each other's blocks. Only the first is busy, so that its
/// packets come before those of the others.
fn several_domains() -> Vec<u8> {
    let info = TraceInfo {
        sample_rate: 0.01,
        word_size: 64,
        executable: b"/bin/domains".to_vec(),
        host: b"host".to_vec(),
        runtime_params: Vec::new(),
        pid: 7,
        context: Vec::new(),
        start_time: 1_600_000_000_000_000,
        domain: 0,
    };
    let table = LocationTable::default();
    let mut encoder = Encoder::new(Vec::new(), Format::V3, &info).unwrap();
    let (mut time, mut alive) = (info.start_time, Vec::new());
    for turn in 0..20_000_u64 {
        time += 50;
        let domain = if turn % 50 == 0 { 1 + (turn / 50 % 3) as u16 } else { 0 };
        let block = Block { length: 1 + turn % 30, samples: 1, source: Source::Minor };
        let frames = [0x1000, 0x2000 + turn % 9];
        let frames = Frames::Whole(&frames);
        alive.push(encoder.domain(domain).alloc(time, block, frames, &mut &table).unwrap());
        if alive.len() > 100 {
            let id = alive.swap_remove((turn * 7 % 100) as usize);
            encoder.domain(0).collect(time, id, &mut &table).unwrap();
        }
    }
    encoder.finish(&mut &table).unwrap()
}

#[test]
fn figures_at_the_end_are_those_of_a_report() {
    let place = tempfile::tempdir().unwrap();
    let domains = place.path().join("domains.ctf");
    fs::write(&domains, several_domains()).unwrap();
    age(&domains);
    for path in [data("made-maps.v2.ctf"), data("made-trees.v3.ctf"), domains] {
        let mut session = session(&path);
        for by in ALL_ROWS {
            for metric in [Metric::Live, Metric::Allocated, Metric::Peak, Metric::Survived] {
                let found = session.figures(&query(by, metric)).unwrap();
                let found = serde_json::to_value(found).unwrap();
                let expected = reported(&path, by, metric, None);
                assert!(
                    !expected["table"]["rows"].as_array().unwrap().is_empty()
                        || metric == Metric::Survived
                );
                assert_eq!(found, expected, "{} by {by:?}, {metric:?}", path.display());
            }
        }
    }
}

/// What was alive at an earlier moment is what `report --at` shows.
#[test]
fn an_earlier_moment_is_that_of_a_report() {
    let path = data("made-maps.v2.ctf");
    let mut session = session(&path);
    for moment in [0, 1_000_000, 3_333_333, session.live.latest()] {
        let past = Query { moment: Some(moment), ..query(By::Function, Metric::Live) };
        let found = serde_json::to_value(session.figures(&past).unwrap()).unwrap();
        let expected = reported(&path, By::Function, Metric::At, Some(moment));
        assert_eq!(found["table"]["rows"], expected["table"]["rows"], "at {moment}");
        assert_eq!(found["table"]["total"], expected["table"]["total"], "at {moment}");
    }
}

#[test]
fn every_screen_fits_every_terminal() {
    let mut app = app("made-maps.v2.ctf");
    let screens = [
        (Screen::Sites, "total of 10 rows"),
        (Screen::Timeline, "live size over time"),
        (Screen::Callers, "callers of Wl_mapchurn.run"),
        (Screen::Probes, "a trace from a pipe"),
        (Screen::Log, "a trace from a pipe"),
        (Screen::Diagnosis, "diagnosis: reading"),
        (Screen::Help, "Space"),
    ];
    for (columns, lines) in [(60, 30), (80, 24), (200, 60)] {
        for (screen, part) in screens {
            press(
                &mut app,
                KeyCode::Char(match screen {
                    Screen::Sites => '1',
                    Screen::Timeline => '2',
                    Screen::Callers => '3',
                    Screen::Probes => '4',
                    Screen::Log => '5',
                    Screen::Diagnosis => 'v',
                    Screen::Help => '?',
                }),
            );
            let text = text(&mut app, columns, lines);
            assert!(text.contains(part), "{columns}: {text}");
            assert!(text.contains("mapchurn (process 21912)"), "{columns}: {text}");
            assert!(text.contains("live 126.6 MiB ± 5.5 %"), "{columns}: {text}");
            assert!(text.lines().all(|line| width(line) <= usize::from(columns)), "{text}");
            assert!(text.lines().count() < usize::from(lines), "{text}");
        }
    }
    press(&mut app, KeyCode::Char('?'));
    assert!(text(&mut app, 80, 24).contains("quit; the program runs on"), "the help is whole");
    // A terminal that is too small for anything does no harm.
    for (columns, lines) in [(1, 1), (3, 2), (20, 5), (59, 4)] {
        for key in ['1', '2', '3', '4', '5', 'v', '?'] {
            press(&mut app, KeyCode::Char(key));
            text(&mut app, columns, lines);
        }
    }
}

#[test]
fn keys_choose_what_is_shown() {
    let mut app = app("made-maps.v2.ctf");
    let mut after = |key: KeyCode, part: &str| {
        assert!(!press(&mut app, key));
        let text = text(&mut app, 120, 40);
        assert!(text.contains(part), "after {key:?} there is no `{part}` in\n{text}");
    };
    after(KeyCode::Char('m'), "allocated by function");
    after(KeyCode::Char('o'), "live at the end, survived a collection by function");
    after(KeyCode::Char('o'), "allocated by function");
    after(KeyCode::Char('m'), "live at the peak");
    after(KeyCode::Char('m'), "promoted by function");
    after(KeyCode::Char('m'), "live at the end by function");
    for by in ["location", "file", "module", "label", "domain", "source", "function"] {
        after(KeyCode::Char('b'), &format!("live at the end by {by}"));
    }
    after(KeyCode::Char('s'), "sorted by name");
    after(KeyCode::Char('s'), "sorted by size");
    after(KeyCode::Enter, "callers of Wl_mapchurn.run");
    after(KeyCode::Esc, "total of 10 rows");
    after(KeyCode::Down, "total of 10 rows");
    after(KeyCode::Enter, "callers of Stdlib.Map.Make.bal");
    // Probes, log, and round again.
    after(KeyCode::Tab, "a trace from a pipe has no");
    after(KeyCode::Tab, "a trace from a pipe has no");
    after(KeyCode::Tab, "total of 10 rows");
    after(KeyCode::Tab, "live size over time");
    after(KeyCode::Char('?'), "quit; the program runs on");
    assert!(press(&mut app, KeyCode::Char('q')));
    assert!(app.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
}

#[test]
fn rows_name_own_code_or_what_allocates() {
    let mut app = app("made-maps.v2.ctf");
    let innermost: Vec<_> = app.rows.iter().map(|row| row.site.clone()).collect();
    let total = app.figures.as_ref().unwrap().table.total.samples;
    press(&mut app, KeyCode::Char('l'));
    let shown = text(&mut app, 120, 40);
    assert!(shown.contains("live at the end by function (own code)"), "{shown}");
    assert!(app.rows.iter().all(|row| row.site.name.starts_with("Wl_mapchurn")), "{shown}");
    let own = app.figures.as_ref().unwrap();
    assert_eq!(own.table.total.samples, total);
    assert_eq!(own.table.rows.iter().map(|row| row.sum.samples).sum::<u64>(), total);
    press(&mut app, KeyCode::Enter);
    assert!(text(&mut app, 120, 40).contains("callers of Wl_mapchurn"));
    press(&mut app, KeyCode::Esc);
    press(&mut app, KeyCode::Char('l'));
    assert_eq!(app.rows.iter().map(|row| row.site.clone()).collect::<Vec<_>>(), innermost);
}

#[test]
fn a_filter_selects_blocks_by_their_frames() {
    let mut app = app("made-maps.v2.ctf");
    let all = app.figures.as_ref().unwrap().totals.live.bytes;
    type_text(&mut app, "/Map");
    assert!(text(&mut app, 80, 24).contains("filter: Map"));
    press(&mut app, KeyCode::Enter);
    let shown = text(&mut app, 80, 24);
    assert!(shown.contains("matches /Map/"), "{shown}");
    let some = app.figures.as_ref().unwrap().totals.live.bytes;
    assert!(0.0 < some && some < all, "{some} of {all}");
    // A pattern that is none changes nothing. What is typed begins with the last one.
    type_text(&mut app, "/(");
    press(&mut app, KeyCode::Enter);
    let shown = text(&mut app, 80, 24);
    assert!(shown.contains("/Map(/ is no pattern") && shown.contains("matches /Map/"), "{shown}");
    press(&mut app, KeyCode::Esc);
    assert_eq!(app.figures.as_ref().unwrap().totals.live.bytes, all);
    assert!(!text(&mut app, 80, 24).contains("/Map"));
    // A filter that is given up.
    type_text(&mut app, "/q");
    press(&mut app, KeyCode::Backspace);
    press(&mut app, KeyCode::Esc);
    assert!(app.query.filter.is_none() && app.typed.is_none());
}

#[test]
fn the_view_goes_back_in_time_and_shows_what_changed_since() {
    let mut app = app("made-maps.v2.ctf");
    let latest = app.session.live.latest();
    let live = |app: &App| app.figures.as_ref().unwrap().totals.live.bytes;
    let at_end = live(&app);
    for _ in 0..10 {
        press(&mut app, KeyCode::Left);
    }
    let moment = app.query.moment.unwrap();
    assert!(moment < latest && moment > 0);
    assert!(live(&app) < at_end);
    let then = live(&app);
    press(&mut app, KeyCode::Right);
    assert!(app.query.moment.unwrap() > moment);
    press(&mut app, KeyCode::Left);
    assert_eq!((app.query.moment, live(&app)), (Some(moment), then));
    press(&mut app, KeyCode::Char('d'));
    let shown = text(&mut app, 100, 30);
    assert!(shown.contains("changes since the mark") && shown.contains("+0 bytes"), "{shown}");
    press(&mut app, KeyCode::End);
    assert_eq!((app.query.moment, live(&app)), (None, at_end));
    let sum: f64 = app.rows.iter().map(|row| row.change.unwrap().bytes).sum();
    assert!((sum - (at_end - then)).abs() < 1.0, "{sum} in all");
    assert!(text(&mut app, 100, 30).contains("sorted by change"));
    // The mark follows what is measured.
    press(&mut app, KeyCode::Char('b'));
    let sum: f64 = app.rows.iter().map(|row| row.change.unwrap().bytes).sum();
    assert!((sum - (at_end - then)).abs() < 1.0, "{sum} in all, by location");
    press(&mut app, KeyCode::Char('d'));
    assert!(app.mark.is_none() && app.rows.iter().all(|row| row.change.is_none()));
    press(&mut app, KeyCode::Home);
    assert_eq!(app.query.moment, Some(0));
    press(&mut app, KeyCode::Char(' '));
    assert_eq!(app.query.moment, None);
}

/// Paused, the view stays as it is while the trace grows.
#[test]
fn a_pause_keeps_the_moment_while_the_trace_grows() {
    let place = tempfile::tempdir().unwrap();
    let (path, bytes) = (place.path().join("t.ctf"), fs::read(data("made-maps.v2.ctf")).unwrap());
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    // This process writes it.
    let _writer = File::options().append(true).open(&path).unwrap();
    let live = LiveTrace::open(&path, Process::of(std::process::id())).unwrap();
    let mut app = App::new(Session::new(live), query(By::Function, Metric::Live), "");
    app.advance(Duration::from_secs(60)).unwrap();
    assert_eq!(app.session.live.state(), LiveState::Waiting);
    press(&mut app, KeyCode::Char(' '));
    let (before, half) = (text(&mut app, 80, 24), app.session.live.latest());
    assert!(before.contains("PAUSED at"), "{before}");
    fs::write(&path, &bytes).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    app.advance(Duration::from_secs(60)).unwrap();
    assert!(app.session.live.latest() > half);
    let after = text(&mut app, 80, 24);
    let table = |text: &str| text.lines().skip(3).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(table(&before), table(&after));
    press(&mut app, KeyCode::Char(' '));
    let shown = text(&mut app, 80, 24);
    assert!(shown.contains("live, 7.9 s") && shown.contains("live 126.6 MiB"), "{shown}");
    // Another trace of the same name: nothing of the first is left.
    press(&mut app, KeyCode::Char('d'));
    fs::remove_file(&path).unwrap();
    fs::copy(data("made-trees.v3.ctf"), &path).unwrap();
    app.advance(Duration::from_secs(60)).unwrap();
    app.advance(Duration::from_secs(60)).unwrap();
    let shown = text(&mut app, 80, 24);
    assert!(shown.contains("another trace has taken the place"), "{shown}");
    assert!(!shown.contains("mapchurn") && app.mark.is_none(), "{shown}");
}

/// The bars show what the filter above them selects.
#[test]
fn the_live_size_over_time_is_that_of_the_filter() {
    let mut app = app("made-maps.v2.ctf");
    let all = app.live_size.most_bytes.clone();
    type_text(&mut app, "/Map");
    press(&mut app, KeyCode::Enter);
    let some = app.live_size.most_bytes.clone();
    let sum = |sizes: &[f64]| sizes.iter().sum::<f64>();
    assert!(0.0 < sum(&some) && sum(&some) < 0.9 * sum(&all), "{} of {}", sum(&some), sum(&all));
    // At the end they are the total of the table.
    let (last, total) = (some.last().unwrap(), app.figures.as_ref().unwrap().totals.live.bytes);
    assert!((last - total).abs() <= 0.02 * total, "{last} for {total}");
    press(&mut app, KeyCode::Char('2'));
    let shown = text(&mut app, 80, 24);
    assert!(shown.contains("blocks that match /Map/"), "{shown}");
    press(&mut app, KeyCode::Home);
    assert_eq!(app.live_size.most_bytes, some, "whatever moment is in view");
    press(&mut app, KeyCode::Char('1'));
    press(&mut app, KeyCode::Esc);
    assert_eq!(app.live_size.most_bytes, all);
}

/// Only those that mean rows have them computed.
#[test]
fn keys_that_come_together_are_computed_once() {
    let mut app = app("made-maps.v2.ctf");
    let live = |app: &App| app.figures.as_ref().unwrap().totals.live.bytes;
    let at_end = live(&app);
    for _ in 0..1000 {
        assert!(!app.press(KeyEvent::new(KeyCode::Left, KeyModifiers::NONE)));
    }
    assert_eq!((live(&app), app.query.moment), (at_end, Some(0)));
    app.settle();
    assert!(live(&app) < at_end);
    let keys = |text: &str| -> Vec<KeyEvent> {
        let code = |letter| if letter == '!' { KeyCode::Enter } else { KeyCode::Char(letter) };
        text.chars().map(|letter| KeyEvent::new(code(letter), KeyModifiers::NONE)).collect()
    };
    for (text, ends) in
        [("bbmq", true), ("/q", false), ("/q!b", false), ("/q!q", true), ("", false)]
    {
        assert_eq!(ends_program(keys(text).iter(), false), ends, "{text}");
    }
    assert!(!ends_program(keys("q").iter(), true) && ends_program(keys("!q").iter(), true));
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert!(ends_program([interrupt].iter(), true));
}

/// What a screen of another size hid is shown again, and what is hidden is named.
#[test]
fn the_largest_rows_are_in_view_if_there_is_room() {
    let mut app = app("made-maps.v2.ctf");
    let whole = text(&mut app, 80, 24);
    assert!(whole.contains("total of 10 rows\n"), "{whole}");
    for _ in 0..3 {
        press(&mut app, KeyCode::Down);
    }
    let small = text(&mut app, 80, 8);
    assert!(small.contains("total of 10 rows, 3 to 4 shown"), "{small}");
    assert_eq!(text(&mut app, 80, 24), whole);
    for _ in 0..20 {
        press(&mut app, KeyCode::Down);
    }
    let small = text(&mut app, 80, 8);
    assert!(small.contains("9 to 10 shown"), "{small}");
    press(&mut app, KeyCode::Up);
    assert!(text(&mut app, 80, 8).contains("9 to 10 shown"));
    press(&mut app, KeyCode::Up);
    assert!(text(&mut app, 80, 8).contains("8 to 9 shown"));
}

/// Looks on until this is on the screen, at most a minute. Returns how often it was drawn.
#[track_caller]
fn shows(app: &mut App, columns: u16, part: &str) -> u32 {
    let begin = Instant::now();
    for drawn in 1.. {
        app.advance(Duration::from_millis(5)).unwrap();
        let shown = text(app, columns, 40);
        if shown.contains(part) {
            return drawn;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "no `{part}` in\n{shown}");
        std::thread::sleep(Duration::from_millis(2));
    }
    0
}

/// The panel has what `doctor` says, and the display goes on meanwhile.
#[test]
fn the_diagnosis_is_made_beside_the_display() {
    let mut app = app("made-maps.v2.ctf");
    let files = DiagnosedFiles::of_trace(&data("made-maps.v2.ctf"));
    let made = files.diagnosis(&DiagnosisOptions::default(), false).unwrap();
    let sentence = crate::text::diagnosis::verdict(&made);
    press(&mut app, KeyCode::Char('v'));
    assert!(text(&mut app, 200, 40).contains("diagnosis: reading what there is so far"));
    assert!(shows(&mut app, 200, &sentence) > 1, "it was not waited for");
    let whole = text(&mut app, 200, 40);
    assert!(whole.contains("a trace of 7.9 s at rate"), "{whole}");
    assert!(!whole.contains("so far"), "the program has ended\n{whole}");
    // It scrolls, and what is the last line stays in view.
    let top = text(&mut app, 60, 8);
    press(&mut app, KeyCode::Down);
    assert_ne!(text(&mut app, 60, 8), top);
    for _ in 0..100 {
        press(&mut app, KeyCode::PageDown);
    }
    let end = text(&mut app, 60, 8);
    press(&mut app, KeyCode::Up);
    assert_ne!(text(&mut app, 60, 8), end, "it does not stand beyond its end");
    press(&mut app, KeyCode::Char('v'));
    shows(&mut app, 200, "reading again");
    shows(&mut app, 200, " diagnosis\n");
    press(&mut app, KeyCode::Esc);
    assert!(text(&mut app, 200, 40).contains("total of 10 rows"));
}

#[test]
fn the_diagnosis_of_a_program_that_runs_says_so_and_its_age() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("t.ctf");
    fs::copy(data("made-maps.v2.ctf"), &path).unwrap();
    // This process writes it.
    let _writer = File::options().append(true).open(&path).unwrap();
    let live = LiveTrace::open(&path, Process::of(std::process::id())).unwrap();
    let mut app = App::new(Session::new(live), query(By::Function, Metric::Live), "");
    app.advance(Duration::from_secs(60)).unwrap();
    press(&mut app, KeyCode::Char('v'));
    shows(&mut app, 80, "diagnosis so far, 0 s old");
    shows(&mut app, 80, "diagnosis so far, 1 s old");
    // Another trace of the same name: nothing of the first is left.
    fs::remove_file(&path).unwrap();
    fs::copy(data("made-trees.v3.ctf"), &path).unwrap();
    shows(&mut app, 80, "diagnosis: reading");
}

#[test]
fn a_pipe_has_no_diagnosis_and_the_panel_says_why() {
    let mut view = DiagnosisView::default();
    let shown = |view: &DiagnosisView| {
        let (title, lines) = view.lines(80);
        lines.iter().fold(title, |text, line| format!("{text}\n{line}"))
    };
    assert!(view.advance(None, true), "it begins");
    let begin = Instant::now();
    while !view.advance(None, true) {
        assert!(begin.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(shown(&view).contains("a pipe cannot be read again"), "{}", shown(&view));
    view.forget();
    assert!(shown(&view).contains("reading"));
}

#[test]
fn titles_have_the_name_without_its_directory() {
    assert_eq!(program_name(b"/usr/bin/server"), "server");
    assert_eq!(program_name(b""), "-");
    assert!(!program_name(b"a\x1b[2J").contains('\x1b'));
}
