//! The tables of environment variables in `docs/` are what the table says.
//!
//! `HEAPTAP_UPDATE_DOCS=1 cargo test -p heaptap-settings --test docs` writes them
//! anew, between their markers.

use std::fmt::Write as _;
use std::path::Path;

use heaptap_settings::{Inheritance, Reader, VARIABLES, Variable};

const BEGIN: &str = "<!-- Generated from crates/settings: begin -->\n";
const END: &str = "<!-- Generated from crates/settings: end -->\n";

fn quoted(names: impl IntoIterator<Item = &'static str>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(" or ")
}

/// For programs that the library attaches itself to: everything.
fn attached() -> String {
    let mut table = String::from(
        "| variable | value | default | meaning | `heaptap run` | children see it |\n\
         |---|---|---|---|---|---|\n",
    );
    for variable in &VARIABLES {
        let option =
            variable.option.map(|option| format!("`{}`", option.usage())).unwrap_or_default();
        let children = match variable.children {
            Inheritance::Always => "yes",
            Inheritance::WithFollow => "with `--follow`",
        };
        let Variable { syntax, default, meaning, .. } = variable;
        let names = quoted(variable.names());
        let _ = writeln!(
            table,
            "| {names} | {syntax} | {default} | {meaning} | {option} | {children} |"
        );
    }
    table
}

/// For hosts that call `heaptap_tracer_start_from_env`.
fn embedded() -> String {
    let mut table = String::from("| variable | value | meaning |\n|---|---|---|\n");
    for variable in VARIABLES.iter().filter(|variable| variable.reader == Reader::Library) {
        let Variable { syntax, meaning, .. } = variable;
        let _ = writeln!(table, "| {} | {syntax} | {meaning} |", quoted(variable.names()));
    }
    table
}

/// Compares the text between the markers of a document, or writes it.
fn compare(document: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let text = std::fs::read_to_string(&path).expect("the document");
    let (before, rest) = text.split_once(BEGIN).expect("a marker where the table begins");
    let (committed, after) = rest.split_once(END).expect("a marker where the table ends");
    if std::env::var_os("HEAPTAP_UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).expect("writing");
        return;
    }
    assert!(
        committed == table,
        "{document} differs from crates/settings; \
         HEAPTAP_UPDATE_DOCS=1 cargo test -p heaptap-settings --test docs"
    );
}

#[test]
fn the_guide_to_ocaml_has_every_variable() {
    compare("docs/ocaml.md", &attached());
}

#[test]
fn the_guide_to_embedding_has_those_of_every_host() {
    compare("docs/embedding.md", &embedded());
}
