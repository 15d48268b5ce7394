//! The tables of environment variables and of `heaptap run`'s options in `docs/` are
//! those of the table.
//!
//! `HEAPTAP_UPDATE_DOCS=1 cargo test -p heaptap-settings --test docs` writes them
//! anew, between their markers.

use std::fmt::Write as _;
use std::path::Path;

use heaptap_settings::{Inheritance, OCAML, Reader, Syntax, VARIABLES, Variable};

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

/// The options of `heaptap run`.
fn options() -> String {
    let mut table = String::from("| option | meaning | default |\n|---|---|---|\n");
    for variable in &VARIABLES {
        let Some(option) = variable.option else { continue };
        let range = match variable.syntax {
            Syntax::File | Syntax::Word(_) | Syntax::Flag => String::new(),
            range => format!(" ({range})"),
        };
        let default = match (option.default, option.turns_off) {
            (Some(default), _) => format!("`{default}`"),
            (None, Some(_)) => format!("`{}=1`", variable.name),
            (None, None) => variable.default.to_owned(),
        };
        let meaning = option.turns_off.unwrap_or(variable.meaning);
        let _ = writeln!(table, "| `{}` | {meaning}{range} | {default} |", option.usage());
    }
    table
}

/// Compares a document with the tables that belong between its markers, or writes
/// them.
fn compare(document: &str, tables: &[(&str, String)]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let committed = std::fs::read_to_string(&path).expect("the document");
    let mut generated = committed.clone();
    for (name, table) in tables {
        let begin = format!("<!-- {name} from crates/settings: begin -->\n");
        let end = format!("<!-- {name} from crates/settings: end -->\n");
        let (before, rest) = generated.split_once(&begin).expect("where the table begins");
        let (_, after) = rest.split_once(&end).expect("where the table ends");
        generated = format!("{before}{begin}{table}{end}{after}");
    }
    if std::env::var_os("HEAPTAP_UPDATE_DOCS").is_some() {
        std::fs::write(&path, generated).expect("writing");
        return;
    }
    assert!(
        committed == generated,
        "{document} differs from crates/settings; \
         HEAPTAP_UPDATE_DOCS=1 cargo test -p heaptap-settings --test docs"
    );
}

#[test]
fn the_guide_to_ocaml_has_every_option_and_variable() {
    compare("docs/ocaml.md", &[("Options", options()), ("Variables", attached())]);
}

#[test]
fn the_documents_name_the_supported_releases() {
    let supported = format!("{} {}", OCAML.name, OCAML.releases);
    for document in ["README.md", "docs/ocaml.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
        let text = std::fs::read_to_string(&path).expect("the document");
        let words: Vec<_> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(&supported), "{document} does not name {supported}");
    }
}

#[test]
fn the_guide_to_embedding_has_those_of_every_host() {
    compare("docs/embedding.md", &[("Variables", embedded())]);
}
