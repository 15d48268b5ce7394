//! `export --to parquet`: the queries of docs/exports.md in `DuckDB`, and in Spark if
//! `HEAPTAP_TEST_SPARK` is 1. What they answer must be what `report` says of the same traces.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heaptap_trace::{Format, TraceInfo};
use serde_json::Value;

use crate::consumers::{python_package, text};
use crate::made_sidecar::{TICKS, sidecar};
use crate::program::{Place, heaptap};
use crate::traces::{START, trace_info, workload_of};

const HOSTS: [&str; 3] = ["web-1", "web-2", "10"];
pub(crate) const DAYS: [&str; 2] = ["2020-09-13", "2020-09-14"];

/// The hosts whose traces of the first day have sidecars.
const SIDECAR_HOSTS: [&str; 2] = ["web-1", "web-2"];

/// Traces of several hosts on two days, in a data set that was made of them one by one.
pub(crate) struct Fleet {
    pub(crate) place: Place,
    /// With host and day.
    pub(crate) traces: Vec<(&'static str, &'static str, PathBuf)>,
}

impl Fleet {
    pub(crate) fn new() -> Fleet {
        let place = Place::new();
        let mut traces = Vec::new();
        for (number, (host, day)) in
            HOSTS.iter().flat_map(|&host| DAYS.map(|day| (host, day))).enumerate()
        {
            let later = if day == DAYS[1] { 86_400_000_000 } else { 0 };
            let info = TraceInfo {
                host: host.as_bytes().to_vec(),
                start_time: START + later,
                ..trace_info()
            };
            let seed = 400 + number as u64;
            let domains = 1 + number as u16 % 2;
            let bytes = workload_of(&info, Format::V3, domains, 1500, seed);
            traces.push((host, day, place.file(&format!("{number}.ctf"), &bytes)));
            if SIDECAR_HOSTS.contains(&host) && day == DAYS[0] {
                place.file(&format!("{number}.ctf.probes"), &sidecar());
            }
        }
        let fleet = Fleet { place, traces };
        for (_, _, trace) in &fleet.traces {
            fleet.export("", &[trace]).says(0, &["1 trace written"]);
        }
        fleet
    }

    pub(crate) fn export(&self, options: &str, traces: &[&Path]) -> crate::program::Run {
        let directory = self.place.path("fleet");
        let call = format!("export --to parquet {options} -o {}", directory.display());
        heaptap(&call, traces)
    }

    /// The traces of some hosts and days.
    pub(crate) fn of(&self, chosen: impl Fn(&str, &str) -> bool) -> Vec<&Path> {
        let chosen = self.traces.iter().filter(|(host, day, _)| chosen(host, day));
        chosen.map(|(_, _, path)| path.as_path()).collect()
    }

    /// All files of a table, relative to it.
    pub(crate) fn files(&self, table: &str) -> Vec<PathBuf> {
        let root = self.place.path("fleet").join(table);
        let mut found = Vec::new();
        for host in fs::read_dir(&root).unwrap() {
            for day in fs::read_dir(host.unwrap().path()).unwrap() {
                for file in fs::read_dir(day.unwrap().path()).unwrap() {
                    found.push(file.unwrap().path().strip_prefix(&root).unwrap().to_owned());
                }
            }
        }
        found.sort();
        found
    }

    /// Runs statements with a script, and returns the rows of each.
    pub(crate) fn answers(
        &self,
        script: &str,
        package: &Path,
        statements: &[&str],
    ) -> Vec<Vec<Value>> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/consumers").join(script);
        let mut child = Command::new("python3")
            .arg(script)
            .arg(package)
            .current_dir(self.place.path(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        serde_json::to_writer(child.stdin.take().unwrap(), statements).unwrap();
        serde_json::from_str(&text(&child.wait_with_output().unwrap())).unwrap()
    }
}

/// The statements that make tables, and the queries, of docs/exports.md.
pub(crate) fn documented() -> (Vec<String>, Vec<String>) {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/exports.md");
    let document = fs::read_to_string(document).unwrap();
    let blocks = document.split("```sql\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let (views, queries): (Vec<&str>, Vec<&str>) =
        blocks.partition(|block| block.starts_with("CREATE"));
    let views = views.iter().flat_map(|block| block.split_inclusive(";\n"));
    (views.map(str::to_owned).collect(), queries.iter().map(|&query| query.to_owned()).collect())
}

/// A site as the tables name it.
type SiteKey = (String, String, i64);

fn key(row: &Value, name: &str) -> SiteKey {
    let text = |field: &str| row[field].as_str().unwrap_or("").to_owned();
    // The report has one row for all frames without a location.
    let name = text(name);
    let name = if name.starts_with("(unknown") { "(unknown)".to_owned() } else { name };
    (name, text("file"), row["line"].as_i64().unwrap_or(0))
}

/// Bytes by site, as `report` has them.
pub(crate) fn reported(traces: &[&Path], options: &str) -> BTreeMap<SiteKey, f64> {
    let call = format!("report --json --top 0 --by location {options}");
    let report: Value = serde_json::from_str(&heaptap(&call, traces).text(0)).unwrap();
    let mut sites = BTreeMap::new();
    for row in report["table"]["rows"].as_array().unwrap() {
        *sites.entry(key(row, "name")).or_default() += row["bytes"].as_f64().unwrap();
    }
    sites
}

/// Fails unless this is what `report` has for the site.
#[track_caller]
fn assert_bytes(expected: &BTreeMap<SiteKey, f64>, site: &SiteKey, bytes: f64) {
    let expected = expected.get(site).copied().unwrap_or(0.0);
    assert!((bytes - expected).abs() <= 1e-9 * expected, "{site:?}: {bytes}, not {expected}");
}

pub(crate) fn number(row: &Value, field: &str) -> f64 {
    row[field].as_f64().unwrap_or_else(|| panic!("{field} of {row}"))
}

/// The rows of sites that have a location, and fails unless they are the first of all such sites by
/// `order`, the largest first.
#[track_caller]
fn known(rows: &[Value], order: impl Fn(&Value) -> f64) -> Vec<(SiteKey, &Value)> {
    assert_eq!(rows.len(), 20);
    assert!(rows.is_sorted_by(|one, other| order(one) >= order(other)));
    let rows = rows.iter().map(|row| (key(row, "function"), row));
    let known: Vec<_> = rows.filter(|(site, _)| site.0 != "(unknown)").collect();
    assert!(known.len() > 5, "{} sites", known.len());
    known
}

/// Fails unless the answers to the documented queries are what `report` says.
fn assert_answers(fleet: &Fleet, answers: &[Vec<Value>]) {
    let [top, leaks, hosts, lifetimes, pauses] = answers else {
        panic!("{} answers", answers.len())
    };
    let all = fleet.of(|_, _| true);

    let expected = reported(&all, "");
    let largest = |sites: &BTreeMap<SiteKey, f64>| {
        let known = sites.iter().filter(|(site, _)| site.0 != "(unknown)");
        known.fold(0.0_f64, |most, (_, &bytes)| most.max(bytes))
    };
    let sites = known(top, |row| number(row, "bytes"));
    assert_eq!(number(sites[0].1, "bytes"), largest(&expected));
    for (site, row) in sites {
        assert_bytes(&expected, &site, number(row, "bytes"));
        assert!((1..=3).contains(&row["hosts"].as_i64().unwrap()));
    }

    let by_day = DAYS.map(|day| reported(&fleet.of(|_, of| of == day), "--metric live"));
    for (site, row) in known(leaks, |row| number(row, "growth")) {
        // The first day has none before it.
        assert_eq!(row["day"], DAYS[1]);
        assert_bytes(&by_day[1], &site, number(row, "bytes"));
        assert_bytes(&by_day[0], &site, number(row, "bytes") - number(row, "growth"));
    }

    let here = reported(&fleet.of(|host, _| host == "web-2"), "");
    let elsewhere = reported(&fleet.of(|host, _| host != "web-2"), "");
    let totals = [&here, &elsewhere].map(|sites| sites.values().sum::<f64>());
    for (site, row) in known(hosts, |row| number(row, "here") - number(row, "elsewhere")) {
        assert_bytes(&here, &site, (number(row, "here") * totals[0]).round());
        assert_bytes(&elsewhere, &site, (number(row, "elsewhere") * totals[1]).round());
    }

    let within = ["1ms", "100ms"].map(|time| {
        // Those that are alive at the end have not lived their lives yet.
        let mut sites = reported(&all, &format!("--max-lifetime {time}"));
        for (site, alive) in reported(&all, &format!("--max-lifetime {time} --metric live")) {
            *sites.get_mut(&site).unwrap() -= alive;
        }
        sites
    });
    let alive = reported(&all, "--metric live");
    for (site, row) in known(lifetimes, |row| number(row, "bytes")) {
        assert_bytes(&within[0], &site, number(row, "within_1ms"));
        assert_bytes(&within[1], &site, number(row, "within_100ms"));
        assert_bytes(&alive, &site, number(row, "alive"));
    }

    // What the made sidecar says at its end.
    let mut with_pauses: Vec<&str> = Vec::new();
    let ticks = TICKS as f64;
    for row in pauses {
        with_pauses.push(row["host"].as_str().unwrap());
        assert!((number(row, "pause_s") - ticks * (4.0 * 0.5e-3 + 2e-3)).abs() < 1e-9, "{row}");
        assert_eq!(number(row, "most_rss"), f64::from(8 << 20) + ticks * 16_384.0);
        assert_eq!(number(row, "tokens"), ticks * ticks);
    }
    with_pauses.sort_unstable();
    assert_eq!(with_pauses, SIDECAR_HOSTS);
}

#[test]
fn documented_queries_answer_in_duckdb_what_reports_say() {
    let Some(package) = python_package("duckdb-2.0.0") else { return };
    let fleet = Fleet::new();
    let (views, queries) = documented();
    let statements: Vec<&str> = views.iter().chain(&queries).map(String::as_str).collect();
    let answers = fleet.answers("duckdb_queries.py", &package, &statements);
    assert_answers(&fleet, &answers[views.len()..]);
}

#[test]
fn documented_queries_answer_in_spark_what_reports_say() {
    // Spark is large, and takes a minute: `make test-long` sets this.
    if std::env::var_os("HEAPTAP_TEST_SPARK").is_none_or(|value| value != "1") {
        return;
    }
    let Some(package) = python_package("pyspark-4.3.0") else { return };
    let fleet = Fleet::new();
    let (_, queries) = documented();
    let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
    assert_answers(&fleet, &fleet.answers("spark.py", &package, &queries));
}

#[test]
fn a_trace_replaces_its_own_files_and_no_others() {
    let fleet = Fleet::new();
    let [blocks, stacks, traces] = ["blocks", "stacks", "traces"].map(|table| fleet.files(table));
    assert_eq!(blocks.len(), 6);
    assert!(blocks == stacks && blocks == traces, "{blocks:?} {stacks:?} {traces:?}");
    let pid = trace_info().pid;
    let first = format!("host=web-1/day=2020-09-13/{pid}-{START}.parquet");
    assert!(blocks.contains(&PathBuf::from(&first)), "{blocks:?}");
    let path = fleet.place.path("fleet/blocks").join(&first);
    let before = fs::read(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let directory = fleet.place.path("fleet/blocks");
    assert_eq!(fs::metadata(directory).unwrap().permissions().mode() & 0o777, 0o700);

    let trace = fleet.of(|host, day| host == "web-1" && day == DAYS[0])[0];
    assert_eq!(fleet.export("", &[trace]).status, 0);
    assert_eq!(fs::read(&path).unwrap(), before, "the same trace has the same bytes");
    assert_eq!(fleet.export("--source major", &[trace]).status, 0);
    assert!(fs::metadata(&path).unwrap().len() < before.len() as u64);
    assert_eq!(fleet.files("blocks"), blocks, "there are other files");

    // A trace that cannot be read leaves what is there; among several it is left out.
    let bad = fleet.place.file("bad.ctf", b"no trace");
    fleet.export("", &[&bad]).says(2, &["bad.ctf"]);
    fleet.export("", &[trace, &bad]).says(2, &["bad.ctf", "left out", "1 trace written"]);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fleet.files("blocks"), blocks, "something unfinished was left behind");
}

#[test]
fn wrong_uses_are_answered() {
    let fleet = Place::new();
    let trace = fleet.file("trace.ctf", &workload_of(&trace_info(), Format::V2, 1, 50, 1));
    heaptap("export --to parquet", &[&trace]).says(2, &["-o"]);
    let call = format!("export --to parquet -o {}", fleet.path("data").display());
    heaptap(&format!("{call} --no-fold"), &[&trace]).says(2, &["leave them out"]);
    heaptap(&format!("{call}/no/where"), &[&trace]).says(2, &["cannot be made"]);
    heaptap(&format!("{call} --types x"), &[&trace]).says(2, &["--types"]);
    let file = format!("export --to parquet -o {}", trace.display());
    heaptap(&file, &[&trace]).says(2, &["cannot be made"]);
    let hostile = TraceInfo { host: b"../../x/\n".to_vec(), start_time: 1 << 60, ..trace_info() };
    let trace = fleet.file("hostile.ctf", &workload_of(&hostile, Format::V2, 1, 50, 1));
    heaptap(&call, &[&trace]).says(0, &["1 trace written"]);
    let made = fleet.path("data/blocks/host=..%2F..%2Fx%2F%0A/day=__HIVE_DEFAULT_PARTITION__");
    assert!(made.is_dir());
}
