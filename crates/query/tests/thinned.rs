//! A page whose table of blocks is thinned: what needs no table is what the reading
//! counted.

use heaptap_query::{Engine, stored_leaks};
use heaptap_report::figures::{
    ALL_ROWS, Figures, TableOptions, TableView, TraceFigures, by_name, leak_report,
};
use heaptap_report::rows::By;
use heaptap_report::{
    Aggregate, Aggregator, Archive, BlockTable, Depth, Metric, Options, OverTime, SiteFrame,
};
use heaptap_trace::{
    Allocation, Backtrace, Event, EventKind, Location, LocationTable, Source, TraceInfo,
};
use serde_json::{Value, json};

fn info() -> TraceInfo {
    TraceInfo {
        sample_rate: 0.01,
        word_size: 64,
        executable: b"leaky".to_vec(),
        host: Vec::new(),
        runtime_params: Vec::new(),
        pid: 1,
        context: Vec::new(),
        start_time: 0,
        domain: 0,
    }
}

fn locations() -> LocationTable {
    let mut locations = LocationTable::default();
    let code = [(1, "Main.run"), (2, "Cache.add"), (3, "Json.token")];
    let labels = [(4, "login"), (5, "browse")];
    let of_code = code.map(|(code, name)| (code, name, &b"leaky.ml"[..], code as u32));
    let of_labels = labels.map(|(code, name)| (code, name, &b"label"[..], 0));
    for (code, name, file, line) in of_code.into_iter().chain(of_labels) {
        let definition = name.as_bytes();
        let location = Location { file, line, start_char: 1, end_char: 9, definition };
        locations.insert(code, &[location]);
    }
    locations
}

/// Reads a program that keeps one block in four.
fn read(options: Options) -> (Aggregate, BlockTable) {
    let locations = locations();
    let mut aggregator = Aggregator::new(&info(), options);
    for id in 0..20_000_u64 {
        let (time, kept) = (id * 100, id % 4 == 0);
        let outermost = [1, 4, 5][(id % 3) as usize];
        let frames = [outermost, if kept { 2 } else { 3 }];
        let source = [Source::Minor, Source::Minor, Source::Major, Source::External];
        let (domain, source) = ((id % 5) as u16, source[(id % 7 % 4) as usize]);
        let backtrace = Backtrace { frames: &frames, common_prefix: 0, new: &frames };
        let allocation = Allocation { id, length: 7, samples: 1 + id % 2, source, backtrace };
        let mut happen = |kind| aggregator.event(&Event { time, domain, kind }, &locations);
        happen(EventKind::Alloc(allocation));
        if kept {
            happen(EventKind::Promote(id));
        } else if id > 40 {
            // Old ones die all the time, so that a leak can be told from garbage.
            let old = id - 32;
            happen(EventKind::Promote(old));
            happen(EventKind::Collect(old));
        }
    }
    aggregator.finish_with_blocks()
}

/// The archive of a reading with a table of 1,000 rows.
fn leaky() -> Archive {
    let (aggregate, blocks) = read(Options {
        depth: Depth::Whole,
        over_time: OverTime::LiveSize,
        most_blocks: 1000,
        ..Options::default()
    });
    Archive {
        name: "leaky.ctf".to_owned(),
        info: info(),
        cut_short: None,
        incomplete: None,
        notices: Vec::new(),
        aggregate,
        blocks,
        locations: locations(),
        answers: Vec::new(),
    }
}

fn answer(engine: &mut Engine, request: &Value) -> Value {
    serde_json::from_str(&engine.query(request.to_string().as_bytes())).unwrap()
}

#[test]
fn leaks_and_rows_without_a_filter_are_those_of_the_reading() {
    let mut archive = leaky();
    assert!(archive.blocks.thinning() > 2 && archive.blocks.len() <= 1000);
    let figures = TraceFigures {
        name: &archive.name,
        info: &archive.info,
        cut_short: None,
        incomplete: None,
        aggregate: &archive.aggregate,
        locations: &archive.locations,
        selected: false,
    };
    // As text and back, as the answer is.
    let expected = serde_json::to_string(&leak_report(&figures, SiteFrame::Innermost)).unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    let samples = archive.aggregate.samples();
    archive.answers.extend(stored_leaks(&archive, false).unwrap());
    let mut engine = Engine::default();
    assert_eq!(engine.open(&archive.to_bytes()), Ok(0));

    let mut leaks = answer(&mut engine, &json!({ "q": "leaks" }));
    assert_eq!(leaks["exact"], true);
    assert_eq!(leaks["leaks"].as_array().map(Vec::len), Some(1), "{leaks}");
    let growth = leaks["leaks"][0].as_object_mut().and_then(|leak| leak.remove("growth"));
    assert!(growth.is_some_and(|growth| growth["live"][5].as_f64() > Some(0.0)));
    assert_eq!(leaks["leaks"], expected["leaks"]);
    assert_eq!(leaks["verdict"], expected["verdict"]);

    let report = answer(&mut engine, &json!({ "q": "report" }));
    assert_eq!((&report["exact"], &report["totals"]["samples"]), (&json!(true), &json!(samples)));
    let filtered =
        answer(&mut engine, &json!({ "q": "report", "filter": { "include": ["Cache"] } }));
    assert_eq!(filtered["exact"], false);
    let size = &filtered["table"]["total"];
    let truth = 5000.0 * 1.0 * 8.0 / 0.01;
    let (low, high) = (size["low"].as_f64().unwrap(), size["high"].as_f64().unwrap());
    assert!(low < truth && truth < high, "{low} to {high} for {truth}");
}

/// Every kind of row, of every metric.
#[test]
fn tables_without_a_filter_are_those_of_the_reading() {
    let archive = leaky();
    assert!(archive.blocks.thinning() > 2);
    let mut engine = Engine::default();
    engine.open(&archive.to_bytes()).unwrap();
    for by in ALL_ROWS {
        let depth = match by {
            By::Function | By::Location | By::File | By::Module => Depth::Innermost,
            By::Label => Depth::Label,
            By::Domain => Depth::Domain,
            By::Source => Depth::Source,
        };
        let (aggregate, _) = read(Options { depth, ..Options::default() });
        let figures = TraceFigures {
            name: &archive.name,
            info: &archive.info,
            cut_short: None,
            incomplete: None,
            aggregate: &aggregate,
            locations: &archive.locations,
            selected: false,
        };
        for (metric, name) in [
            (Metric::Allocated, "allocated"),
            (Metric::Promoted, "promoted"),
            (Metric::Peak, "peak"),
            (Metric::Live, "live"),
            (Metric::Survived, "survived"),
        ] {
            let options = TableOptions {
                view: TableView { by, site: SiteFrame::Innermost, metric, at: None },
                top: 0,
                callers: None,
            };
            let mut expected: Value =
                serde_json::from_str(&json!(Figures::of(&figures, &options)).to_string()).unwrap();
            expected["exact"] = json!(true);
            assert!(expected["table"]["rows"].as_array().is_some_and(|rows| !rows.is_empty()));
            let request = json!({ "q": "report", "by": by_name(by), "metric": name });
            assert_eq!(answer(&mut engine, &request), expected, "{name} by {}", by_name(by));
        }
    }
    let info = answer(&mut engine, &json!({ "q": "info", "trace": 0 }));
    assert_eq!(info["domains"], json!([0, 1, 2, 3, 4]));
    assert_eq!(info["sources"], json!(["external", "major", "minor"]));
}

#[test]
fn requests_that_are_wrong_are_refused_in_words() {
    let mut engine = Engine::default();
    engine.open(&leaky().to_bytes()).unwrap();
    for (request, words) in [
        (json!({ "q": "report", "filter": { "include": ["("] } }), "not a regular expression: ("),
        (json!({ "q": "report", "trace": 7 }), "there is no trace 7"),
        (json!({ "q": "report", "filter": { "sources": ["moon"] } }), "moon is not a source"),
        (json!({ "q": "tree", "by": "label" }), "filter by them instead"),
        (
            json!({ "q": "timeline", "by": "label", "within": { "by": "module", "name": "Json" } }),
            "filter by them instead",
        ),
        (json!({ "q": "hot", "threshold": 7 }), "not between 0 and 1"),
        (json!({ "q": "moon" }), "the request is not one"),
    ] {
        let refusal = answer(&mut engine, &request);
        let error = refusal["error"].as_str().unwrap_or_else(|| panic!("{request}: {refusal}"));
        assert!(error.contains(words), "{request}: {error}");
    }
    assert!(engine.open(b"heaptap archive").is_err());
}

/// What a block that is not in the table may have had is not less for the peak than for what is
/// alive at the end.
#[test]
fn where_nothing_was_seen_alive_the_bound_of_the_peak_includes_the_thinning() {
    let mut engine = Engine::default();
    engine.add(leaky());
    let request = json!({"q": "report", "metric": "peak", "filter": {"include": ["^Nobody$"]}});
    let found: Value = serde_json::from_str(&engine.query(request.to_string().as_bytes())).unwrap();
    let totals = &found["totals"];
    assert_eq!(totals["samples"], 0);
    let of_end = &totals["live"]["high"];
    assert!(of_end.as_f64().unwrap() > 4.0 * 300.0 * 8.0, "{of_end}");
    for figure in ["peak", "live_at_peak"] {
        assert_eq!(&totals[figure]["high"], of_end, "{figure}");
    }
    assert_eq!(&found["table"]["total"]["high"], of_end);
}
