//! The C header is generated from the sources, and complete. So is the list of the
//! functions that it declares, which `make exports` compares with the library.
//!
//! `HEAPTAP_UPDATE_HEADER=1 cargo test --test header` writes both anew.

#![allow(unsafe_code, reason = "reads the C strings of the ABI")]

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::path::Path;

use heaptap::abi::heaptap_status_str;
use heaptap_settings::{Reader, VARIABLES, Variable};

const HEADER: &str = "include/heaptap.h";
const EXPORTS: &str = "include/exports";

/// The mutator is opaque except for its first fields, which the inline functions count down and
/// read.
const MUTATOR: &str = "\
/* A thread or domain that allocates. Created by heaptap_mutator_start; never freed.
 * Only the inline functions below use its fields. */
typedef struct heaptap_mutator {
  /* Words until the next sample outside the young heap. */
  intptr_t until_sample;
  /* For each value of bits 4 to 19 of an address, how many sampled blocks may be there. */
  const uint16_t *sampled;
} heaptap_mutator;
";

/// A probe is opaque except for what the inline functions add to.
const PROBE: &str = "\
/* Callers of heaptap_probe_count_in at a time. */
#define HEAPTAP_PROBE_STRIPES 16

/* A quantity of the program's own. Created by heaptap_probe_open; never freed. Only the inline
 * functions below use its fields. */
typedef struct heaptap_probe {
  /* What any thread has counted. */
  uint64_t count;
  uint64_t reserved[7];
  /* What one caller at a time has counted, each on a cache line of its own. */
  uint64_t stripes[HEAPTAP_PROBE_STRIPES][8];
} heaptap_probe;
";

fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut parts = version.split('.');
    let mut lines = format!("#define HEAPTAP_VERSION \"{version}\"\n");
    for name in ["MAJOR", "MINOR", "PATCH"] {
        let part = parts.next().expect("three numbers");
        lines += &format!("#define HEAPTAP_VERSION_{name} {part}\n");
    }
    lines
}

/// Without the sections on safety, which are for callers in Rust.
fn without_safety(header: &str) -> String {
    let mut kept = Vec::new();
    let mut skipping = false;
    for line in header.lines() {
        let comment = line.trim_start().starts_with("//");
        if line.trim() == "// # Safety" {
            skipping = true;
            while kept.last().is_some_and(|last: &&str| last.trim() == "//") {
                kept.pop();
            }
        }
        if !comment {
            skipping = false;
        }
        if !skipping {
            kept.push(line);
        }
    }
    kept.join("\n") + "\n"
}

/// Line comments are C99; block comments read the same everywhere.
fn with_block_comments(header: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut open = false;
    for line in header.lines() {
        let trimmed = line.trim_start();
        let indent = &line[..line.len() - trimmed.len()];
        if let Some(text) = trimmed.strip_prefix("//") {
            let start = if open { " *" } else { "/*" };
            lines.push(format!("{indent}{start}{text}"));
            open = true;
        } else {
            if open && let Some(last) = lines.last_mut() {
                last.push_str(" */");
            }
            open = false;
            lines.push(line.to_owned());
        }
    }
    lines.join("\n") + "\n"
}

fn generate() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut config =
        cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    config.after_includes = Some(format!("\n{}\n{MUTATOR}\n{PROBE}", version()));
    let mut text = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(root.join("src/abi/status.rs"))
        .with_src(root.join("src/abi/handle.rs"))
        .with_src(root.join("src/abi/frames.rs"))
        .with_src(root.join("src/abi/options.rs"))
        .with_src(root.join("src/abi/tracer.rs"))
        .with_src(root.join("src/abi/mutator.rs"))
        .with_src(root.join("src/abi/hooks.rs"))
        .with_src(root.join("src/abi/upward.rs"))
        .with_src(root.join("src/abi/interpreters.rs"))
        .with_src(root.join("src/abi/collector.rs"))
        .with_src(root.join("src/abi/names.rs"))
        .with_src(root.join("src/abi/stats.rs"))
        .with_src(root.join("src/abi/attached.rs"))
        .with_src(root.join("src/abi/control.rs"))
        .with_src(root.join("src/abi/probe.rs"))
        .with_src(root.join("src/abi/slices.rs"))
        .with_src(root.join("src/abi/snapshot.rs"))
        .with_src(root.join("src/abi/snapshot_source.rs"))
        .with_src(root.join("src/abi/snapshot_walk.rs"))
        .generate()
        .expect("a header")
        .write(&mut text);
    let text = String::from_utf8(text).expect("UTF-8");
    with_block_comments(&without_safety(&text))
}

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    std::fs::read_to_string(path).expect(file)
}

/// Compares a generated file with what it should be, or writes it.
fn check_generated(file: &str, generated: &str) {
    if std::env::var_os("HEAPTAP_UPDATE_HEADER").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        std::fs::write(path, generated).expect(file);
    }
    assert!(
        read(file) == generated,
        "{file} differs from src/abi; HEAPTAP_UPDATE_HEADER=1 cargo test --test header"
    );
}

#[test]
fn the_header_is_generated_from_the_sources() {
    check_generated(HEADER, &generate());
}

/// The names of the functions that the header declares.
fn declared(header: &str) -> BTreeSet<String> {
    let (_, rest) = header.split_once("extern \"C\" {\n").expect("declarations");
    let (declarations, _) = rest.split_once("\n}  // extern").expect("their end");
    let code: String =
        declarations.split("/*").map(|part| part.rsplit("*/").next().unwrap_or(part)).collect();
    let functions = code.split(';').filter_map(|declaration| declaration.split_once('('));
    let name = |before: &str| {
        let name = before.rsplit(|c: char| !(c == '_' || c.is_ascii_alphanumeric())).next();
        name.unwrap_or_default().to_owned()
    };
    functions.map(|(before, _)| name(before)).collect()
}

#[test]
fn the_list_of_exports_is_what_the_header_declares() {
    let declared = declared(&generate());
    assert!(declared.len() >= 30, "{} functions", declared.len());
    let exports: String = declared.iter().map(|name| format!("{name}\n")).collect();
    check_generated(EXPORTS, &exports);
}

/// The statuses of the header: name, number and the comment before it.
fn statuses(header: &str) -> Vec<(String, i32, String)> {
    let mut comment = String::new();
    let mut found = Vec::new();
    for line in header.lines() {
        if let Some(definition) = line.strip_prefix("#define HEAPTAP_STATUS_") {
            let (name, number) = definition.split_once(' ').expect("a number");
            found.push((name.to_owned(), number.parse().expect("a number"), comment.clone()));
        }
        if line.starts_with("/*") {
            comment.clear();
        }
        comment += line.trim_start_matches(['/', '*', ' ']).trim_end_matches(" */");
        comment += " ";
    }
    found
}

#[test]
fn each_status_is_described_by_its_text() {
    let statuses = statuses(&read(HEADER));
    for (number, (name, value, comment)) in statuses.iter().enumerate() {
        assert_eq!(usize::try_from(*value), Ok(number), "{name}");
        // SAFETY: a static string, as the header says.
        let text = unsafe { CStr::from_ptr(heaptap_status_str(*value)) };
        let text = text.to_str().expect("English");
        let (first, rest) = text.split_at(1);
        let sentence = format!("{}{rest}.", first.to_uppercase());
        assert!(comment.starts_with(&sentence), "{name}: `{comment}` is not `{sentence}`");
    }
    // SAFETY: a static string, as the header says.
    let beyond = unsafe { CStr::from_ptr(heaptap_status_str(statuses.len() as i32)) };
    assert_eq!(beyond, c"unknown status");
}

#[test]
fn the_header_names_the_environment_variables_of_every_host() {
    let header = read(HEADER);
    let variables = VARIABLES.iter().filter(|variable| variable.reader == Reader::Library);
    for name in variables.flat_map(Variable::names) {
        assert!(header.contains(&format!("`{name}`")), "{name}");
    }
}
