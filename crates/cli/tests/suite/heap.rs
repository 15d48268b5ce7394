//! `heaptap heap` and `heaptap heap-diff` on a snapshot of five blocks. What they find in real programs is the matter of
//! `ocaml-tests/tests/heap.py`.

use serde_json::Value;

use crate::heap_snapshots::{Flaw, snapshot};
use crate::program::{Place, heaptap, heaptap_reading};

fn json(call: &str, place: &Place) -> Value {
    serde_json::from_str(&heaptap(call, &[&place.path("a.heap")]).text(0)).unwrap()
}

fn place() -> Place {
    let place = Place::new();
    place.file("a.heap", &snapshot(Flaw::None));
    place
}

#[test]
fn text_json_and_csv_have_the_same_rows() {
    let place = place();
    let path = place.path("a.heap");
    let figures = json("heap --json", &place);
    assert_eq!(figures["all"]["blocks"], 5);
    assert_eq!(figures["reachable"]["blocks"], 4);
    let rows = figures["table"]["rows"].as_array().unwrap();
    let csv = heaptap("heap --csv", &[&path]).text(0);
    let lines: Vec<&str> = csv.lines().skip(1).collect();
    assert_eq!(lines.len(), rows.len());
    let text = heaptap("heap", &[&path]).text(0);
    for (row, line) in rows.iter().zip(lines) {
        let name = row["name"].as_str().unwrap();
        let quoted = if name.contains(',') { format!("\"{name}\"") } else { name.to_owned() };
        let expected = format!(
            "{quoted},{},{},{},{},{},{},{},{}",
            row["roots"],
            row["reachable_bytes"],
            row["exclusive_bytes"],
            row["first_reached"]["bytes"],
            row["first_reached"]["blocks"],
            row["outside_bytes"],
            row["first_outside_bytes"],
            row["mapped_bytes"]
        );
        assert_eq!(line, expected);
        assert!(text.contains(name), "{name} is not in {text}");
    }
    let piped = heaptap_reading("heap --csv -", &[], &snapshot(Flaw::None)).text(0);
    assert_eq!(piped, csv);
}

/// The chain of three blocks belongs to the variable alone, but for the last, which a finaliser holds too.
#[test]
fn rows_by_holder_and_by_block() {
    let place = place();
    let size = 16;
    let rows = json("heap --json --by module", &place)["table"]["rows"].clone();
    let main = rows.as_array().unwrap().iter().find(|row| row["name"] == "Main").unwrap();
    assert_eq!(main["reachable_bytes"], 3 * size);
    assert_eq!(main["exclusive_bytes"], 2 * size);
    assert_eq!(main["first_reached"]["bytes"], 3 * size);
    for by in ["kind", "module", "variable", "domain", "thread", "frame", "block"] {
        let table = json(&format!("heap --json --by {by}"), &place)["table"].clone();
        let rows = table["rows"].as_array().unwrap();
        let first = rows.iter().map(|row| row["first_reached"]["bytes"].as_u64().unwrap());
        assert_eq!(first.sum::<u64>(), 4 * size, "{by}");
    }
    let customs = json("heap --json --by custom", &place)["table"]["rows"].clone();
    assert_eq!(customs[0]["name"], "custom _bigarr02");
    assert_eq!(customs[0]["outside_bytes"], 1 << 20);
    // As in the reports of traces, and in short.
    for call in ["heap --json --top 1", "heap --json -n 1"] {
        let limited = json(call, &place)["table"].clone();
        assert_eq!(limited["rows"].as_array().unwrap().len(), 1, "{call}");
        assert_eq!(limited["other_rows"], 2, "{call}");
    }
    let path = place.path("a.heap");
    heaptap("heap-diff --top 1", &[&path, &path]).text(0);
    let selected = json("heap --json --filter Main", &place)["table"].clone();
    assert_eq!(selected["rows"][0]["name"], "Main, field 3");
}

#[test]
fn hostile_names_are_escaped_and_narrow_terminals_are_kept() {
    let place = place();
    for by in ["variable", "block"] {
        let text = heaptap(&format!("heap --by {by}"), &[&place.path("a.heap")]).text(0);
        assert!(!text.contains('\x1b'), "{text:?}");
    }
}

#[test]
fn a_path_ends_at_the_block() {
    let place = place();
    let held = json("heap --json --path 0x1038", &place);
    assert_eq!(held["shortest"].as_array().unwrap().last().unwrap(), &held["block"]);
    assert_eq!(held["holders"].as_array().unwrap().len(), 2);
    let garbage = heaptap("heap --path 0x1068", &[&place.path("a.heap")]).text(0);
    assert!(garbage.contains("nothing holds it"), "{garbage}");
}

#[test]
fn wrong_calls_and_files_are_explained() {
    let place = place();
    let path = place.path("a.heap");
    let wrong = |call: &str, words: &[&str]| heaptap(call, &[&path]).says(2, words);
    wrong("heap --path 0x1", &["--path 0x1", "no block begins there"]);
    wrong("heap --path nothing_like_it", &["no block has such a name", "--by block"]);
    wrong("heap --referrers (", &["--referrers"]);
    wrong("heap --shared Main", &["give it twice"]);
    wrong("heap --shared Main --shared Zzz", &["no holder has such a name"]);
    wrong("heap --by site", &["no trace was being written", "heaptap run"]);
    wrong("heap --within Main", &["--by site"]);
    let file = snapshot(Flaw::None);
    let cut = place.file("cut.heap", &file[..file.len() - 1]);
    heaptap("heap", &[&cut]).says(1, &["cut.heap", "cut short", "heaptap info"]);
    heaptap("heap-diff", &[&path, &cut]).says(1, &["cut.heap", "cut short"]);
    let text = place.file("text", b"no snapshot at all");
    heaptap("heap", &[&text]).says(2, &["not a heap snapshot"]);
    heaptap("heap-diff --by site", &[&path, &path]).says(2, &["no trace was being written"]);
    heaptap("heap-diff --trace a.ctf", &[&path, &path]).says(2, &["--trace goes with --by site"]);
    let directory = path.parent().unwrap();
    for call in ["heap", "snapshot --check"] {
        heaptap(call, &[directory]).says(2, &["is a directory; name a snapshot in it"]);
    }
    heaptap("heap-diff", &[&path, directory]).says(2, &["name a snapshot in it"]);
}

#[test]
fn a_snapshot_has_not_grown_against_itself() {
    let place = place();
    let path = place.path("a.heap");
    let text = heaptap("heap-diff --types none --fail-over 0", &[&path, &path]).text(0);
    assert_eq!(text.matches("none").count(), 3, "{text}");
    let figures: Value =
        serde_json::from_str(&heaptap("heap-diff --json", &[&path, &path]).text(0)).unwrap();
    assert_eq!(figures["before"], figures["after"]);
}
