//! Reports on narrow terminals: no line is too wide, no number is cut, and rows that
//! differ look different.

use std::collections::HashSet;
use std::path::Path;

use heaptap_trace::{Block, Code, Encoder, Format, Frames, Locate, Location, LocationList, Source};

use crate::program::{Place, command, heaptap};
use crate::traces::trace_info;

const WIDTHS: [usize; 3] = [60, 80, 120];
const FUNCTIONS: u64 = 12;

/// Functions whose names and files differ in their middle only.
struct LongNames;

impl Locate for LongNames {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        let file = format!("libraries/with/a/long/path/{code}/and/the/same_name.ml");
        let name = format!("A_module_with_a_long_name.and_function_{code}_whose_end_is_the_same");
        list.add(Location {
            file: file.as_bytes(),
            line: 1000 + code as u32,
            start_char: 10,
            end_char: 20 + code as u32,
            definition: name.as_bytes(),
        });
    }
}

/// A program whose functions all leak, `weight` times as much.
fn trace(weight: u64) -> Vec<u8> {
    let info = trace_info();
    let mut encoder = Encoder::new(Vec::new(), Format::V2, &info).unwrap();
    let mut time = info.start_time;
    let mut old = Vec::new();
    for turn in 0..6000 * FUNCTIONS {
        time += 500;
        let function = 1 + turn % FUNCTIONS;
        let stack = [99, 50 + turn / FUNCTIONS % 3, 40, function];
        let samples = weight * (1 + function % 3);
        let block = Block { length: 900, samples, source: Source::Minor };
        let id =
            encoder.domain(0).alloc(time, block, Frames::Whole(&stack), &mut LongNames).unwrap();
        encoder.domain(0).promote(time, id, &mut LongNames).unwrap();
        // Some are collected, so that leaks can be found.
        old.push(id);
        if turn % 3 == 0 && turn > 600 {
            encoder.domain(0).collect(time, old[turn as usize - 600], &mut LongNames).unwrap();
        }
    }
    encoder.finish(&mut LongNames).unwrap()
}

fn lines(call: &str, files: &[&Path], width: usize) -> Vec<String> {
    let output = command(call, files).env("COLUMNS", width.to_string()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    for line in text.lines() {
        let columns = line.chars().count();
        assert!(columns <= width, "{call}: {columns} columns of {width}: {line}\n{text}");
    }
    text.lines().map(String::from).collect()
}

/// Fails if a number is cut: an ellipsis has none beside it, unless it is part of a name.
fn assert_whole_numbers(call: &str, lines: &[String]) {
    for line in lines {
        for (at, _) in line.match_indices('…') {
            let before = line[..at].rsplit([' ', '(']).next().unwrap();
            let after = &line[at + '…'.len_utf8()..];
            let in_name = before.contains(char::is_alphabetic)
                || before.is_empty() && !after.starts_with(|c: char| c.is_ascii_digit());
            assert!(in_name, "{call}: {line}");
        }
        // A figure and its error are on one line.
        assert!(!line.ends_with(['±', '→']), "{call}: {line}");
        assert!(!line.trim_start().starts_with("±"), "{call}: {line}");
    }
}

/// The names in the rows of a table, by the first column after the numbers.
fn names(lines: &[String], from: usize) -> Vec<String> {
    lines.iter().map(|line| line.chars().skip(from).collect()).collect()
}

#[test]
fn tables_fit_and_their_rows_differ() {
    let place = Place::new();
    let path = place.file("trace.ctf", &trace(1));
    for width in WIDTHS {
        for by in ["function", "location", "file"] {
            for metric in ["allocated", "peak"] {
                let call = format!("report --by {by} --metric {metric}");
                let lines = lines(&call, &[&path], width);
                assert_whole_numbers(&call, &lines);
                let total = lines.iter().position(|line| line.ends_with("total")).unwrap();
                let rows = names(&lines[total - FUNCTIONS as usize..total], 31);
                let distinct: HashSet<&String> = rows.iter().collect();
                assert_eq!(distinct.len(), rows.len(), "{call} at {width}: {rows:#?}");
            }
        }
        let call = "report --callers 8";
        let lines = lines(call, &[&path], width);
        assert_whole_numbers(call, &lines);
        let callers: Vec<&str> =
            lines.iter().filter_map(|l| l.split_once("← ")).map(|l| l.1).collect();
        assert!(callers.len() > 20, "{lines:#?}");
    }
}

#[test]
fn comparisons_fit_and_their_rows_differ() {
    let place = Place::new();
    let before = place.file("before.ctf", &trace(1));
    let after = place.file("after.ctf", &trace(2));
    for width in WIDTHS {
        for by in ["function", "location", "file"] {
            let call = format!("diff --by {by} --fail-over 500%");
            let lines = lines(&call, &[&before, &after], width);
            assert_whole_numbers(&call, &lines);
            let rows: Vec<usize> =
                (0..lines.len()).filter(|&at| lines[at].contains("  grew")).collect();
            assert_eq!(rows.len(), FUNCTIONS as usize, "{lines:#?}");
            let name = |&at: &usize| match lines[at].split_once("grew").unwrap().1.trim() {
                "" => lines[at + 1].clone(),
                name => name.to_owned(),
            };
            let names: HashSet<String> = rows.iter().map(name).collect();
            assert_eq!(names.len(), rows.len(), "{call} at {width}: {lines:#?}");
        }
    }
}

#[test]
fn leaks_and_hot_fragments_fit() {
    let place = Place::new();
    let path = place.file("trace.ctf", &trace(1));
    let words = |lines: &[String]| -> Vec<String> {
        lines.iter().flat_map(|line| line.split_whitespace()).map(String::from).collect()
    };
    for width in WIDTHS {
        let leaks = lines("leaks", &[&path], width);
        assert_whole_numbers("leaks", &leaks);
        // Wrapped, not cut: the sentences are whole.
        let sentence = "a leak: what it allocates is kept, whenever it was allocated";
        let sentence: Vec<String> = sentence.split(' ').map(String::from).collect();
        let found = words(&leaks);
        assert!(found.windows(sentence.len()).any(|run| run == sentence), "{leaks:#?}");
        let hot = lines("hot", &[&path], width);
        assert_whole_numbers("hot", &hot);
    }
    let too_short = place.file("short.ctf", &crate::traces::workload(Format::V2, 1, 50, 3));
    for width in WIDTHS {
        for call in ["leaks", "hot", "report"] {
            let lines = lines(call, &[&too_short], width);
            assert_whole_numbers(call, &lines);
        }
    }
    assert!(heaptap("leaks", &[&too_short]).text(0).contains("cannot tell"));
}

#[test]
fn facts_fit_a_narrow_terminal() {
    let place = Place::new();
    let mut bytes = trace(1);
    let whole = place.file("a-trace-with-quite-a-long-name-of-its-own.ctf", &bytes);
    bytes.truncate(bytes.len() - 7);
    let cut = place.file("a-trace-that-is-cut-short-and-has-a-long-name.ctf", &bytes);
    for width in [40, 60, 80] {
        for call in ["info", "check"] {
            for file in [&whole, &cut] {
                let lines = lines(call, &[file], width);
                assert_whole_numbers(call, &lines);
                // Nothing is left out: a name goes on in the next line.
                let text: String = lines.iter().map(|line| line.trim()).collect();
                let name = file.file_name().unwrap().to_str().unwrap();
                assert!(text.contains(name), "{call}, {width} columns: {lines:?}");
            }
        }
    }
}
