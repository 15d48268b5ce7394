//! The exports, opened by the tools they are for. What those show must be what
//! `report` says: the totals, and who has most.
//!
//! `tests/consumers/fetch` gets what comes from npm; the Makefile calls it. Where
//! a tool is missing its test says so and is skipped, or fails if
//! `HEAPTAP_TEST_ALL` is 1.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use heaptap_trace::Format;
use serde_json::Value;

use crate::program::{Place, heaptap};
use crate::traces::{real, workload};

/// Says aloud that a tool is missing, or fails.
pub(crate) fn missing<T>(tool: &str) -> Option<T> {
    let all = env::var_os("HEAPTAP_TEST_ALL").is_some_and(|value| value == "1");
    assert!(!all, "{tool} is missing and HEAPTAP_TEST_ALL=1");
    eprintln!("\n*** SKIPPED: {tool} is missing ***\n");
    None
}

pub(crate) fn have(tool: &str, argument: &str) -> Option<()> {
    let found = Command::new(tool).arg(argument).output().is_ok_and(|run| run.status.success());
    if found { Some(()) } else { missing(tool) }
}

/// Where `tests/consumers/fetch` puts a package from npm.
pub(crate) fn package(name: &str) -> Option<PathBuf> {
    cached(&Path::new("npm").join(name).join("package"))
}

/// Where it puts packages from `PyPI`.
pub(crate) fn python_package(name: &str) -> Option<PathBuf> {
    cached(&Path::new("pypi").join(name))
}

fn cached(path: &Path) -> Option<PathBuf> {
    let directory = |variable| env::var_os(variable).map(PathBuf::from);
    let cache = directory("HEAPTAP_CACHE")
        .or_else(|| directory("XDG_CACHE_HOME").map(|cache| cache.join("heaptap")))
        .or_else(|| directory("HOME").map(|home| home.join(".cache/heaptap")));
    let found = cache.unwrap_or_default().join(path);
    if found.is_dir() { Some(found) } else { missing(&path.to_string_lossy()) }
}

#[track_caller]
pub(crate) fn text(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Runs a script of `tests/consumers`.
pub(crate) fn script(name: &str, package: &Path, file: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/consumers").join(name);
    let output = Command::new("node").arg(script).args([package, file]).output().unwrap();
    serde_json::from_str(&text(&output)).unwrap()
}

fn exported(place: &Place, trace: &Path, format: &str) -> PathBuf {
    let out = place.path(format);
    let call = format!("export --to {format} -o {}", out.display());
    assert_eq!(heaptap(&call, &[trace]).text(0), "");
    out
}

/// What `report` says of a metric.
struct Reported {
    total: f64,
    /// Bytes by name, or by name, file and line.
    rows: BTreeMap<String, f64>,
}

impl Reported {
    fn of(trace: &Path, metric: &str, by: &str) -> Reported {
        let call = format!("report --json --top 0 --metric {metric} --by {by}");
        let report: Value = serde_json::from_str(&heaptap(&call, &[trace]).text(0)).unwrap();
        let mut rows: BTreeMap<String, f64> = BTreeMap::new();
        for row in report["table"]["rows"].as_array().unwrap() {
            let name = row["name"].as_str().unwrap();
            let name = match &row["line"] {
                Value::Null => name.to_owned(),
                line => format!("{name} ({}:{line})", row["file"].as_str().unwrap()),
            };
            *rows.entry(name).or_default() += row["bytes"].as_f64().unwrap();
        }
        Reported { total: report["table"]["total"]["bytes"].as_f64().unwrap(), rows }
    }

    /// Fails unless a tool that shows this total and this largest row is right.
    #[track_caller]
    fn assert_shown(&self, what: &str, total: f64, (name, bytes): (&str, f64)) {
        assert_close(what, total, self.total);
        // Frames without a location are one row of the report, but many for tools
        // that know lines.
        if name != "(unknown)" {
            let known = self.rows.iter().filter(|(name, _)| !name.starts_with("(unknown"));
            let most = known.fold(0.0_f64, |most, (_, &bytes)| most.max(bytes));
            assert_close(&format!("{what}: the largest, {name},"), bytes, most);
        }
        // Several may be the largest.
        assert_close(
            &format!("{what}: {name}"),
            bytes,
            self.rows.get(name).copied().unwrap_or(0.0),
        );
    }
}

/// Each stack is rounded to a byte.
#[track_caller]
fn assert_close(what: &str, found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-4 * expected + 100.0, "{what}: {found} for {expected}");
}

fn each_trace(check: impl Fn(&Place, &Path)) {
    let place = Place::new();
    check(&place, &place.file("trace.ctf", &workload(Format::V3, 2, 4000, 90)));
    if let Some(path) = real("ocamlopt.v2.ctf") {
        check(&place, &path);
    }
}

#[test]
fn go_tool_pprof_shows_the_totals_and_the_largest() {
    let Some(()) = have("go", "version") else { return };
    let kinds = [
        ("alloc_space", "allocated"),
        ("inuse_space", "live"),
        ("peak_space", "peak"),
        ("promoted_space", "promoted"),
    ];
    each_trace(|place, trace| {
        let file = exported(place, trace, "pprof");
        for (kind, metric) in kinds {
            let output = Command::new("go")
                .args(["tool", "pprof", "-top", "-unit=B", "-nodecount=3", "-sample_index", kind])
                .arg(&file)
                .env("PPROF_TMPDIR", place.path(""))
                .output()
                .unwrap();
            let text = text(&output);
            assert!(text.contains(&format!("Type: {kind}")), "{text}");
            let bytes = |word: &str| word.trim_end_matches('B').parse::<f64>().unwrap();
            let total = text.lines().find_map(|line| line.split_once("% of ")).unwrap().1;
            let total = bytes(total.split_whitespace().next().unwrap());
            let first = text.lines().skip_while(|line| !line.contains("flat%")).nth(1).unwrap();
            let words: Vec<&str> = first.split_whitespace().collect();
            let largest = (words[5..].join(" "), bytes(words[0]));
            Reported::of(trace, metric, "function").assert_shown(
                kind,
                total,
                (&largest.0, largest.1),
            );
        }
    });
}

#[test]
fn speedscope_shows_the_totals_and_the_largest() {
    let Some(()) = have("node", "--version") else { return };
    let Some(package) = package("speedscope-1.25.0") else { return };
    each_trace(|place, trace| {
        let shown = script("speedscope.mjs", &package, &exported(place, trace, "speedscope"));
        let metrics = ["allocated", "peak", "live", "promoted"];
        let profiles = shown.as_array().unwrap();
        assert_eq!(profiles.len(), metrics.len());
        for (profile, metric) in profiles.iter().zip(metrics) {
            assert_eq!(profile["unit"], "bytes");
            let top = &profile["top"];
            let largest = (top["name"].as_str().unwrap(), top["bytes"].as_f64().unwrap());
            let total = profile["total"].as_f64().unwrap();
            Reported::of(trace, metric, "function").assert_shown(metric, total, largest);
        }
        // It reads folded stacks, too.
        let shown = script("speedscope.mjs", &package, &exported(place, trace, "folded"));
        let top = &shown[0]["top"];
        let largest = (top["name"].as_str().unwrap(), top["bytes"].as_f64().unwrap());
        let total = shown[0]["total"].as_f64().unwrap();
        Reported::of(trace, "allocated", "function").assert_shown("folded", total, largest);
    });
}

#[test]
fn dh_view_shows_the_totals() {
    let Some(()) = have("node", "--version") else { return };
    let directories = ["/usr/libexec/valgrind", "/usr/lib/valgrind", "/usr/local/libexec/valgrind"];
    let viewer = directories.iter().map(Path::new).find(|path| path.join("dh_view.js").is_file());
    let Some(viewer) = viewer.or_else(|| missing("valgrind's dh_view.js")) else { return };
    each_trace(|place, trace| {
        let shown = script("dhat.mjs", viewer, &exported(place, trace, "dhat"));
        for (field, metric) in [("total", "allocated"), ("peak", "peak"), ("end", "live")] {
            let total = Reported::of(trace, metric, "function").total;
            assert_close(field, shown[field].as_f64().unwrap(), total);
        }
        let top = &shown["top"];
        let largest = (top["name"].as_str().unwrap(), top["bytes"].as_f64().unwrap());
        let total = shown["total"].as_f64().unwrap();
        Reported::of(trace, "allocated", "location").assert_shown("dh_view", total, largest);
        // The root of its tree, in its own words.
        let text = shown["shown"].as_str().unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        let plain = words.join(" ").replace(',', "");
        assert!(plain.contains(&format!("Total: {total} bytes (100% ")), "{text}");
        for words in ["At t-gmax:", "At t-end:", "avg lifetime", "PP 1/"] {
            assert!(text.contains(words), "no `{words}` in {text}");
        }
    });
}

/// A session of the Firefox profiler's command line: a process of its own that answers
/// questions.
struct Profiler<'a> {
    program: PathBuf,
    sessions: &'a Path,
    process: Child,
}

impl<'a> Profiler<'a> {
    /// Starts the process as `load` does, and waits for it: `load` gives it half a second, which
    /// is too little on a busy machine.
    fn load(package: &Path, sessions: &'a Path, file: &Path) -> Self {
        std::fs::create_dir_all(sessions).unwrap();
        let program = package.join("dist/profiler-cli.js");
        let process = Self::command(&program, sessions)
            .arg("--daemon")
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut profiler = Profiler { program, sessions, process };
        let deadline = Instant::now() + Duration::from_secs(300);
        loop {
            let status = profiler.call(&["status"]);
            if status.status.success() {
                return profiler;
            }
            let ended = profiler.process.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "{ended:?}: {status:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn command(program: &Path, sessions: &Path) -> Command {
        let mut command = Command::new("node");
        command
            .arg(program)
            .env("PROFILER_CLI_SESSION_DIR", sessions)
            .env("PROFILER_CLI_NO_SYMBOLICATE", "1");
        command
    }

    fn call(&self, words: &[&str]) -> Output {
        Self::command(&self.program, self.sessions).args(words).output().unwrap()
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&text(&self.call(&[words, &["--json"]].concat()))).unwrap()
    }
}

impl Drop for Profiler<'_> {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_firefox_profiler_shows_what_was_allocated_what_is_retained_and_when() {
    let Some(()) = have("node", "--version") else { return };
    let Some(package) = package("profiler-cli-0.10.0") else { return };
    each_trace(|place, trace| {
        let file = exported(place, trace, "firefox");
        let sessions = place.path("sessions");
        let profiler = Profiler::load(&package, &sessions, &file);
        let kinds = [("native-allocations", "allocated"), ("native-retained-allocations", "live")];
        for (kind, metric) in kinds {
            text(&profiler.call(&["strategy", kind]));
            let shown = profiler.json(&["thread", "functions", "--limit", "0"]);
            assert_eq!(shown["weightType"], "bytes");
            let functions = shown["functions"].as_array().unwrap();
            let bytes = |function: &Value| function["selfSamples"].as_f64().unwrap();
            let total = functions.iter().map(bytes).sum();
            let largest = (functions[0]["name"].as_str().unwrap(), bytes(&functions[0]));
            Reported::of(trace, metric, "location").assert_shown(kind, total, largest);
            // All of the run is there, and no more.
            let end = shown["context"]["rootRange"]["end"].as_f64().unwrap() * 1000.0;
            let report = heaptap("report --json", &[trace]).text(0);
            let report: Value = serde_json::from_str(&report).unwrap();
            let duration = report["duration_us"].as_f64().unwrap();
            let bucket = report["timeline"]["bucket_us"].as_f64().unwrap();
            assert!(end >= duration && end <= duration + 2.0 * bucket, "{end} of {duration}");
        }
        let counter = profiler.json(&["counter", "info", "c-0"]);
        assert_eq!(counter["unit"], "bytes");
        let most = counter["stats"][0]["value"].as_f64().unwrap();
        // The range goes from what is alive at the end of a bucket; the peak may be within one.
        let peak = Reported::of(trace, "peak", "function").total;
        assert!(most <= 1.001 * peak && most > 0.5 * peak, "{most} of {peak}");
    });
}
