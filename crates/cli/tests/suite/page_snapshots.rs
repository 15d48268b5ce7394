//! Heap snapshots in the web page: what it shows is what `heaptap heap` and `heap-diff` print.

use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use heaptap_trace::Format;
use serde_json::Value;

use crate::heap_snapshots::{Flaw, snapshot};
use crate::made_snapshot::made_snapshot;
use crate::program::{Place, heaptap};
use crate::traces::workload;

pub(crate) fn unpacked(gzip: &[u8]) -> Value {
    let mut text = String::new();
    GzDecoder::new(gzip).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The document in a page of these files.
fn document(files: &[&Path], place: &Place) -> Value {
    let to = place.path("page.html");
    heaptap(&format!("export --to html -o {}", to.display()), files).text(0);
    let page = std::fs::read_to_string(to).unwrap();
    let (_, rest) = page.split_once("id=\"heaptap-snapshots\">").unwrap();
    unpacked(&STANDARD.decode(rest.split('<').next().unwrap()).unwrap())
}

fn json(call: &str, files: &[&Path]) -> Value {
    serde_json::from_str(&heaptap(call, files).text(0)).unwrap()
}

#[test]
fn a_page_shows_what_the_command_line_prints() {
    let place = Place::new();
    let path = place.file("made.heap", &made_snapshot());
    let page = document(&[&path], &place);
    let snapshot = &page["snapshots"][0];
    assert_eq!(snapshot["name"], "made.heap");
    let tables = snapshot["tables"].as_array().unwrap();
    for (option, name) in [
        ("kind", "kind of root"),
        ("module", "module"),
        ("variable", "variable"),
        ("thread", "thread"),
        ("frame", "stack frame"),
        ("block", "block"),
        ("custom", "custom block"),
    ] {
        let printed = json(&format!("heap --json -n 32 --by {option}"), &[&path]);
        let table = tables.iter().find(|table| table["by"] == name).unwrap();
        assert_eq!(table, &printed["table"], "{name}");
        for figure in ["all", "reachable", "outside_bytes", "dangling", "findings", "program"] {
            assert_eq!(snapshot[figure], printed[figure], "{figure}");
        }
    }
    let held = &snapshot["paths"][0];
    let address = held["block"].as_str().unwrap().rsplit(' ').next().unwrap();
    let printed = json(&format!("heap --json --path {address}"), &[&path]);
    assert_eq!(held["retained_bytes"], printed["retained_bytes"]);
    assert_eq!(held["dominators"], printed["dominators"]);
}

/// What is stacked over time are the rows that reach most first, wherever they stand in the table.
#[test]
fn stacks_are_of_the_rows_that_reach_most_first() {
    let place = Place::new();
    let path = place.file("made.heap", &made_snapshot());
    let page = document(&[&path], &place);
    for (option, name) in [("module", "module"), ("block", "block"), ("kind", "kind of root")] {
        let printed = json(&format!("heap --json -n 0 --by {option}"), &[&path]);
        let rows = printed["table"]["rows"].as_array().unwrap().iter();
        let size = |row: &Value| row["first_reached"]["bytes"].as_u64().unwrap();
        let mut expected: Vec<u64> = rows.map(size).collect();
        expected.sort_unstable_by_key(|bytes| std::cmp::Reverse(*bytes));
        expected.truncate(64);
        let stacks = page["snapshots"][0]["stacked_rows"].as_array().unwrap();
        let stack = stacks.iter().find(|stack| stack["by"] == name).unwrap();
        let shown: Vec<u64> =
            stack["rows"].as_array().unwrap().iter().map(|row| row[1].as_u64().unwrap()).collect();
        assert_eq!(shown, expected, "{name}");
    }
}

/// A cell has what its children have and its own blocks; the first has everything.
#[test]
fn the_tree_adds_up() {
    let place = Place::new();
    let path = place.file("made.heap", &made_snapshot());
    let page = document(&[&path], &place);
    let (snapshot, tree) = (&page["snapshots"][0], &page["snapshots"][0]["tree"]);
    let column = |name: &str| -> Vec<i64> {
        tree[name].as_array().unwrap().iter().map(|value| value.as_i64().unwrap()).collect()
    };
    let (parent, retained, own) = (column("parent"), column("retained"), column("own"));
    assert_eq!(snapshot["reachable"]["bytes"].as_i64(), Some(retained[0]));
    let mut sums = own;
    for cell in (1..parent.len()).rev() {
        let above = usize::try_from(parent[cell]).unwrap();
        assert!(above < cell, "a cell comes after the one above it");
        // A joined cell retains more than its own blocks.
        sums[cell] = sums[cell].max(if column("name")[cell] < 0 { retained[cell] } else { 0 });
        sums[above] += sums[cell];
    }
    assert_eq!(sums, retained);
}

#[test]
fn several_snapshots_are_compared_and_damaged_ones_named() {
    let place = Place::new();
    let one = place.file("one.heap", &snapshot(Flaw::None));
    let two = place.file("two.heap", &made_snapshot());
    let page = document(&[&one, &two], &place);
    let names: Vec<_> =
        page["snapshots"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    let in_order = if names[0] == "one.heap" { [&one, &two] } else { [&two, &one] };
    let pairs = page["growths"].as_array().unwrap();
    assert_eq!(pairs.len(), 1);
    assert_eq!((&pairs[0]["before"], &pairs[0]["after"]), (&Value::from(0), &Value::from(1)));
    let printed =
        json("heap-diff --json -n 32 --by variable", &in_order.map(std::path::PathBuf::as_path));
    assert_eq!(pairs[0]["tables"][0], printed["tables"][0]);

    let mut bytes = made_snapshot();
    bytes.truncate(bytes.len() / 2);
    let cut = place.file("cut.heap", &bytes);
    let trace = place.file("trace.ctf", &workload(Format::V3, 2, 300, 20));
    let out = format!("export --to html -o {}", place.path("page.html").display());
    heaptap(&out, &[&cut, &trace]).says(2, &["cut.heap: ", "cut short", "page.html"]);
    heaptap(&out, &[&cut]).says(2, &["cut.heap: ", "cut short"]);
}
