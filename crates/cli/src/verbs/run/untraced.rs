//! Why nothing was traced, as far as it is known here.

use std::collections::BTreeMap;
use std::ffi::OsString;

use heaptap_settings::supported_runtimes;

use super::journal::Journal;
use crate::text::escape;

/// The most names of programs in a message.
const MOST_NAMED: usize = 5;

/// The message for a run without a trace, unless the library has printed one. `only` are the
/// names that were asked for.
pub(super) fn message(program: &str, only: &[OsString], journal: &Journal) -> Option<String> {
    if journal.refused {
        return None;
    }
    if journal.lost {
        let directory = std::env::temp_dir();
        return Some(format!(
            "there is no summary: what was traced could not be written to {}",
            escape::path(&directory)
        ));
    }
    if !only.is_empty() {
        return Some(format!(
            "nothing was traced: no traceable program called {} was started; {}",
            names(only, " or "),
            seen(journal)
        ));
    }
    let supported = supported_runtimes();
    if let Some(wrapper) = journal.wrappers.last() {
        return Some(format!(
            "nothing was traced: {} started no program that heaptap knows ({supported}, \
             dynamically linked)",
            escape::path(wrapper.as_ref())
        ));
    }
    Some(format!(
        "{program} was not traced: it is not a program that heaptap knows ({supported}, dynamically \
         linked), nor did it start one in this root directory and with this environment"
    ))
}

/// The programs that could have been traced.
fn seen(journal: &Journal) -> String {
    let mut times: BTreeMap<&OsString, usize> = BTreeMap::new();
    for name in journal.passed.iter().chain(&journal.wrappers) {
        *times.entry(name).or_default() += 1;
    }
    if times.is_empty() {
        return "there was none of any name".into();
    }
    let shown = |(name, times): (&&OsString, &usize)| match times {
        1 => escape::path(name.as_ref()).to_string(),
        _ => format!("{} ({times} times)", escape::path(name.as_ref())),
    };
    let more = if times.len() > MOST_NAMED { ", …" } else { "" };
    let names: Vec<String> = times.iter().take(MOST_NAMED).map(shown).collect();
    format!("there were {}{more}", names.join(", "))
}

fn names(names: &[OsString], between: &str) -> String {
    let names: Vec<String> =
        names.iter().map(|name| escape::path(name.as_ref()).to_string()).collect();
    names.join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_given_once() {
        let refused = Journal { refused: true, ..Journal::default() };
        assert_eq!(message("x", &[], &refused), None);
        let lost = Journal { lost: true, ..Journal::default() };
        assert!(message("x", &[], &lost).unwrap().starts_with("there is no summary"));
        let unknown = message("x", &[], &Journal::default()).unwrap();
        assert!(unknown.starts_with("x was not traced: it is not a program"), "{unknown}");
    }

    #[test]
    fn a_wrapper_without_a_program_is_named() {
        let journal =
            Journal { wrappers: vec!["opam".into(), "dune".into()], ..Journal::default() };
        let message = message("opam", &[], &journal).unwrap();
        assert!(message.starts_with("nothing was traced: dune started no program"), "{message}");
    }

    #[test]
    fn names_that_did_not_occur_are_told_from_those_that_did() {
        let passed = ["dune", "ocamlc.opt", "ocamlc.opt"].map(OsString::from).to_vec();
        let only = ["a".into(), "b".into()];
        let journal = Journal { passed, ..Journal::default() };
        assert_eq!(
            message("dune", &only, &journal).unwrap(),
            "nothing was traced: no traceable program called a or b was started; there were dune, \
             ocamlc.opt (2 times)"
        );
        let none = message("dune", &only, &Journal::default()).unwrap();
        assert!(none.ends_with("there was none of any name"), "{none}");
    }
}
