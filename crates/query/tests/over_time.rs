//! Time lines and heat maps of a part of a trace: as fine as they are asked for, and what a
//! count of the events by hand gives.

use heaptap_query::Engine;
use heaptap_report::{Aggregator, Archive, Depth, MOST_BLOCKS, Options};
use heaptap_trace::{
    Allocation, Backtrace, Event, EventKind, Location, LocationTable, Source, TraceInfo,
};
use serde_json::{Value, json};

const BLOCKS: u64 = 6_000;
const DURATION: u64 = BLOCKS * 700;
/// What a sample stands for, at the rate of the trace.
const UNIT: f64 = 8.0 / 0.01;

/// A block: when it was allocated and collected, its samples, and the function.
fn block(number: u64) -> (u64, u64, u64, u64) {
    let birth = number * 700;
    (birth, birth + 1 + number * 7919 % 900_000, 1 + number % 3, 1 + number % 11 % 5)
}

fn locations() -> LocationTable {
    let mut locations = LocationTable::default();
    for code in 1..=5_u64 {
        let definition = format!("Main.f{code}");
        let definition = definition.as_bytes();
        let line = code as u32;
        let location = Location { file: b"main.ml", line, start_char: 1, end_char: 9, definition };
        locations.insert(code, &[location]);
    }
    locations
}

fn engine(most_blocks: usize) -> Engine {
    let info = TraceInfo {
        sample_rate: 0.01,
        word_size: 64,
        executable: b"made".to_vec(),
        host: Vec::new(),
        runtime_params: Vec::new(),
        pid: 1,
        context: Vec::new(),
        start_time: 0,
        domain: 0,
    };
    let locations = locations();
    let options = Options { depth: Depth::Whole, most_blocks, ..Options::default() };
    let mut aggregator = Aggregator::new(&info, options);
    let mut events: Vec<(u64, u64, bool)> = Vec::new();
    for id in 0..BLOCKS {
        let (birth, death, ..) = block(id);
        events.push((birth, id, true));
        if death < DURATION {
            events.push((death, id, false));
        }
    }
    events.sort_unstable();
    for (time, id, is_birth) in events {
        let (_, _, samples, code) = block(id);
        let frames = [code];
        let backtrace = Backtrace { frames: &frames, common_prefix: 0, new: &frames };
        let allocation = Allocation { id, length: 7, samples, source: Source::Major, backtrace };
        let kind = if is_birth { EventKind::Alloc(allocation) } else { EventKind::Collect(id) };
        aggregator.event(&Event { time, domain: 0, kind }, &locations);
    }
    let (aggregate, blocks) = aggregator.finish_with_blocks();
    let archive = Archive {
        name: "made.ctf".to_owned(),
        info,
        cut_short: None,
        incomplete: None,
        notices: Vec::new(),
        aggregate,
        blocks,
        locations,
        answers: Vec::new(),
    };
    let mut engine = Engine::default();
    assert_eq!(engine.open(&archive.to_bytes()), Ok(0));
    engine
}

fn ask(engine: &mut Engine, request: &Value) -> Value {
    let answer: Value =
        serde_json::from_str(&engine.query(request.to_string().as_bytes())).unwrap();
    assert!(answer.get("error").is_none(), "{request}: {answer}");
    answer
}

fn numbers(of: &Value) -> Vec<f64> {
    of.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// The live samples just before a time, of all blocks or of those of a function.
fn live_before(time: u64, of: Option<u64>) -> f64 {
    let alive = (0..BLOCKS).map(block).filter(|&(birth, death, _, code)| {
        birth < time && (death >= time || death >= DURATION) && of.is_none_or(|of| of == code)
    });
    alive.map(|(_, _, samples, _)| samples as f64).sum()
}

#[test]
fn a_part_of_the_time_line_is_as_fine_as_it_is_asked_for() {
    let mut engine = engine(MOST_BLOCKS);
    // From the whole run to less than a bucket of it.
    for (from, to) in
        [(0, DURATION), (1_000_000, 3_000_000), (2_000_000, 2_050_000), (2_000_123, 2_002_123)]
    {
        let request = json!({ "q": "timeline", "metric": "live", "points": 300, "top": 3, "range": [from, to] });
        let answer = ask(&mut engine, &request);
        let times = numbers(&answer["times"]);
        let width = answer["width_us"].as_f64().unwrap();
        assert!((100..=303).contains(&times.len()), "{from} to {to}: {} points", times.len());
        assert!(times[0] <= from.max(width as u64) as f64, "{from} is not within {times:?}");
        assert!(times[times.len() - 1] >= to.min(DURATION - 700) as f64, "{to}: {times:?}");
        let total = numbers(&answer["total"]["live"]);
        let most = &answer["series"][0];
        let name = most["site"]["name"].as_str().unwrap();
        let code = name.trim_start_matches("Main.f").parse().unwrap();
        let of_series = numbers(&most["live"]);
        for (at, &time) in times.iter().enumerate() {
            let (all, part) =
                (live_before(time as u64, None), live_before(time as u64, Some(code)));
            assert!((total[at] - all * UNIT).abs() < 1e-6 * total[at], "{from} to {to}, at {time}");
            assert!((of_series[at] - part * UNIT).abs() < 1e-6 * total[at], "{name} at {time}");
        }
    }
}

#[test]
fn the_cells_of_a_part_are_what_was_allocated_in_it() {
    let mut engine = engine(MOST_BLOCKS);
    for (from, to) in [(0, DURATION), (1_000_000, 3_000_000), (2_000_123, 2_080_123)] {
        let request = json!({ "q": "heat_map", "metric": "allocated", "points": 200, "top": 2, "range": [from, to] });
        let map = ask(&mut engine, &request);
        let (begin, width) = (map["from_us"].as_u64().unwrap(), map["width_us"].as_u64().unwrap());
        assert_eq!((map["rows"].as_array().unwrap().len(), &map["other_rows"]), (2, &json!(3)));
        for row in map["rows"].as_array().unwrap() {
            let name = row["site"]["name"].as_str().unwrap();
            let code: u64 = name.trim_start_matches("Main.f").parse().unwrap();
            let mut sum = 0.0;
            for (cell, bytes) in numbers(&row["bytes"]).into_iter().enumerate() {
                let first = begin + cell as u64 * width;
                let inside = (0..BLOCKS).map(block).filter(|&(birth, _, _, of)| {
                    of == code && (first..first + width).contains(&birth)
                });
                let samples: u64 = inside.map(|(_, _, samples, _)| samples).sum();
                assert!((bytes - samples as f64 * UNIT).abs() < 1e-6, "{name} in {cell}");
                sum += bytes;
            }
            assert!(sum > 0.0 && (sum - row["size"]["bytes"].as_f64().unwrap()).abs() < 1e-6 * sum);
        }
    }
}

#[test]
fn the_cells_of_a_thinned_table_add_up_to_the_rows_of_the_report() {
    let mut engine = engine(500);
    let report =
        ask(&mut engine, &json!({ "q": "report", "metric": "allocated", "by": "function" }));
    let map =
        ask(&mut engine, &json!({ "q": "heat_map", "metric": "allocated", "by": "function" }));
    assert!(map["blocks_one_in"].as_u64().unwrap() > 1);
    let rows = map["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 5);
    for (row, expected) in rows.iter().zip(report["table"]["rows"].as_array().unwrap()) {
        let (size, bytes) = (&row["size"], expected["bytes"].as_f64().unwrap());
        assert_eq!((&row["site"]["name"], &size["bytes"]), (&expected["name"], &expected["bytes"]));
        assert!((numbers(&row["bytes"]).iter().sum::<f64>() - bytes).abs() < 1e-6 * bytes);
        // The error of a cell includes thinning.
        let cell = numbers(&row["bytes"]).iter().zip(numbers(&row["errors"])).fold(
            0.0,
            |most: f64, (&bytes, error)| {
                if bytes > 0.0 { most.max(error / bytes) } else { most }
            },
        );
        assert!(cell > size["error"].as_f64().unwrap() / bytes);
    }
}

#[test]
fn a_map_of_what_is_alive_is_refused_and_hostile_ranges_are_bounded() {
    let mut engine = engine(MOST_BLOCKS);
    let refused = engine.query(br#"{"q":"heat_map","metric":"live"}"#);
    assert!(refused.contains("allocated or promoted"), "{refused}");
    for range in [json!([1e18, 1e19]), json!([-5, -1]), json!([9, 3]), json!([0, 0])] {
        for q in ["heat_map", "timeline"] {
            let answer = ask(
                &mut engine,
                &json!({ "q": q, "metric": "allocated", "points": 1e9 as u64, "range": range }),
            );
            assert!(answer["times"].as_array().unwrap().len() <= 1026, "{q} of {range}");
        }
    }
}
