//! The names of environment variables are spelled in the table and nowhere else.
//!
//! Code says `settings::RATE.name`, so that a variable cannot exist without its
//! documentation. Tests may spell names out: they check that the names stay.

use std::fs;
use std::path::{Path, PathBuf};

use heaptap_settings::{VARIABLES, Variable};

/// Rust sources of what is shipped: below `src` and `crates/*/src`, this crate's
/// own and files of tests excepted.
fn sources() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own.join("../..").canonicalize().expect("the checkout");
    let mut folders = vec![root.join("src")];
    for package in fs::read_dir(root.join("crates")).expect("crates") {
        let package = package.expect("a package").path();
        if !own.ends_with(package.file_name().expect("a name")) {
            folders.push(package.join("src"));
        }
    }
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if is_shipped(&path) {
                files.push(path);
            }
        }
    }
    files
}

fn is_shipped(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.ends_with(".rs") && name != "tests.rs" && !name.ends_with("_tests.rs")
}

/// The string literals of `source` that have the form of a variable's name.
fn names_in(source: &str) -> impl Iterator<Item = &str> {
    source.split('"').filter(|text| {
        let text = text.strip_prefix("HEAPTAP").or_else(|| text.strip_prefix("MEMTRACE"));
        text.is_some_and(|rest| {
            rest.is_empty()
                || rest.starts_with('_')
                    && rest.bytes().all(|b| b == b'_' || b.is_ascii_uppercase())
        })
    })
}

/// Without comments, and without the tests at a file's end.
fn shipped(source: &str) -> String {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn names_are_spelled_in_the_table_only() {
    let known: Vec<_> = VARIABLES.iter().flat_map(Variable::names).collect();
    let files = sources();
    assert!(files.len() > 100, "{} files: the search looks in the wrong folder", files.len());
    let mut wrong = Vec::new();
    for path in files {
        let source = fs::read_to_string(&path).expect("a source");
        for name in names_in(&shipped(&source)) {
            // Between a test and the process it starts.
            if name.starts_with("HEAPTAP_TEST_") {
                continue;
            }
            let advice =
                if known.contains(&name) { "use its constant" } else { "not in the table" };
            wrong.push(format!("{}: \"{name}\": {advice}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_search_finds_what_it_is_for() {
    let source = "let a = var(\"HEAPTAP_NEW\"); let b = c\"MEMTRACE\"; let c = \"HEAPTAP is\";";
    assert_eq!(names_in(source).collect::<Vec<_>>(), ["HEAPTAP_NEW", "MEMTRACE"]);
    let tests = "let a = 1;\n// \"HEAPTAP\"\n#[cfg(test)]\nmod tests {\n \"HEAPTAP\"";
    assert_eq!(names_in(&shipped(tests)).count(), 0);
}
