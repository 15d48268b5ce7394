//! `heaptap export`: every format by its own rules, with the trace's totals.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use heaptap_report::rows::By;
use heaptap_report::{Archive, Metric};
use heaptap_trace::Format;
use prost::Message;
use serde_json::{Value, json};

use crate::program::{Place, heaptap};
use crate::traces::{RATE, Sources, Writer, real, small_block, trace_info, workload};

/// The values of `--to`, on which scripts rely.
const FORMATS: [&str; 6] = ["folded", "pprof", "firefox", "dhat", "speedscope", "perfetto"];

#[test]
fn every_format_is_a_value_of_to_with_its_help() {
    assert_eq!(heaptap_export::FORMATS.map(|format| format.name), FORMATS);
    let help = heaptap("export --help", &[]).text(0);
    let help: String = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for format in heaptap_export::FORMATS {
        let line = format!("- {}: {}", format.name, format.help);
        assert!(help.contains(&line), "no `{line}` in {help}");
    }
}

fn exported(path: &Path, format: &str) -> Vec<u8> {
    let run = heaptap(&format!("export --to {format}"), &[path]);
    assert_eq!(run.status, 0, "{}", run.err);
    run.out
}

fn json(path: &Path, format: &str) -> Value {
    serde_json::from_slice(&exported(path, format)).unwrap()
}

/// Bytes that `report` has for a metric.
fn reported(path: &Path, metric: &str) -> f64 {
    let text = heaptap(&format!("report --json --metric {metric}"), &[path]).text(0);
    let report: Value = serde_json::from_str(&text).unwrap();
    report["table"]["total"]["bytes"].as_f64().unwrap()
}

fn sum(values: &Value, field: &str) -> f64 {
    values.as_array().unwrap().iter().map(|value| value[field].as_f64().unwrap()).sum()
}

/// Each path is rounded to a byte.
#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-3 * expected + 100.0, "{found} for {expected}");
}

fn each_trace(check: impl Fn(&Path)) {
    let place = Place::new();
    check(&place.file("trace.ctf", &workload(Format::V3, 2, 3000, 80)));
    if let Some(path) = real("ocamlopt.v2.ctf") {
        check(&path);
    }
}

#[test]
fn folded_stacks_have_the_bytes_of_each_metric() {
    each_trace(|path| {
        for metric in ["allocated", "promoted", "peak", "live"] {
            let text = heaptap(&format!("export --to folded --metric {metric}"), &[path]).text(0);
            let bytes = text.lines().map(|line| {
                let (frames, bytes) = line.rsplit_once(' ').unwrap();
                assert!(frames.split(';').all(|frame| !frame.is_empty()), "{line}");
                bytes.parse::<f64>().unwrap()
            });
            assert_close(bytes.sum(), reported(path, metric));
        }
    });
}

#[test]
fn speedscope_has_a_profile_for_each_metric() {
    each_trace(|path| {
        let file = json(path, "speedscope");
        assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
        let frames = file["shared"]["frames"].as_array().unwrap().len() as u64;
        let metrics = ["allocated", "peak", "live", "promoted"];
        for (profile, metric) in file["profiles"].as_array().unwrap().iter().zip(metrics) {
            assert_eq!((&profile["type"], &profile["unit"]), (&"sampled".into(), &"bytes".into()));
            let samples = profile["samples"].as_array().unwrap();
            let weights = profile["weights"].as_array().unwrap();
            assert_eq!(samples.len(), weights.len());
            let numbers = samples.iter().flat_map(|stack| stack.as_array().unwrap());
            assert!(numbers.into_iter().all(|number| number.as_u64().unwrap() < frames));
            let bytes: f64 = weights.iter().map(|weight| weight.as_f64().unwrap()).sum();
            assert_close(bytes, reported(path, metric));
            assert_close(profile["endValue"].as_f64().unwrap(), bytes);
        }
    });
}

#[test]
fn dhat_has_what_its_viewer_asks_for() {
    each_trace(|path| {
        let file = json(path, "dhat");
        assert_eq!((&file["dhatFileVersion"], &file["bklt"]), (&2.into(), &true.into()));
        for field in ["mode", "verb", "tu", "Mtu", "cmd"] {
            assert!(file[field].is_string(), "{field}");
        }
        for field in ["pid", "te", "tg", "tuth"] {
            assert!(file[field].is_u64(), "{field}");
        }
        let (points, frames) = (&file["pps"], file["ftbl"].as_array().unwrap());
        assert_eq!(frames[0], "[root]");
        for point in points.as_array().unwrap() {
            for field in ["tb", "tbk", "tl", "mb", "mbk", "gb", "gbk", "eb", "ebk"] {
                assert!(point[field].is_u64(), "{field}: {point}");
            }
            let stack = point["fs"].as_array().unwrap();
            let known = |frame: &Value| (1..frames.len() as u64).contains(&frame.as_u64().unwrap());
            assert!(!stack.is_empty() && stack.iter().all(known), "{point}");
        }
        assert_close(sum(points, "tb"), reported(path, "allocated"));
        assert_close(sum(points, "gb"), reported(path, "peak"));
        assert_close(sum(points, "eb"), reported(path, "live"));
    });
}

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Numbered>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "12")]
    period: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    name: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Numbered {
    #[prost(uint64, tag = "1")]
    id: u64,
}

#[test]
fn pprof_has_objects_and_spaces() {
    each_trace(|path| {
        let profile = Profile::decode(exported(path, "pprof").as_slice()).unwrap();
        let text = |number: i64| profile.string_table[usize::try_from(number).unwrap()].as_str();
        assert_eq!(text(0), "");
        let names: Vec<&str> = profile.sample_type.iter().map(|kind| text(kind.name)).collect();
        let known = ["alloc_objects", "promoted_space", "peak_space", "inuse_space", "alloc_space"];
        assert_eq!(names, known);
        assert_eq!(text(profile.sample_type[4].unit), "bytes");
        let ids: std::collections::HashSet<u64> = profile.location.iter().map(|l| l.id).collect();
        assert!(!ids.contains(&0) && ids.len() == profile.location.len());
        let stacks = profile.sample.iter().flat_map(|sample| &sample.location_id);
        assert!(stacks.into_iter().all(|id| ids.contains(id)));
        for (place, metric) in [(1, "promoted"), (2, "peak"), (3, "live"), (4, "allocated")] {
            let bytes: i64 = profile.sample.iter().map(|sample| sample.value[place]).sum();
            assert_close(bytes as f64, reported(path, metric));
        }
        assert!(profile.period > 0);
    });
}

#[test]
fn firefox_has_allocations_and_the_live_size_over_time() {
    each_trace(|path| {
        let file = json(path, "firefox");
        assert!(file["meta"]["preprocessedProfileVersion"].as_u64().unwrap() > 40);
        let allocations = &file["threads"][0]["nativeAllocations"];
        let weights = allocations["weight"].as_array().unwrap();
        let (mut allocated, mut balance) = (0.0, 0.0);
        for weight in weights {
            let bytes = weight.as_f64().unwrap();
            allocated += bytes.max(0.0);
            balance += bytes;
        }
        assert_close(allocated, reported(path, "allocated"));
        assert_close(balance, reported(path, "live"));
        let counter = &file["counters"][0]["samples"];
        let live: f64 =
            counter["count"].as_array().unwrap().iter().map(|step| step.as_f64().unwrap()).sum();
        assert_close(live, reported(path, "live"));
    });
}

/// A recursion of `depth` calls of one function and `depth` of three in turn, on a
/// stack for each of a number of samples, each deeper than the one before.
fn recursive(samples: u64, depth: u64) -> Vec<u8> {
    let mut writer = Writer::new(Format::V2);
    for turn in 1..=samples {
        let calls = (depth * turn / samples) as usize;
        // All of these have one location.
        let [main, f, a, b, c] = [0, 2, 4, 8, 10].map(|number| Sources::FIRST + number);
        let stack = [vec![main], vec![f; calls], [a, b, c].repeat(calls)].concat();
        writer.alloc(0, small_block(), &stack);
    }
    writer.finish()
}

#[test]
fn deep_recursion_is_folded_unless_it_is_asked_for() {
    const SAMPLES: u64 = 50;
    const DEPTH: u64 = 2000;
    let place = Place::new();
    let path = place.file("deep.ctf", &recursive(SAMPLES, DEPTH));
    let frames: u64 = (1..=SAMPLES).map(|turn| 4 * (DEPTH * turn / SAMPLES) - 4).sum();
    let told = format!("folded recursion in 50 of 50 call paths, {frames} frames left out");
    for format in FORMATS {
        let call = format!("export --to {format}");
        let folded = heaptap(&call, &[&path]);
        folded.says(0, &["deep.ctf: ", &told, "--no-fold"]);
        let size = folded.out.len();
        // Firefox has a time line besides.
        assert!(size < 20_000, "{format}: {size} bytes");
        let whole = heaptap(&format!("{call} --no-fold"), &[&path]);
        assert_eq!((whole.status, whole.err.as_str()), (0, ""));
        assert!(whole.out.len() > 5 * size, "{format}: {} and {size} bytes", whole.out.len());
        assert_eq!(heaptap(&format!("{call} --no-fold --fold"), &[&path]).out, folded.out);
        let cut = heaptap(&format!("{call} --no-fold --frames 10"), &[&path]);
        cut.says(0, &["cut 50 of 50 call paths", "frames left out; a higher --frames"]);
        assert!(cut.out.len() < 20_000, "{format}: {} bytes", cut.out.len());
    }
    let lines = |call: &str| heaptap(call, &[&path]).text(0);
    let bytes = SAMPLES as f64 * 8.0 / RATE;
    let [main, f, a, b, c] = [0, 2, 4, 8, 10].map(|n| format!("Module{n}.function_{n}_0"));
    let (single, cycle) = ("(repeated up to ×2000)", "(3 frames repeated up to ×2000)");
    let whole = [&main, single, &f, cycle, &a, &b, &c].join(";");
    assert_eq!(lines("export --to folded"), format!("{whole} {bytes}\n"));
    let cut = [&main, single, "(frames left out)", &b, &c].join(";");
    assert_eq!(lines("export --to folded --frames 4"), format!("{cut} {bytes}\n"));
    heaptap("export --to folded --frames 1", &[&path]).says(2, &["--frames"]);

    let hot = heaptap("hot --json", &[&path]);
    hot.says(0, &[&told]);
    let hot: Value = serde_json::from_slice(&hot.out).unwrap();
    let repeats = hot["fragments"][0]["frames"].as_array().unwrap().iter();
    let repeats: Vec<_> = repeats.map(|frame| frame["repeats"].as_u64().unwrap_or(1)).collect();
    assert_eq!(repeats, [1, 1, 2000, 2000, 1]);
    assert!(lines("hot").contains(&format!("{f} (directory/source_2.ml) {single}")));
    assert_eq!(heaptap("hot --no-fold", &[&path]).err, "");
}

/// The sums of each format are those of the trace, folded or not, cut or not.
#[test]
fn sums_are_the_same_however_stacks_are_shortened() {
    let place = Place::new();
    let path = place.file("deep.ctf", &recursive(40, 300));
    for shape in ["", "--no-fold", "--frames 7", "--no-fold --frames 5"] {
        for metric in ["allocated", "live"] {
            let call = format!("export --to folded --metric {metric} {shape}");
            let text = heaptap(&call, &[&path]).text(0);
            let bytes = text.lines().map(|line| line.rsplit_once(' ').unwrap().1);
            let bytes: f64 = bytes.map(|bytes| bytes.parse::<f64>().unwrap()).sum();
            assert_eq!(bytes, reported(&path, metric), "{call}");
        }
        let call = format!("export --to pprof {shape}");
        let profile = Profile::decode(heaptap(&call, &[&path]).out.as_slice()).unwrap();
        let bytes: i64 = profile.sample.iter().map(|sample| sample.value[4]).sum();
        assert_eq!(bytes as f64, reported(&path, "allocated"), "{call}");
        for (format, points) in [("dhat", "/pps"), ("speedscope", "/profiles/0/weights")] {
            let run = heaptap(&format!("export --to {format} {shape}"), &[&path]);
            let file: Value = serde_json::from_slice(&run.out).unwrap();
            let points = file.pointer(points).unwrap().as_array().unwrap();
            let bytes = |point: &Value| point.as_f64().or_else(|| point["tb"].as_f64()).unwrap();
            let bytes: f64 = points.iter().map(bytes).sum();
            assert_eq!(bytes, reported(&path, "allocated"), "{format} {shape}");
        }
    }
}

/// What a page has under this name.
pub(crate) fn unpacked(page: &str, id: &str) -> Option<Vec<u8>> {
    let mark = format!("<script type=\"application/octet-stream\" id=\"{id}\">");
    let (_, rest) = page.split_once(&mark)?;
    let (base64, _) = rest.split_once("</script>").unwrap();
    let gzip = STANDARD.decode(base64).unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(&gzip[..]).read_to_end(&mut bytes).unwrap();
    Some(bytes)
}

/// The archives inside a page.
pub(crate) fn archives(page: &str) -> Vec<Archive> {
    let packed = (0..).map_while(|number| unpacked(page, &format!("heaptap-trace-{number}")));
    packed.map(|bytes| Archive::from_bytes(&bytes).unwrap()).collect()
}

/// The configuration inside a page.
fn config(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"heaptap-config\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// A page with the tags of its scripts, but not what is in them.
fn without_scripts(page: &str) -> String {
    let tag = |(at, part): (usize, &'_ str)| {
        let body_ends = if at == 0 { 0 } else { part.find("</script>").unwrap() };
        let tag_ends = part.find('>').filter(|_| at > 0).map_or(0, |end| end + 1);
        [&part[..tag_ends], &part[body_ends..]].concat()
    };
    page.split("<script").enumerate().map(tag).collect()
}

#[test]
fn a_page_has_the_figures_of_the_report_and_makes_no_request() {
    each_trace(|path| {
        let page = String::from_utf8(exported(path, "html")).unwrap();
        assert!(page.contains("default-src 'none'") && page.contains("connect-src 'none'"));
        // What markup and styles load stands in these attributes: only the icon's does, and is empty. What a script
        // may load, the policy above says.
        let markup = without_scripts(&page);
        for attribute in [" src=", " href=", " action=", " data=", "url("] {
            let mut values = markup.split(attribute).skip(1);
            assert!(values.all(|value| value.starts_with("\"data:")), "{attribute}");
        }
        let archives = archives(&page);
        let [archive] = &archives[..] else { panic!("{} archives", archives.len()) };
        assert_eq!(config(&page)["mode"], "file");
        assert_eq!(config(&page)["traces"][0]["name"], archive.name.as_str());
        let aggregate = &archive.aggregate;
        for (metric, name) in [
            (Metric::Allocated, "allocated"),
            (Metric::Promoted, "promoted"),
            (Metric::Peak, "peak"),
            (Metric::Live, "live"),
            (Metric::Survived, "survived"),
        ] {
            let bytes = aggregate.estimate(metric, aggregate.total(metric)).bytes;
            // JSON is parsed to within a unit in the last place.
            let expected = reported(path, name);
            assert!(
                (bytes - expected).abs() <= 1e-15 * 2.0 * expected,
                "{name}: {bytes}, {expected}"
            );
            let text = heaptap(&format!("report --json --metric {name} --top 0"), &[path]).text(0);
            let report: Value = serde_json::from_str(&text).unwrap();
            let mut rows = aggregate.rows(&archive.locations, By::Function, metric);
            rows.retain(|row| metric.samples(&row.counts) > 0);
            let table = report["table"]["rows"].as_array().unwrap();
            let samples: u64 = rows.iter().map(|row| metric.samples(&row.counts)).sum();
            let expected: u64 = table.iter().map(|row| row["samples"].as_u64().unwrap()).sum();
            assert_eq!((rows.len(), samples), (table.len(), expected), "{name}");
        }
        assert_eq!(archive.blocks.thinning(), 0);
    });
}

#[test]
fn a_page_can_have_several_traces_and_says_what_is_in_it() {
    let place = Place::new();
    let one = place.file("one.ctf", &workload(Format::V3, 1, 500, 82));
    let other = place.file(
        "</script><script>alert(1)<!--.ctf".replace('/', "_").as_str(),
        &workload(Format::V2, 1, 300, 83),
    );
    let out = place.path("page.html");
    let call = format!("export --to html -o {}", out.display());
    let run = heaptap(&call, &[&one, &other]);
    run.says(0, &["page.html: ", "iB, with 500 blocks of one.ctf and 300 blocks of <_script>"]);
    assert_eq!(run.out, b"");
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
    let page = fs::read_to_string(&out).unwrap();
    assert!(!page.contains("<script>alert"));
    let archives = archives(&page);
    assert_eq!(archives.iter().map(|archive| archive.blocks.len()).collect::<Vec<_>>(), [500, 300]);
    assert_eq!(config(&page)["traces"][1]["name"], "<_script><script>alert(1)<!--.ctf");
    let before = page;
    heaptap(&call, &[&one, &place.path("none")]).says(2, &["no such file"]);
    assert_eq!(fs::read_to_string(&out).unwrap(), before, "a failed export replaced the page");
    fs::create_dir(place.path("several")).unwrap();
    place.file("several/one.ctf", &workload(Format::V3, 1, 50, 85));
    let several = heaptap("export --to html", &[&place.path("several")]);
    assert_eq!(config(&several.text(0))["traces"][0]["name"], "several");
    place.file("several/other.ctf", &workload(Format::V3, 1, 50, 86));
    let several = heaptap("export --to html", &[&place.path("several")]);
    let page = several.text(0);
    assert_eq!(config(&page)["traces"][0]["name"], "several (2 traces)");
    assert_eq!(self::archives(&page)[0].blocks.len(), 100);
    place.file("several/third.ctf", b"no trace");
    let several = heaptap("export --to html", &[&place.path("several")]);
    several.says(2, &["third.ctf", "left out"]);
    assert!(!place.names().iter().any(|name| name.ends_with(".tmp")), "{:?}", place.names());
}

/// Only files that the trace names, only under the root, only if they are asked for.
#[test]
fn a_page_has_source_text_only_if_it_is_asked_for() {
    let place = Place::new();
    let path = place.file("trace.ctf", &workload(Format::V3, 1, 3000, 87));
    let root = place.path("root");
    fs::create_dir_all(root.join("directory")).unwrap();
    fs::write(root.join("directory/source_1.ml"), "let one = \"</script>\"\nlet two = 2").unwrap();
    let secret = place.file("secret", b"a secret");
    symlink(&secret, root.join("directory/source_2.ml")).unwrap();
    fs::write(root.join("other.ml"), "another secret").unwrap();
    let sources = |page: &str| -> Option<Value> {
        let (_, rest) = page.split_once("id=\"heaptap-sources\">")?;
        let gzip = STANDARD.decode(rest.split_once("</script>").unwrap().0).unwrap();
        serde_json::from_reader(GzDecoder::new(&gzip[..])).unwrap()
    };
    let run = heaptap("export --to html", &[&path]);
    assert_eq!(config(&run.text(0))["source"], false);
    assert!(sources(&run.text(0)).is_none());
    let call = format!("export --to html --with-source --source-root {}", root.display());
    let run = heaptap(&call, &[&path]);
    run.says(0, &["1 source file in the page", "are not under --source-root"]);
    let page = run.text(0);
    assert_eq!(config(&page)["source"], true);
    let lines = ["let one = \"</script>\"", "let two = 2"];
    assert_eq!(sources(&page), Some(json!({ "directory/source_1.ml": lines })));
    heaptap(&format!("export --to html --source-root {}", root.display()), &[&path])
        .says(2, &["--with-source"]);
    heaptap("export --to html --with-source", &[&path]).says(2, &["--source-root"]);
    heaptap(&format!("{call}/none"), &[&path]).says(2, &["name a directory"]);
    heaptap(&call.replace("html", "folded"), &[&path]).says(2, &["for --to html"]);
}

#[test]
fn a_page_of_some_blocks_says_which() {
    let place = Place::new();
    let path = place.file("trace.ctf", &workload(Format::V3, 2, 2000, 84));
    let call = "--filter Module1 --min-size 100 --domain 1";
    let run = heaptap(&format!("export --to html {call}"), &[&path]);
    let page = run.text(0);
    assert_eq!(
        config(&page)["traces"][0]["name"],
        "trace.ctf (--filter Module1 --min-size 100 --domain 1)"
    );
    let text = heaptap(&format!("report --json {call}"), &[&path]).text(0);
    let report: Value = serde_json::from_str(&text).unwrap();
    let samples = archives(&page)[0].aggregate.samples();
    assert!(samples > 0);
    assert_eq!(report["totals"]["samples"], samples);
    for option in ["--no-fold", "--frames 10"] {
        let run = heaptap(&format!("export --to html {option}"), &[&path]);
        run.says(2, &[option.split(' ').next().unwrap(), "leave them out"]);
    }
}

/// Function names come from the trace, and are inside the archive only.
#[test]
fn names_in_the_trace_cannot_leave_the_data_of_the_page() {
    let place = Place::new();
    let mut info = trace_info();
    info.executable = b"</script><img src=x onerror=alert(1)>".to_vec();
    let mut writer = Writer::of(Format::V3, &info);
    writer.small();
    let path = place.file("trace.ctf", &writer.finish());
    let page = String::from_utf8(exported(&path, "html")).unwrap();
    assert!(!page.contains("<img"));
    assert_eq!(archives(&page)[0].info.executable, info.executable);
}

#[test]
fn exports_go_to_files_and_wrong_uses_are_answered() {
    let place = Place::new();
    let path = place.file("trace.ctf", &workload(Format::V2, 1, 500, 81));
    let out = place.path("out");
    for format in FORMATS {
        let call = format!("export --to {format} -o {}", out.display());
        assert_eq!(heaptap(&call, &[&path]).text(0), "");
        assert_eq!(fs::read(&out).unwrap(), exported(&path, format), "{format}");
        let nowhere = format!("export --to {format} -o {}/no/where", place.path("").display());
        heaptap(&nowhere, &[&path]).says(2, &["no such directory", "make it first"]);
        heaptap(&format!("export --to {format}"), &[&place.path("none")])
            .says(2, &["no such file", "check the path"]);
    }
    heaptap("export --to xml", &[&path]).says(2, &["folded", "pprof", "speedscope", "html"]);
    heaptap("export", &[&path]).says(2, &["--to"]);
    heaptap("export --to folded --filter (", &[&path]).says(2, &["not a regular expression"]);
}

/// An export can be made again, so nobody waits until it is on disk.
#[test]
fn an_export_does_not_wait_for_the_disk() {
    let is_there = |name: &str| Command::new(name).arg("-V").output().is_ok();
    if !is_there("strace") {
        eprintln!("\n*** SKIPPED: strace is not there ***\n");
        return;
    }
    let place = Place::new();
    let trace = place.file("trace.ctf", &workload(Format::V2, 1, 500, 77));
    for format in ["html", "pprof", "parquet"] {
        let (calls, out) = (place.path("calls"), place.path(format));
        let run = Command::new("strace")
            .args(["-f", "-e", "trace=fsync,fdatasync,sync_file_range,syncfs,sync", "-o"])
            .arg(&calls)
            .arg(env!("CARGO_BIN_EXE_heaptap"))
            .args(["export", "--to", format, "-o"])
            .args([&out, &trace])
            .output()
            .unwrap();
        let calls = fs::read_to_string(&calls).unwrap();
        // A container may forbid to trace.
        if run.status.success() || out.exists() {
            assert!(!calls.contains("sync("), "{format}: {calls}");
        }
    }
}
