//! What has survived a major collection: `top` and the web page say the same.

use std::fs;
use std::path::Path;

use heaptap_probes::{Event, Heap};
use heaptap_query::Engine;
use heaptap_report::figures::units::{bytes, percent};
use serde_json::{Value, json};

use crate::agreement::ROWS;
use crate::export::{archives, unpacked};
use crate::made_sidecar::SidecarWriter;
use crate::program::{Place, heaptap};

/// A trace of a real program, of eight seconds, and how many major collections have ended by each tick.
const TRACE: &str = "../trace/tests/data/made-maps.v2.ctf";
const TICK_US: u64 = 900_000;
const ENDED: [u64; 9] = [3, 3, 3, 3, 3, 3, 4, 4, 5];
/// The last tick before somebody saw the fourth end, and so the fifth begin.
const OLD_BEFORE: u64 = 5 * TICK_US;

/// The sidecar of a trace that began at this time.
fn sidecar(start: u64, counts_majors: bool) -> Vec<u8> {
    let mut writer = SidecarWriter::of_trace(start, 21_912, "elsewhere");
    for (tick, ended) in (0..).zip(ENDED) {
        writer.time = tick * TICK_US * 1_000;
        let major_collections = counts_majors.then_some(ended);
        writer.add(Event::Heap(Heap {
            minor_collections: Some(tick),
            major_collections,
            ..Heap::default()
        }));
    }
    writer.add(Event::End);
    writer.finish()
}

/// A trace, and the page of it.
struct Shown {
    place: Place,
    engine: Engine,
    /// What the page knows of the major collections.
    old_before: Value,
}

impl Shown {
    /// With a sidecar that counts major collections, with one that does not, or with none.
    fn new(counts_majors: Option<bool>) -> Shown {
        let place = Place::new();
        let bytes = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(TRACE)).unwrap();
        let trace = place.file("t.ctf", &bytes);
        let mut engine = Engine::default();
        let written = |place: &Place| {
            let to = place.path("page.html");
            heaptap(&format!("export --to html -o {}", to.display()), &[&trace]).text(0);
            fs::read_to_string(to).unwrap()
        };
        let start = archives(&written(&place))[0].info.start_time;
        if let Some(counts_majors) = counts_majors {
            place.file("t.ctf.probes", &sidecar(start, counts_majors));
        }
        let html = written(&place);
        for archive in archives(&html) {
            engine.add(archive);
        }
        let documents = unpacked(&html, "heaptap-probes");
        let documents: Option<Value> =
            documents.map(|bytes| serde_json::from_slice(&bytes).unwrap());
        let old_before = documents.map_or(Value::Null, |all| all[0]["old_before_us"].clone());
        Shown { place, engine, old_before }
    }

    /// What the page answers as its table does when it asks for survivors.
    fn table(&mut self, by: &str, old_before: &Value) -> Value {
        let request = json!({ "q": "report", "metric": "survived", "by": by, "sites": "own",
            "old_before": old_before });
        let answer = self.engine.query(request.to_string().as_bytes());
        let mut answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["exact"], true, "{answer}");
        answer["table"].take()
    }

    /// What `top` prints.
    fn top(&self, by: &str) -> String {
        let call = format!("top --once --metric survived --top 100 --by {by}");
        heaptap(&call, &[&self.place.path("t.ctf")]).text(0)
    }
}

/// The figures of a row, as `top` prints them.
fn printed(row: &Value, share: f64) -> String {
    let number = |name: &str| row[name].as_f64().unwrap();
    let (size, error) = (number("bytes"), number("error"));
    format!("{:>11}  {:>7}  {:>7}  ", bytes(size), percent(error / size), percent(share))
}

/// Fails unless `top` has the rows of the page, in their order, and its total.
#[track_caller]
fn assert_same(table: &Value, top: &str, by: &str) {
    let rows = table["rows"].as_array().unwrap();
    assert!(!rows.is_empty(), "{by}");
    for row in rows {
        let figures = printed(row, row["share"].as_f64().unwrap());
        let name = row["name"].as_str().unwrap();
        let has = |line: &str| line.starts_with(&figures) && line.contains(name);
        assert!(top.lines().any(has), "{by}: no {figures:?} {name} in\n{top}");
    }
    let total = format!("{}total of {} rows", printed(&table["total"], 1.0), rows.len());
    assert!(top.contains(&total), "{by}: no {total:?} in\n{top}");
}

#[test]
fn the_page_counts_the_survivors_that_top_does() {
    let mut shown = Shown::new(Some(true));
    let old_before = shown.old_before.clone();
    assert_eq!(old_before, OLD_BEFORE);
    for by in ROWS {
        let (top, table) = (shown.top(by), shown.table(by, &old_before));
        assert!(top.contains("survived a whole major collection"), "{top}");
        assert_same(&table, &top, by);
        let any = shown.table(by, &Value::Null);
        let samples = |table: &Value| table["total"]["samples"].as_u64().unwrap();
        assert!(0 < samples(&table) && samples(&table) < samples(&any), "{by}");
    }
}

#[test]
fn where_major_collections_are_not_counted_any_will_do() {
    for counts_majors in [None, Some(false)] {
        let mut shown = Shown::new(counts_majors);
        assert_eq!(shown.old_before, Value::Null);
        let (top, table) = (shown.top("function"), shown.table("function", &Value::Null));
        assert!(top.contains("survived a collection"), "{top}");
        assert_same(&table, &top, "function");
    }
}
