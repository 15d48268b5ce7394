//! The C header is what the sources say.
//!
//! `HEAPTAP_UPDATE_HEADER=1 cargo test --test header` writes it anew.

use std::path::Path;

const HEADER: &str = "include/heaptap.h";

/// The mutator is opaque but for its first field, which the inline functions
/// count down.
const MUTATOR: &str = "\
/* What allocates: one for each thread or domain. Made by heaptap_mutator_start; never freed.
 * Only the inline functions below look inside. */
typedef struct heaptap_mutator {
  /* Words until the next sample outside the young heap. */
  intptr_t until_sample;
} heaptap_mutator;
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

/// What Rust's readers must be told of safety is in the words before it.
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
    config.after_includes = Some(format!("\n{}\n{MUTATOR}", version()));
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
        .with_src(root.join("src/abi/collector.rs"))
        .with_src(root.join("src/abi/stats.rs"))
        .generate()
        .expect("a header")
        .write(&mut text);
    let text = String::from_utf8(text).expect("UTF-8");
    with_block_comments(&without_safety(&text))
}

#[test]
fn the_header_is_what_the_sources_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(HEADER);
    let generated = generate();
    if std::env::var_os("HEAPTAP_UPDATE_HEADER").is_some() {
        std::fs::write(&path, &generated).expect("writing the header");
    }
    let committed = std::fs::read_to_string(&path).expect("reading the header");
    assert!(
        committed == generated,
        "{HEADER} differs from src/abi; HEAPTAP_UPDATE_HEADER=1 cargo test --test header"
    );
}
