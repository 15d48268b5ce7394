//! Rows that are sources say where a block is, so one that is promoted moves from the minor to the
//! major heap, over time too.

mod made;

use heaptap_query::Engine;
use heaptap_trace::{EventKind, Source};
use serde_json::{Value, json};

fn ask(engine: &mut Engine, request: &Value) -> Value {
    serde_json::from_str(&engine.query(request.to_string().as_bytes())).unwrap()
}

#[test]
fn the_time_line_by_source_is_that_of_the_table_at_each_time() {
    let mut engine = Engine::default();
    // Half of the young blocks are promoted after 50 ms, and half of these are collected after 100 ms.
    engine.add(made::archive(|happen| {
        for step in 0..1_000_u64 {
            let source = if step % 5 == 0 { Source::External } else { Source::Minor };
            happen(step * 1_000, made::block(step, source));
            if let Some(old) = step.checked_sub(50).filter(|old| old % 2 == 0 && old % 5 != 0) {
                happen(step * 1_000, EventKind::Promote(old));
            }
            if let Some(old) = step.checked_sub(100).filter(|old| old % 4 == 0) {
                happen(step * 1_000, EventKind::Collect(old));
            }
        }
    }));
    let request = json!({"q": "timeline", "by": "source", "metric": "live", "top": 8});
    let timeline = ask(&mut engine, &request);
    let series = timeline["series"].as_array().unwrap();
    assert_eq!(series.len(), 3);
    let times = timeline["times"].as_array().unwrap();
    for (step, time) in times.iter().enumerate().filter(|(step, _)| step % 9 == 1) {
        let at = time.as_u64().unwrap() - 1;
        let request = json!({"q": "report", "by": "source", "metric": "at", "at": at});
        let table = ask(&mut engine, &request);
        let rows = table["table"]["rows"].as_array().unwrap();
        for line in series {
            let row = rows.iter().find(|row| row["name"] == line["site"]["name"]);
            let expected = row.map_or(0.0, |row| row["bytes"].as_f64().unwrap());
            assert_eq!(line["live"][step], expected, "{} at {at}", line["site"]["name"]);
        }
    }
    let major = series.iter().find(|line| line["site"]["name"] == "major heap").unwrap();
    assert!(major["live"].as_array().unwrap().iter().any(|live| live.as_f64() > Some(0.0)));
}
