//! The tables of `export --to parquet`, column by column, as `DuckDB` reads them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use heaptap_trace::Format;
use serde_json::{Value, json};

use crate::consumers::python_package;
use crate::labels;
use crate::made_sidecar::{TICKS, sidecar};
use crate::parquet::{DAYS, Fleet, documented, number, reported};
use crate::program::{Place, heaptap};
use crate::traces::{START, middle_packet, trace_info, workload_of};

/// What the tables hold besides what the documented queries ask for.
#[test]
fn tables_have_every_block_and_every_stack_once() {
    let Some(package) = python_package("duckdb-2.0.0") else { return };
    let fleet = Fleet::new();
    let (views, _) = documented();
    let mut statements: Vec<&str> = views.iter().map(String::as_str).collect();
    statements.extend([
        "SELECT count(*) AS rows, count(DISTINCT (trace_id, block_id)) AS ids, \
         sum(samples)::BIGINT AS samples, sum((promoted < allocated)::INT) AS promoted_before, \
         sum((collected < coalesce(promoted, allocated))::INT) AS collected_before, \
         count(DISTINCT host) AS hosts, count(DISTINCT day) AS days, \
         sum((bytes = 8 * words)::INT) AS sized, max(domain) AS domain, \
         sum((source = 'minor')::INT) AS minor, \
         sum(weight) FILTER (promoted IS NOT NULL) AS promoted \
         FROM blocks",
        "SELECT count(*) AS rows, count(DISTINCT (trace_id, stack_id)) AS ids, \
         sum((frames[1].function = function AND frames[1].line = line)::INT) AS sites, \
         sum((len(frames) = len(string_split(text, ';')))::INT) AS texts \
         FROM stacks",
        "SELECT count(*) AS missing FROM blocks b ANTI JOIN stacks s \
         ON s.trace_id = b.trace_id AND s.stack_id = b.stack_id",
        "SELECT count(*) AS rows, sum(blocks)::BIGINT AS blocks, sum(complete)::BIGINT AS complete, \
         min(epoch_us(started)) AS started, min(sample_rate) AS rate, any_value(program) AS program \
         FROM traces",
        "SELECT array_to_string(list_reverse( \
         [if(f.function LIKE '(unknown%', '(unknown)', f.function) FOR f IN frames]), ';') AS stack, \
         sum(weight) AS bytes FROM blocks b JOIN stacks s \
         ON s.trace_id = b.trace_id AND s.stack_id = b.stack_id GROUP BY stack",
    ]);
    let answers = fleet.answers("duckdb_queries.py", &package, &statements);
    let [blocks, stacks, missing, traces, by_stack] = &answers[views.len()..] else { panic!() };
    let report: Value =
        serde_json::from_str(&heaptap("report --json", &fleet.of(|_, _| true)).text(0)).unwrap();
    let blocks = &blocks[0];
    assert_eq!((&blocks["rows"], &blocks["ids"]), (&9000.into(), &9000.into()));
    assert_eq!(blocks["samples"], report["totals"]["samples"]);
    assert_eq!((&blocks["promoted_before"], &blocks["collected_before"]), (&0.into(), &0.into()));
    assert_eq!((&blocks["hosts"], &blocks["days"]), (&3.into(), &2.into()));
    assert_eq!((&blocks["sized"], &blocks["domain"]), (&9000.into(), &1.into()));
    assert!((1..9000).contains(&blocks["minor"].as_i64().unwrap()));
    let promoted: f64 = reported(&fleet.of(|_, _| true), "--metric promoted").values().sum();
    assert!((number(blocks, "promoted") - promoted).abs() < 1e-9 * promoted);
    let stacks = &stacks[0];
    for count in ["ids", "sites", "texts"] {
        assert_eq!(stacks[count], stacks["rows"], "{count}");
    }
    assert_eq!(missing[0]["missing"], 0);
    let traces = &traces[0];
    assert_eq!((&traces["rows"], &traces["blocks"]), (&6.into(), &9000.into()));
    assert_eq!((&traces["complete"], &traces["started"]), (&6.into(), &START.into()));
    assert_eq!(traces["rate"], trace_info().sample_rate);
    let mut folded: BTreeMap<String, f64> = BTreeMap::new();
    for (_, _, trace) in &fleet.traces {
        for line in heaptap("export --to folded --no-fold", &[trace]).text(0).lines() {
            let (stack, bytes) = line.rsplit_once(' ').unwrap();
            *folded.entry(stack.to_owned()).or_default() += bytes.parse::<f64>().unwrap();
        }
    }
    let found: BTreeMap<String, f64> = by_stack
        .iter()
        .map(|row| (row["stack"].as_str().unwrap().to_owned(), number(row, "bytes").round()))
        .collect();
    let differ = found.iter().find(|&(stack, bytes)| folded.get(stack) != Some(bytes));
    assert!(found.len() == folded.len() && differ.is_none(), "{differ:?}");
}

/// More rows than a row group takes, and what is left of a damaged trace.
#[test]
fn long_and_damaged_traces_have_tables() {
    let Some(package) = python_package("duckdb-2.0.0") else { return };
    let place = Place::new();
    let bytes = workload_of(&trace_info(), Format::V3, 1, 130_000, 410);
    let whole = place.file("whole.ctf", &bytes);
    let (offset, size) = middle_packet(&bytes);
    let damaged = [&bytes[..offset + 40], &vec![0xff; size - 40], &bytes[offset + size..]].concat();
    let damaged = place.file("damaged.ctf", &damaged);
    let fleet = Fleet { place, traces: Vec::new() };
    let statements = [
        "SELECT count(*) AS blocks, sum(samples)::BIGINT AS samples, \
         sum((lifetime_us IS NULL)::INT) AS alive, count(DISTINCT block_id) AS ids, \
         sum((allocated <= (SELECT median(allocated) FROM 'fleet/blocks/*/*/*.parquet'))::INT) \
         AS early FROM 'fleet/blocks/*/*/*.parquet'",
        "SELECT count(DISTINCT row_group_id) AS groups, sum(num_values)::BIGINT AS \"values\", \
         count(stats_min_value) AS ranges \
         FROM parquet_metadata('fleet/blocks/*/*/*.parquet') WHERE path_in_schema = 'allocated'",
        "SELECT complete FROM 'fleet/traces/*/*/*.parquet'",
    ];
    let facts = |trace: &Path, status: i32| {
        fleet.export("", &[trace]).says(status, &["1 trace written"]);
        let answers = fleet.answers("duckdb_queries.py", &package, &statements);
        let call = if status == 0 { "report --json" } else { "report --json --top 1" };
        let report: Value = serde_json::from_str(&heaptap(call, &[trace]).text(status)).unwrap();
        assert_eq!(answers[0][0]["samples"], report["totals"]["samples"]);
        (answers[0][0].clone(), answers[1][0].clone(), answers[2][0]["complete"].clone())
    };
    let (blocks, groups, complete) = facts(&whole, 0);
    assert_eq!((&blocks["blocks"], &blocks["ids"]), (&130_000.into(), &130_000.into()));
    assert!((65_000..65_500).contains(&blocks["early"].as_u64().unwrap()), "{blocks}");
    assert_eq!((&groups["groups"], &groups["ranges"]), (&2.into(), &2.into()));
    assert_eq!((&groups["values"], complete), (&130_000.into(), 1.into()));
    let (damaged, _, complete) = facts(&damaged, 1);
    assert_eq!(complete, 0);
    let left = damaged["blocks"].as_u64().unwrap();
    assert!((60_000..130_000).contains(&left), "{left} blocks are left");
}

#[test]
fn sidecars_have_tables_with_all_they_say() {
    let Some(package) = python_package("duckdb-2.0.0") else { return };
    let fleet = Fleet::new();
    let (views, _) = documented();
    let mut statements: Vec<&str> = views.iter().map(String::as_str).collect();
    statements.extend([
        "SELECT count(*) AS rows, min(epoch_us(time)) AS first, max(epoch_us(time)) AS last, \
         max(heap_words) AS heap, max(live_words) AS live, max(promoted_words) AS promoted, \
         max(cgroup_limit) AS \"limit\", max(threads) AS threads, max(minor_pauses) AS pauses, \
         count(finaliser_pauses) AS finalisers FROM timeline WHERE host = 'web-1'",
        "SELECT count(*) AS rows, sum(duration_ns)::BIGINT AS ns, any_value(kind) AS kind \
         FROM slices WHERE host = 'web-2'",
        "SELECT kind, probe, count(*) AS rows, max(value) AS value, min(least) AS least, \
         max(greatest) AS greatest, max(runs) AS runs, max(marked) AS marked, \
         max(words) AS words, string_agg(text, ';' ORDER BY time) AS text \
         FROM probes WHERE host = 'web-1' GROUP BY kind, probe ORDER BY kind, probe",
        "SELECT count(DISTINCT t.trace_id) AS joined FROM timeline t JOIN traces USING (trace_id)",
    ]);
    let answers = fleet.answers("duckdb_queries.py", &package, &statements);
    let [timeline, slices, probes, joined] = &answers[views.len()..] else { panic!() };
    let expected = json!({
        "rows": TICKS, "first": START + 100_000, "last": START + 100_000 * TICKS,
        "heap": (1 << 17) + 1000 * TICKS, "live": (1 << 16) + 1000 * TICKS,
        "promoted": 5000 * TICKS, "limit": 64 << 20, "threads": 3, "pauses": 4 * TICKS,
        "finalisers": 0,
    });
    assert_eq!(timeline[0], expected);
    assert_eq!(slices[0], json!({ "rows": TICKS / 10, "ns": TICKS * 200_000, "kind": "major" }));
    assert_eq!(joined[0]["joined"], 2);
    let row = |kind: &str, probe: Option<&str>, rows: u64, others: Value| {
        let mut row = json!({ "kind": kind, "probe": probe, "rows": rows });
        let fields = ["value", "least", "greatest", "runs", "marked", "words", "text"];
        for field in fields {
            row[field] = others.get(field).cloned().unwrap_or(Value::Null);
        }
        row
    };
    let log = "tick 20;tick 40;tick 60;tick 80;tick 100";
    let count = json!({ "value": (TICKS * TICKS) as f64 });
    let tag = json!({ "value": 6.0, "marked": TICKS, "words": 1024 * TICKS });
    let timer = json!({ "value": 0.025 * TICKS as f64, "runs": TICKS });
    let value = json!({ "value": 9.0, "least": -0.5, "greatest": 16.0 });
    let expected = [
        row("count", Some("parser/tokens"), TICKS, count),
        row("log", None, 5, json!({ "text": log })),
        row("pause", None, 1, json!({ "text": "look at the cache" })),
        row("tag", Some("cache/entries"), TICKS, tag),
        row("text", Some("phase"), 2, json!({ "text": "reading;writing" })),
        row("timer", Some("parser/time"), TICKS, timer),
        row("value", Some("parser/depth"), TICKS, value),
    ];
    assert_eq!(probes[..], expected);

    // Another trace's sidecar is left out, and one that is damaged is used as far as it goes.
    let trace = fleet.of(|host, day| host == "10" && day == DAYS[1])[0];
    let beside = PathBuf::from(format!("{}.probes", trace.display()));
    fs::write(&beside, sidecar()).unwrap();
    fleet.export("", &[trace]).says(0, &["another trace", "1 trace written"]);
    assert_eq!(fleet.files("timeline").len(), 2);
    let trace = fleet.of(|host, day| host == "10" && day == DAYS[0])[0];
    let beside = PathBuf::from(format!("{}.probes", trace.display()));
    fs::write(&beside, [b'x'; 4096]).unwrap();
    fleet.export("", &[trace]).says(2, &["no sidecar of a trace", "left out", "1 trace written"]);
    assert_eq!(fleet.files("timeline").len(), 2);
    fs::write(&beside, &sidecar()[..3000]).unwrap();
    fleet.export("", &[trace]).says(0, &["ends inside", "1 trace written"]);
    assert_eq!(fleet.files("timeline").len(), 3);
}

#[test]
fn labels_and_domains_are_those_of_the_trace() {
    let Some(package) = python_package("duckdb-2.0.0") else { return };
    let (bytes, written) = labels::trace();
    let place = Place::new();
    let trace = place.file("trace.ctf", &bytes);
    let fleet = Fleet { place, traces: Vec::new() };
    fleet.export("", &[&trace]).says(0, &["1 trace written"]);
    let statement = "SELECT b.label, domain, sum((b.label IS DISTINCT FROM s.label)::INT) AS differ, \
        sum(samples)::BIGINT AS samples \
        FROM 'fleet/blocks/*/*/*.parquet' b JOIN 'fleet/stacks/*/*/*.parquet' s \
        USING (trace_id, stack_id) GROUP BY b.label, domain";
    let answers = fleet.answers("duckdb_queries.py", &package, &[statement]);
    let found: BTreeMap<_, _> = answers[0]
        .iter()
        .map(|row| {
            assert_eq!(row["differ"], 0, "the stack has another label");
            let label = row["label"].as_str();
            let label = label.map(|name| labels::LABELS.iter().position(|l| *l == name).unwrap());
            ((label, row["domain"].as_u64().unwrap() as u16), row["samples"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(found, written);
}
