//! `heaptap export` of heap snapshots: what other tools find in an export is what the library
//! finds in the snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use heaptap_graph::{Names, Node};
use heaptap_trace::Format;
use serde_json::Value;

use crate::consumers::{have, package, script, text};
use crate::made_snapshot::{Analysed, analysed, made_snapshot};
use crate::program::{Place, heaptap, heaptap_reading};
use crate::traces::workload;

fn exported(place: &Place, snapshot: &Path, words: &str) -> (PathBuf, String) {
    let out = place.path(&format!("out{}", place.names().len()));
    let run = heaptap(&format!("export --to {words} -o {}", out.display()), &[snapshot]);
    assert_eq!(run.text(0), "");
    let mode = fs::metadata(&out).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    (out, run.err)
}

/// Strong edges of everything that is alive.
fn live_edges(found: &Analysed) -> usize {
    let Analysed { graph, holders, tree, .. } = found;
    let blocks =
        (0..graph.blocks() as u32).filter(|block| tree.position(Node::Block(*block)).is_some());
    let of_blocks: usize = blocks.map(|block| graph.targets(block).len()).sum();
    let of_holders: usize = holders
        .ids()
        .map(|holder| holders.children(holder).count() + holders.root_blocks(holder).count())
        .sum();
    of_blocks + of_holders + graph.live_ephemeron_data().len()
}

#[test]
fn memlab_finds_the_sizes_that_the_dominator_tree_has() {
    let Some(()) = have("node", "--version") else { return };
    let Some(package) = package("memlab-core-2.0.5") else { return };
    let place = Place::new();
    let bytes = made_snapshot();
    let snapshot = place.file("a.heap", &bytes);
    let found = analysed(&bytes);
    let (file, said) = exported(&place, &snapshot, "heapsnapshot");
    assert!(said.contains("blocks left out, which nothing holds"), "{said}");
    let shown = script("memlab.cjs", &package, &file);
    let nodes = shown["nodes"].as_array().unwrap();
    let native = nodes.iter().filter(|node| node["type"] == "native").count();
    // Two for the block with 5 GiB outside, and DevTools' root above all.
    assert!(native > 100);
    assert_eq!(nodes.len(), 1 + found.tree.len() + native);
    for position in 0..found.tree.len() as u32 {
        let node = &nodes[1 + position as usize];
        let retained =
            found.tree.retained(position) + found.tree.retained_outside(position).allocated;
        assert_eq!(node["retained"], retained, "{position}: {}", node["name"]);
        if let Node::Block(block) = found.tree.node(position) {
            assert_eq!(node["self"], found.graph.bytes(block), "{position}");
        }
    }
    let edges = |kinds: &[&str]| -> usize {
        let of = |node: &Value| {
            let edges = node["edges"].as_array().unwrap();
            edges.iter().filter(|edge| kinds.contains(&edge[0].as_str().unwrap())).count()
        };
        nodes.iter().map(of).sum()
    };
    let strong = live_edges(&found);
    assert_eq!(edges(&["element", "property", "internal"]), 1 + strong + native);
    // Two keys of the first, the key and the data of the second that are alive.
    assert!((2..=4).contains(&edges(&["weak"])), "{}", edges(&["weak"]));
    assert_eq!(shown["edges"], 1 + strong + native + edges(&["weak"]));
    for name in ["Cache, field 3", "frame 0: q\"\\\\", "slot", "data"] {
        assert!(
            shown.to_string().contains(&name.replace('\\', "\\\\").replace('"', "\\\"")),
            "{name}"
        );
    }
    // The fields of the big array are the indexes of its elements.
    let array = found.graph.number(found.graph.address(60).unwrap()).unwrap();
    let position = found.tree.position(Node::Block(array)).unwrap();
    let elements = nodes[1 + position as usize]["edges"].as_array().unwrap();
    let indexes: Vec<u64> = elements
        .iter()
        .map(|edge| {
            edge[1].as_str().map_or_else(|| edge[1].as_u64().unwrap(), |text| text.parse().unwrap())
        })
        .collect();
    assert_eq!(indexes, (0..1000).step_by(3).collect::<Vec<u64>>());
}

#[test]
fn memlab_finds_the_same_sizes_of_holders_where_blocks_are_joined() {
    let Some(()) = have("node", "--version") else { return };
    let Some(package) = package("memlab-core-2.0.5") else { return };
    let place = Place::new();
    let bytes = made_snapshot();
    let snapshot = place.file("a.heap", &bytes);
    let found = analysed(&bytes);
    let (file, said) = exported(&place, &snapshot, "heapsnapshot --nodes 500");
    assert!(
        said.contains("are more than 500: blocks that are alike and held alike are joined"),
        "{said}"
    );
    let shown = script("memlab.cjs", &package, &file);
    let nodes = shown["nodes"].as_array().unwrap();
    assert!(nodes.len() < 1200, "{}", nodes.len());
    let mut expected: Vec<u64> = found
        .holders
        .ids()
        .filter_map(|holder| found.tree.position(Node::Holder(holder)))
        .map(|position| {
            found.tree.retained(position) + found.tree.retained_outside(position).allocated
        })
        .collect();
    let synthetic = nodes.iter().skip(1).filter(|node| node["type"] == "synthetic");
    let mut retained: Vec<u64> = synthetic.map(|node| node["retained"].as_u64().unwrap()).collect();
    expected.sort_unstable();
    retained.sort_unstable();
    assert_eq!(retained, expected);
}

/// Holders by name, with what they retain. Names that several have are left out.
fn named_holders(found: &Analysed) -> BTreeMap<String, u64> {
    let names = Names::new(&found.graph);
    let mut retained: BTreeMap<String, Option<u64>> = BTreeMap::new();
    for holder in found.holders.ids().skip(1) {
        let own = found.tree.retained_by(holder);
        let name = names.holder(found.holders.name(holder));
        retained.entry(name).and_modify(|entry| *entry = None).or_insert(Some(own));
    }
    let known = retained.into_iter().filter_map(|(name, own)| Some((name, own?)));
    known.filter(|(name, _)| !name.contains(char::is_control)).collect()
}

#[test]
fn go_tool_pprof_shows_what_holders_retain() {
    let Some(()) = have("go", "version") else { return };
    let place = Place::new();
    let bytes = made_snapshot();
    let snapshot = place.file("a.heap", &bytes);
    let found = analysed(&bytes);
    let (file, _) = exported(&place, &snapshot, "pprof");
    let shown = |kind: &str, unit: &str| -> (f64, BTreeMap<String, f64>) {
        let output = Command::new("go")
            .args([
                "tool",
                "pprof",
                "-top",
                "-nodecount=0",
                "-nodefraction=0",
                unit,
                "-sample_index",
                kind,
            ])
            .arg(&file)
            .env("PPROF_TMPDIR", place.path(""))
            .output()
            .unwrap();
        let text = text(&output);
        let number = |word: &str| word.trim_end_matches('B').parse::<f64>().unwrap();
        let total = text.lines().find_map(|line| line.split_once("% of ")).unwrap().1;
        let total = number(total.split_whitespace().next().unwrap());
        let rows = text.lines().skip_while(|line| !line.contains("flat%")).skip(1);
        let row = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (words[5..].join(" "), number(words[3]))
        };
        (total, rows.map(row).collect())
    };
    let (total, rows) = shown("retained_space", "-unit=B");
    assert_eq!(total, found.tree.retained(0) as f64);
    let holders = named_holders(&found);
    assert!(holders.len() > 10 && holders["Cache"] > 10_000, "{holders:?}");
    for (name, retained) in holders.into_iter().filter(|(_, retained)| *retained > 0) {
        assert_eq!(rows[&name], retained as f64, "{name}");
    }
    let (blocks, _) = shown("blocks", "-unit=count");
    assert_eq!(blocks, (found.tree.len() - found.holders.len()) as f64);
    let (outside, _) = shown("outside_space", "-unit=B");
    assert_eq!(outside, found.tree.retained_outside(0).allocated as f64);
}

#[test]
fn folded_stacks_have_what_is_retained() {
    let place = Place::new();
    let bytes = made_snapshot();
    let snapshot = place.file("a.heap", &bytes);
    let found = analysed(&bytes);
    let text = heaptap("export --to folded", &[&snapshot]).text(0);
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text}");
    let lines: Vec<(Vec<&str>, u64)> = text
        .lines()
        .map(|line| {
            let (frames, bytes) = line.rsplit_once(' ').unwrap();
            (frames.split(';').collect(), bytes.parse().unwrap())
        })
        .collect();
    let below = |name: &str| -> u64 {
        lines.iter().filter(|(frames, _)| frames.contains(&name)).map(|line| line.1).sum()
    };
    assert_eq!(lines.iter().map(|line| line.1).sum::<u64>(), found.tree.retained(0));
    for (name, retained) in named_holders(&found) {
        assert_eq!(below(&name), retained, "{name}");
    }
    let (_, said) = exported(&place, &snapshot, "folded --nodes 30");
    assert!(said.contains("more than 30 nodes") && said.contains("(other blocks)"), "{said}");
    let Some(()) = have("node", "--version") else { return };
    let Some(package) = package("speedscope-1.25.0") else { return };
    let (file, _) = exported(&place, &snapshot, "folded");
    let shown = script("speedscope.mjs", &package, &file);
    assert_eq!(shown[0]["total"], found.tree.retained(0));
}

#[test]
fn graphviz_draws_the_biggest_sets() {
    let Some(()) = have("node", "--version") else { return };
    let Some(package) = package("viz-3.11.0") else { return };
    let place = Place::new();
    let bytes = made_snapshot();
    let snapshot = place.file("a.heap", &bytes);
    let found = analysed(&bytes);
    for (words, most) in [("dot", 40), ("dot --nodes 7", 7), ("dot --nodes 100000", 100_000)] {
        let (file, _) = exported(&place, &snapshot, words);
        let shown = script("graphviz.mjs", &package, &file);
        let nodes = shown["nodes"].as_array().unwrap();
        let edges = shown["edges"].as_array().unwrap();
        let has_others = nodes.iter().any(|node| node["name"] == "others");
        assert_eq!(has_others, most < 1000, "{words}");
        if has_others {
            assert_eq!(nodes.len(), most + 1);
        }
        // Everything hangs together, and what is drawn is all there is.
        let label = |node: &Value| node["label"].as_str().unwrap().to_owned();
        let all = format!("\\n{} bytes", found.tree.retained(0));
        assert!(label(&nodes[0]).starts_with("program\\n0 blocks"), "{}", nodes[0]);
        assert!(label(&nodes[0]).ends_with(&all), "{}", nodes[0]);
        let heads: BTreeSet<u64> =
            edges.iter().map(|edge| edge["head"].as_u64().unwrap()).collect();
        assert_eq!(heads.len(), nodes.len() - 1, "{words}");
        assert!(edges.iter().all(|edge| (0.3..=12.0).contains(&edge["width"].as_f64().unwrap())));
        let cache = nodes.iter().map(label).find(|label| label.starts_with("Cache\\n")).unwrap();
        let retained = named_holders(&found)["Cache"];
        assert!(cache.ends_with(&format!("\\n{retained} bytes")), "{cache}");
        let svg = shown["svg"].as_str().unwrap();
        assert!(!svg.contains("<b>") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert_eq!(svg.matches("</svg>").count(), 1);
        if most > 1000 {
            assert!(svg.contains("&lt;/svg&gt;&lt;b&gt;&amp;;\\x1b[31m{|}"), "{svg}");
        }
    }
}

#[test]
fn formats_and_options_that_make_no_sense_are_refused() {
    let place = Place::new();
    let file = made_snapshot();
    let snapshot = place.file("a.heap", &file);
    let trace = place.file("a.ctf", &workload(Format::V3, 1, 100, 10));
    for format in ["firefox", "dhat", "speedscope"] {
        heaptap(&format!("export --to {format}"), &[&snapshot])
            .says(2, &["a.heap: a heap snapshot", "exported --to", "heapsnapshot"]);
    }
    for format in heaptap_export::SNAPSHOT_FORMATS {
        if heaptap_export::Format::named(format.name).is_none() {
            heaptap(&format!("export --to {}", format.name), &[&trace])
                .says(2, &["a.ctf: not a heap snapshot", "folded, pprof", "html or parquet"]);
        }
    }
    heaptap("export --to dot", &[&snapshot, &snapshot]).says(2, &["name one file"]);
    heaptap("export --to heapsnapshot", &[&trace, &snapshot]).says(2, &["a.heap", "name one file"]);
    for option in ["--metric live", "--frames 9", "--no-fold", "--blocks 9", "--since 1s"] {
        heaptap(&format!("export --to heapsnapshot {option}"), &[&snapshot])
            .says(2, &["a.heap: a heap snapshot", "leave them out"]);
    }
    heaptap("export --to folded --nodes 9", &[&trace]).says(2, &["--nodes", "snapshots"]);
    heaptap("export --to heapsnapshot", &[&place.path("none")]).says(2, &["none"]);
    // Through a pipe; cut short; damaged.
    let piped = heaptap_reading("export --to heapsnapshot -", &[], &file);
    assert_eq!(piped.status, 0, "{}", piped.err);
    serde_json::from_slice::<Value>(&piped.out).unwrap();
    // A trace through a pipe is not touched by the question whether it is a snapshot.
    let folded = heaptap_reading("export --to folded -", &[], &fs::read(&trace).unwrap());
    assert_eq!(folded.text(0), heaptap("export --to folded", &[&trace]).text(0));
    let cut = place.file("cut.heap", &file[..file.len() - 30]);
    let out = place.path("never");
    let call = format!("export --to heapsnapshot -o {}", out.display());
    heaptap(&call, &[&cut]).says(1, &["cut.heap", "cut short"]);
    let mut damaged = file.clone();
    damaged[file.len() / 2] ^= 1;
    heaptap(&call, &[&place.file("damaged.heap", &damaged)]).says(1, &["damaged.heap"]);
    assert!(!out.exists());
}
