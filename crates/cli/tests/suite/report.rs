//! `heaptap report`, `leaks`, `hot` and `diff`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heaptap_trace::{Block, Format, Source, TraceInfo};
use serde_json::Value;

use crate::program::{Place, command, heaptap, heaptap_reading};
use crate::traces::{RATE, Sources, Writer, real, trace_info, workload};

fn json(call: &str, files: &[&Path]) -> Value {
    serde_json::from_str(&heaptap(&format!("{call} --json"), files).text(0)).unwrap()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Samples by the innermost location, counted from a dump.
fn samples_by_location(path: &Path) -> BTreeMap<String, u64> {
    let mut samples = BTreeMap::new();
    for line in heaptap("dump --json", &[path]).text(0).lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        if event["event"] != "alloc" {
            continue;
        }
        let frame = array(&event["frames"]).last();
        let place = match frame.and_then(|frame| array(&frame["locations"]).last()) {
            Some(at) => format!("{}:{}:{}-{}", at["file"], at["line"], at["start"], at["end"]),
            None => "unknown".into(),
        };
        *samples.entry(place).or_default() += event["samples"].as_u64().unwrap();
    }
    samples
}

fn assert_sites_are_those_of_the_dump(path: &Path) {
    let report = json("report --by location --top 0", &[path]);
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for row in array(&report["table"]["rows"]) {
        let place = match &row["line"] {
            Value::Null => "unknown".into(),
            line => {
                let chars = &row["chars"];
                format!("{}:{line}:{}-{}", row["file"], chars[0], chars[1])
            }
        };
        *found.entry(place).or_default() += row["samples"].as_u64().unwrap();
    }
    assert_eq!(found, samples_by_location(path));
}

#[test]
fn sites_of_real_traces_have_the_samples_that_a_dump_has() {
    for name in ["lists_and_sets.v1.ctf", "ocamlopt.v2.ctf", "ocamlopt.v3.ctf"] {
        let Some(path) = real(name) else { return };
        assert_sites_are_those_of_the_dump(&path);
    }
}

#[test]
fn totals_of_the_real_trace_are_those_of_the_original_tool() {
    let Some(path) = real("ocamlopt.v1.ctf") else { return };
    let report = json("report --by function", &[&path]);
    // 84,485 samples at a rate of 1e-3: so many words, of 8 bytes.
    assert_eq!(report["totals"]["samples"], 84_485);
    assert_eq!(report["totals"]["allocated"]["bytes"], 84_485_000.0 * 8.0);
    // As counted by a decoder written from the format's description alone.
    let rows = array(&report["table"]["rows"]);
    let largest: Vec<(&str, u64)> = rows[..5]
        .iter()
        .map(|row| (row["name"].as_str().unwrap(), row["samples"].as_u64().unwrap()))
        .collect();
    let known = [
        ("Stdlib.Set.Make.bal", 12_935),
        ("Stdlib.Map.Make.bal", 3028),
        ("Btype.iter_type_expr.(fun)", 2988),
        ("Ctype.copy", 2640),
        ("Stdlib.Set.Make.add", 2195),
    ];
    assert_eq!(largest, known);
}

#[test]
fn the_table_the_json_and_the_csv_have_the_same_numbers() {
    let place = Place::new();
    let path = place.file("trace.ctf", &workload(Format::V3, 3, 6000, 70));
    for options in [
        "--sites innermost",
        "--sites own --by location",
        "--sites innermost --metric peak --by file",
        "--sites own --metric live --by module",
    ] {
        let report = json(&format!("report {options} --top 7"), &[&path]);
        let text = heaptap(&format!("report {options} --top 7"), &[&path]).text(0);
        let csv = heaptap(&format!("report {options} --top 7 --csv"), &[&path]).text(0);
        let table: Vec<&str> =
            text.lines().skip_while(|line| !line.contains("share")).skip(1).collect();
        for (at, row) in array(&report["table"]["rows"]).iter().enumerate() {
            let shown: Vec<&str> = table[at].split_whitespace().collect();
            let (size, unit): (f64, &str) = (shown[0].parse().unwrap(), shown[1]);
            let scale = match unit {
                "bytes" => 1.0,
                "KiB" => 1024.0,
                "MiB" => 1024.0 * 1024.0,
                _ => panic!("{unit} in {}", table[at]),
            };
            let bytes = row["bytes"].as_f64().unwrap();
            assert!((size * scale - bytes).abs() <= 0.051 * scale, "{} for {row}", table[at]);
            let share: f64 = shown[4].parse().unwrap();
            assert!((share / 100.0 - row["share"].as_f64().unwrap()).abs() < 0.0006, "{row}");
            let fields: Vec<&str> = csv.lines().nth(at + 1).unwrap().split(',').collect();
            assert_eq!(fields[0], row["name"].as_str().unwrap());
            assert_eq!(fields[5], row["samples"].to_string());
            assert_eq!(fields[6].parse::<f64>().unwrap(), bytes);
        }
    }
}

/// The trace of a program that fills a map: its stacks end in the standard library.
fn maps() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/data/made-maps.v2.ctf")
}

#[test]
fn people_see_own_code_and_scripts_what_allocates() {
    let maps = maps();
    let innermost = json("report --top 0 --sites innermost", &[&maps]);
    let own = json("report --top 0 --sites own", &[&maps]);
    assert_eq!(json("report --top 0", &[&maps]), innermost);
    let sites = |report: &Value| report["table"]["sites"].as_str().unwrap().to_owned();
    assert_eq!((sites(&own), sites(&innermost)), ("own".into(), "innermost".into()));
    assert_eq!(own["table"]["total"], innermost["table"]["total"]);
    let names = |report: &Value| -> Vec<String> {
        let rows = array(&report["table"]["rows"]).iter();
        rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(names(&innermost).iter().any(|name| name.starts_with("Stdlib.Map")));
    assert!(names(&own).iter().all(|name| name.starts_with("Wl_mapchurn")), "{:?}", names(&own));
    let text = heaptap("report", &[&maps]).text(0);
    assert!(text.contains("allocated by function (own code)"), "{text}");
    assert!(text.contains(&names(&own)[0]) && !text.contains("Stdlib."), "{text}");
    assert_eq!(text, heaptap("report --sites own", &[&maps]).text(0));
    let text = heaptap("report --sites innermost", &[&maps]).text(0);
    assert!(text.contains("Stdlib.Map") && !text.contains("own code"), "{text}");
    for (options, expected) in [("", "innermost"), ("--sites own", "own")] {
        let csv = heaptap(&format!("report --top 2 --csv {options}"), &[&maps]).text(0);
        let last = |line: &str| line.rsplit(',').next().unwrap().to_owned();
        let mut lines = csv.lines();
        assert_eq!(lines.next().map(last), Some("sites".to_owned()));
        assert!(lines.all(|line| last(line) == expected), "{csv}");
    }
    let leaks = json("leaks --sites own", &[&maps]);
    assert_eq!(
        (&leaks["sites"], &json("leaks", &[&maps])["sites"]),
        (&"own".into(), &"innermost".into())
    );
}

#[test]
fn with_callers_the_rows_of_own_code_stay_the_same() {
    let maps = maps();
    let without = json("report --top 0 --sites own --by location", &[&maps]);
    let mut with = json("report --top 0 --sites own --by location --callers 4", &[&maps]);
    let mut callers = 0;
    for row in with["table"]["rows"].as_array_mut().unwrap() {
        callers += row.as_object_mut().unwrap().remove("callers").map_or(0, |_| 1);
    }
    assert!(callers > 0);
    assert_eq!(with["table"], without["table"]);
}

#[test]
fn rows_and_others_add_up_to_the_total_for_every_metric() {
    let place = Place::new();
    let path = place.file("trace.ctf", &workload(Format::V3, 4, 8000, 71));
    assert_sites_are_those_of_the_dump(&path);
    for by in ["function", "location", "file", "module"] {
        for metric in ["allocated", "promoted", "peak", "live"] {
            let report = json(&format!("report --by {by} --metric {metric} --top 3"), &[&path]);
            let table = &report["table"];
            let rows: u64 =
                array(&table["rows"]).iter().map(|row| row["samples"].as_u64().unwrap()).sum();
            let others = table["others"]["samples"].as_u64().unwrap();
            let total = table["total"]["samples"].as_u64().unwrap();
            assert_eq!(rows + others, total, "{by} {metric}");
            assert!(total > 0, "{by} {metric}");
        }
    }
}

/// Two functions, one of which keeps large blocks.
fn two_sites() -> Vec<u8> {
    let mut writer = Writer::new(Format::V2);
    let (small, large) = (Sources::FIRST, Sources::FIRST + 2);
    for turn in 0..1000 {
        let length = if turn % 4 == 0 { 100 } else { 4 };
        let block = Block { length, samples: 1 + turn % 3, source: Source::Minor };
        let leaf = if turn % 4 == 0 { large } else { small };
        let id = writer.alloc(0, block, &[Sources::FIRST + 6, leaf]);
        writer.time += 100;
        if turn % 4 != 0 {
            writer.collect(0, id);
        }
    }
    writer.finish()
}

/// Ten blocks of each source with one sample each: of the young ones three are promoted
/// and five are collected.
fn three_sources(rate: f64) -> Vec<u8> {
    let mut writer = Writer::of(Format::V2, &TraceInfo { sample_rate: rate, ..trace_info() });
    for source in [Source::Minor, Source::Major, Source::External] {
        let block = Block { length: 3, samples: 1, source };
        let alloc = |_| writer.alloc(0, block, &[Sources::FIRST + 5]);
        let ids: Vec<u64> = (0..10).map(alloc).collect();
        if source == Source::Minor {
            ids[..3].iter().for_each(|&id| writer.promote(0, id));
            ids[5..].iter().for_each(|&id| writer.collect(0, id));
        }
    }
    writer.finish()
}

#[test]
fn heap_and_external_memory_are_apart() {
    let place = Place::new();
    let path = place.file("trace.ctf", &three_sources(0.5));
    // A sample stands for 16 bytes.
    let totals = &json("report", &[&path])["totals"];
    assert_eq!(totals["allocated"]["bytes"], 480.0);
    assert_eq!(totals["external"]["bytes"], 160.0);
    let rows = json("report --by source", &[&path]);
    let row = |row: &Value| (row["name"].clone(), row["samples"].clone());
    let rows: Vec<_> = array(&rows["table"]["rows"]).iter().map(row).collect();
    let names = ["external: outside the heap", "major heap", "minor heap"];
    assert_eq!(rows, names.map(|name| (name.into(), 10.into())));
    let selected = json("report --source minor --source major", &[&path]);
    assert_eq!(selected["totals"]["allocated"]["bytes"], 320.0);
    assert_eq!(selected["totals"]["external"]["bytes"], 0.0);
    let text = heaptap("report", &[&path]).text(0);
    assert!(text.contains("160 bytes ± 22.4 % outside the heap"), "{text}");
}

#[test]
fn what_no_collection_has_seen_is_no_survivor() {
    let place = Place::new();
    let path = place.file("trace.ctf", &three_sources(0.5));
    let totals = &json("report --source minor", &[&path])["totals"];
    // Of five that are alive three were promoted.
    assert_eq!(totals["live"]["bytes"], 80.0);
    assert_eq!(totals["live_young"]["bytes"], 32.0);
    let text = heaptap("report --source minor", &[&path]).text(0);
    assert!(text.contains("that no collection has seen yet"), "{text}");
}

#[test]
fn what_tracing_or_missing_debug_information_does_to_figures_is_said() {
    let place = Place::new();
    let often = heaptap("report", &[&place.file("often.ctf", &three_sources(0.5))]).text(0);
    assert!(often.contains("longer than untraced"), "{often}");
    assert!(often.contains("Compile and link the program with -g"), "{often}");
    let seldom = heaptap("report", &[&place.file("seldom.ctf", &two_sites())]).text(0);
    assert!(!seldom.contains("longer than untraced"), "{seldom}");
    assert!(!seldom.contains("with -g"), "{seldom}");
}

#[test]
fn options_select_blocks() {
    let place = Place::new();
    let path = place.file("trace.ctf", &two_sites());
    let samples = |options: &str| -> u64 {
        json(&format!("report {options}"), &[&path])["totals"]["samples"].as_u64().unwrap()
    };
    let all = samples("");
    let large = samples("--filter function_2_0$");
    let small = samples("--exclude function_2_0$");
    assert!(large > 0 && small > 0);
    assert_eq!(large + small, all);
    assert_eq!(samples("--min-size 800"), large);
    assert_eq!(samples("--max-size 799"), small);
    // What is alive at the end lived until then.
    let long = samples("--min-lifetime 1ms");
    assert!(long > large / 2 && long < large);
    assert_eq!(long + samples("--max-lifetime 999us"), all);
    assert_eq!(samples("--since 50ms") + samples("--until 49999us"), all);
    assert_eq!(samples("--domain 0"), all);
    assert_eq!(samples("--domain 1"), 0);
    assert_eq!(samples("--label anything"), 0);
    // The caller is in all stacks, and not where anything is allocated.
    assert_eq!(samples("--filter function_6 --filter function_2_0$"), large);
    let live = json("report --metric live", &[&path]);
    assert_eq!(live["table"]["total"]["samples"], large);
    let report = json("report --callers 1", &[&path]);
    let callers = &report["table"]["rows"][0]["callers"];
    assert!(callers[0]["name"].as_str().unwrap().contains("function_6"), "{callers}");
    assert_eq!(callers[0]["samples"], report["table"]["rows"][0]["samples"]);
}

#[test]
fn what_is_alive_at_a_time_can_be_asked_for() {
    let place = Place::new();
    let path = place.file("trace.ctf", &two_sites());
    let live = |at: &str| {
        json(&format!("report --at {at}"), &[&path])["table"]["total"]["samples"].as_u64().unwrap()
    };
    assert!(live("10ms") < live("50ms") && live("50ms") < live("95ms"));
    heaptap("report --at 1h", &[&path]).says(2, &["ends after", "ask for an earlier time"]);
}

#[test]
fn wrong_uses_are_answered_with_what_is_right() {
    let place = Place::new();
    let path = place.file("trace.ctf", &two_sites());
    // Every verb that selects blocks answers to a bad selection alike.
    for verb in ["report", "leaks", "hot", "diff", "export --to folded", "export --to firefox"] {
        let files: &[&Path] = if verb == "diff" { &[&path, &path] } else { &[&path] };
        let run = |options: &str| heaptap(&format!("{verb} {options}"), files);
        for option in ["--filter", "--exclude", "--label"] {
            let said = [option, "list(map", "not a regular expression", "backslash"];
            run(&format!("{option} list(map")).says(2, &said);
        }
        let turned = [
            ("--since 2s --until 1s", "--since is beyond --until"),
            ("--min-size 2k --max-size 1k", "--min-size is beyond --max-size"),
            ("--min-lifetime 2s --max-lifetime 1s", "--min-lifetime is beyond --max-lifetime"),
        ];
        for (options, said) in turned {
            run(options).says(2, &[said, "exchange"]);
        }
        run("--since yesterday").says(2, &["give a number and a unit", "10ms"]);
        run("--min-size big").says(2, &["give a number of bytes", "64KiB"]);
        run("--domain first").says(2, &["--domain", "first"]);
    }
    heaptap("report --by colour", &[&path]).says(2, &["function", "module"]);
    heaptap("report --json --csv", &[&path]).says(2, &["cannot be used with"]);
    heaptap("report --at 1s --metric live", &[&path]).says(2, &["cannot be used with"]);
    heaptap("diff --fail-over much", &[&path, &path]).says(2, &["give a percentage", "5%"]);
    heaptap("hot --threshold 5", &[&path]).says(2, &["give a percentage"]);
    heaptap("diff", &[&path]).says(2, &["1 trace given, where two are compared"]);
}

#[test]
fn the_report_fits_the_terminal_and_has_colours_only_there() {
    let place = Place::new();
    let path = place.file("trace.ctf", &workload(Format::V2, 1, 4000, 72));
    for width in [60, 80, 120] {
        for call in ["report --by location --callers 2", "hot", "leaks"] {
            let mut command = command(call, &[&path]);
            let output = command.env("COLUMNS", width.to_string()).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(!text.contains('\x1b'), "{call}");
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{call} at {width}: {line}");
            }
        }
    }
    let on_terminal = |no_color: &str| {
        let call = format!("{} report {}", env!("CARGO_BIN_EXE_heaptap"), path.display());
        let mut script = Command::new("script");
        script.args(["-qec", &call, "/dev/null"]).stdin(Stdio::null());
        script.env("NO_COLOR", no_color).env("TERM", "xterm").env_remove("COLUMNS");
        script.output()
    };
    let Ok(plain) = on_terminal("1") else {
        eprintln!("\n*** SKIPPED: there is no `script` to give a terminal ***\n");
        return;
    };
    assert!(!plain.stdout.contains(&0x1b));
    assert!(on_terminal("").unwrap().stdout.contains(&0x1b));
}

#[test]
fn hostile_names_stay_harmless() {
    let place = Place::new();
    let mut info = trace_info();
    info.executable = b"\x1b]0;owned\x07".to_vec();
    let mut writer = Writer::of(Format::V2, &info);
    writer.small();
    let path = place.file("trace.ctf", &writer.finish());
    for call in ["report", "report --json", "report --csv", "hot", "leaks"] {
        let text = heaptap(call, &[&path]).text(0);
        assert!(!text.contains(['\x1b', '\x07']), "{call}: {text:?}");
    }
}

#[test]
fn hot_fragments_have_their_callers() {
    let place = Place::new();
    let path = place.file("trace.ctf", &two_sites());
    let found = json("hot --threshold 10%", &[&path]);
    let fragments = array(&found["fragments"]);
    assert_eq!(fragments.len(), 2, "{found}");
    for fragment in fragments {
        let frames = array(&fragment["frames"]);
        assert!(frames.last().unwrap()["name"].as_str().unwrap().contains("function_6"));
    }
    let shares: f64 = fragments.iter().map(|f| f["own_share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9);
}

#[test]
fn a_leak_is_told_in_plain_words() {
    let place = Place::new();
    let mut writer = Writer::new(Format::V2);
    let block = Block { length: 9, samples: 1, source: Source::Minor };
    let mut kept = std::collections::VecDeque::new();
    for turn in 0..20_000_u64 {
        writer.time += 3000;
        if turn % 50 == 0 {
            let id = writer.alloc(0, block, &[Sources::FIRST + 6, Sources::FIRST + 2]);
            writer.promote(0, id);
        }
        let id = writer.alloc(0, block, &[Sources::FIRST + 6, Sources::FIRST]);
        writer.promote(0, id);
        kept.push_back(id);
        if kept.len() > 200 {
            writer.collect(0, kept.pop_front().unwrap());
        }
    }
    let bytes = writer.finish();
    let path = place.file("leaky.ctf", &bytes);
    let text = heaptap("leaks", &[&path]).text(0);
    for words in
        ["1 site keeps growing", "source_2.ml:12:", "a leak", "called from", "KiB ± 7.0 % a minute"]
    {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
    let found = json("leaks", &[&path]);
    assert_eq!(array(&found["leaks"]).len(), 1);
    assert_eq!(found["leaks"][0]["site"]["line"], 12);
    assert_eq!(found["conclusive"], true);
    let text = heaptap("leaks --exclude function_2_", &[&path]).text(0);
    assert!(text.contains("no site seen growing up to"), "{text}");
    // What is not in the file was not looked at.
    let cut = place.file("cut.ctf", &bytes[..bytes.len() * 9 / 10]);
    for (options, found) in
        [("", "1 site keeps growing"), ("--exclude function_2_", "no site seen growing up to")]
    {
        let text = heaptap(&format!("leaks {options}"), &[&cut]).text(0);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let partly = "in what was read, which is not all: it ends inside a packet";
        for words in [found, partly] {
            assert!(text.contains(words), "no `{words}` in {text}");
        }
    }
    let found = json("leaks --exclude function_2_", &[&cut]);
    assert_eq!(found["conclusive"], false);
    assert!(found["incomplete"].as_str().unwrap().contains("inside a packet"));
}

#[test]
fn a_peak_that_differs_from_the_sum_of_its_rows_says_why() {
    let place = Place::new();
    let mut writer = Writer::new(Format::V2);
    let block = Block { length: 9, samples: 1, source: Source::Major };
    let mut alive = std::collections::VecDeque::new();
    // Some forty are alive at any time, now a few more and now a few less.
    for turn in 0..4_000_u64 {
        writer.time += 100;
        alive.push_back(writer.alloc(0, block, &[Sources::FIRST]));
        while alive.len() as u64 > 40 + turn * turn % 7 {
            writer.collect(0, alive.pop_front().unwrap());
        }
    }
    let path = place.file("steady.ctf", &writer.finish());
    let report = json("report --metric peak", &[&path]);
    let (peak, seen) = (&report["totals"]["peak"], &report["totals"]["live_at_peak"]);
    assert_eq!(seen["bytes"], report["table"]["total"]["bytes"]);
    assert!(peak["bytes"].as_f64() < seen["bytes"].as_f64(), "{report}");
    let text = heaptap("report --metric peak", &[&path]).text(0);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("not to the peak live size of") && text.contains("by chance"), "{text}");
    let text = heaptap("report --metric live", &[&path]).text(0);
    assert!(!text.contains("by chance"), "{text}");
}

/// A number of blocks, each of a number of samples, in each of two functions.
fn sized(one: u64, other: u64) -> Vec<u8> {
    let mut writer = Writer::new(Format::V2);
    for (count, leaf) in [(one, Sources::FIRST), (other, Sources::FIRST + 2)] {
        for _ in 0..count {
            let block = Block { length: 9, samples: 1, source: Source::Minor };
            writer.alloc(0, block, &[Sources::FIRST + 6, leaf]);
        }
    }
    writer.finish()
}

#[test]
fn diff_tells_change_from_chance_and_is_a_gate() {
    let place = Place::new();
    let before = place.file("before.ctf", &sized(5000, 5000));
    let same = place.file("same.ctf", &sized(5060, 4950));
    let more = place.file("more.ctf", &sized(5000, 8000));
    let only = place.file("only.ctf", &sized(5000, 0));
    let kinds = |other: &Path| -> Vec<String> {
        let found = json("diff", &[&before, other]);
        array(&found["changes"]).iter().map(|c| c["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert!(kinds(&same).is_empty());
    assert_eq!(kinds(&more), ["grew"]);
    assert_eq!(kinds(&only), ["gone"]);
    assert_eq!(kinds(&before), [""; 0]);
    let text = heaptap("diff", &[&before, &same]).text(0);
    assert!(text.contains("no difference beyond sampling error"), "{text}");
    heaptap("diff --fail-over 5%", &[&before, &same]).text(0);
    let failed = heaptap("diff --fail-over 5%", &[&before, &more]).text(3);
    assert!(failed.contains("failed: 30.0 % ± 1.7 % of growth, 5.0 % allowed"), "{failed}");
    heaptap("diff --fail-over 50%", &[&before, &more]).text(0);
    heaptap("diff --fail-over 5% --filter function_0_0", &[&before, &more]).text(0);
    let bytes = json("diff", &[&before, &more])["total"]["difference_bytes"].as_f64().unwrap();
    assert_eq!(bytes, 3000.0 * 8.0 / RATE);
}

#[test]
fn pipes_and_several_domains_are_read_in_the_order_of_time() {
    let place = Place::new();
    let trace = workload(Format::V3, 3, 6000, 73);
    let path = place.file("trace.ctf", &trace);
    for call in ["report --metric peak", "hot", "leaks"] {
        let expected = heaptap(call, &[&path]).text(0);
        assert_eq!(heaptap_reading(&format!("{call} -"), &[], &trace).text(0), expected);
    }
    // The live size at the end, from the dump: what was never collected.
    let merged = heaptap("dump --merge --json", &[&path]).text(0);
    let mut live: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut now, mut peak) = (0, 0);
    for line in merged.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let id = event["id"].as_u64().unwrap();
        match event["event"].as_str().unwrap() {
            "alloc" => {
                let samples = event["samples"].as_u64().unwrap();
                live.insert(id, samples);
                now += samples;
                peak = peak.max(now);
            }
            "collect" => now -= live.remove(&id).unwrap_or(0),
            _ => {}
        }
    }
    let samples = |metric: &str| {
        let report = json(&format!("report --metric {metric}"), &[&path]);
        report["table"]["total"]["samples"].as_u64().unwrap()
    };
    assert_eq!((samples("live"), samples("peak")), (now, peak));
}
