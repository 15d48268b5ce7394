//! How much of what is reachable in a heap has types, and from which files.

use heaptap_graph::{TypeCoverage, TypeShare};
use serde::Serialize;

/// Blocks and their words, without headers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TypedShare {
    pub blocks: u64,
    pub words: u64,
}

impl From<TypeShare> for TypedShare {
    fn from(share: TypeShare) -> TypedShare {
        TypedShare { blocks: share.blocks, words: share.words }
    }
}

/// How much of what is reachable in a heap has types, and what was in the way.
#[derive(Clone, Debug, Serialize)]
pub struct TypeFigures {
    /// The type is declared, and the block looks like it.
    declared: TypedShare,
    /// The tag says what it is: a string, a float, a closure.
    by_tag: TypedShare,
    guessed: TypedShare,
    unknown: TypedShare,
    pub notes: Vec<String>,
}

impl TypeFigures {
    pub fn new(coverage: &TypeCoverage, notes: Vec<String>) -> TypeFigures {
        TypeFigures {
            declared: coverage.declared.into(),
            by_tag: coverage.by_tag.into(),
            guessed: coverage.guessed.into(),
            unknown: coverage.unknown.into(),
            notes,
        }
    }

    /// The shares, with their names.
    pub fn shares(&self) -> [(&'static str, TypedShare); 4] {
        [
            ("declared", self.declared),
            ("by tag", self.by_tag),
            ("guessed", self.guessed),
            ("unknown", self.unknown),
        ]
    }
}

/// A place where files of modules are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TypePlace {
    pub directory: String,
    /// `dune`, `ocamlbuild` or `package`; nothing if it is not known.
    pub built_by: Option<&'static str>,
    /// How many of the modules have their files there.
    pub modules: usize,
}

/// The files of a program's modules, which were looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TypeFiles {
    /// What was found, or why nothing was, in one line.
    pub text: String,
    /// How many modules have variables that hold blocks.
    modules: usize,
    /// How many of them have types.
    typed: usize,
    places: Vec<TypePlace>,
    /// Modules of which there is only the `.cmi`: exported variables have names.
    without_types: Vec<String>,
    /// Modules of which there is no file.
    without_files: Vec<String>,
    /// The compiler that has read the files.
    #[serde(skip_serializing_if = "Option::is_none")]
    compiler: Option<String>,
}

/// More names are counted.
const MOST_NAMES: usize = 5;

/// More places are counted.
const MOST_PLACES: usize = 3;

impl TypeFiles {
    /// Nothing was found.
    pub fn none(why: &str) -> TypeFiles {
        TypeFiles {
            text: format!("none: {why}"),
            modules: 0,
            typed: 0,
            places: Vec::new(),
            without_types: Vec::new(),
            without_files: Vec::new(),
            compiler: None,
        }
    }

    /// How many modules have types, of how many; those that have none are named.
    pub fn found(
        [typed, modules]: [usize; 2],
        places: Vec<TypePlace>,
        without_types: Vec<String>,
        without_files: Vec<String>,
        compiler: String,
    ) -> TypeFiles {
        let mut text = format!("of {typed} of {modules} modules");
        if !places.is_empty() {
            let place = |place: &TypePlace| match place.built_by {
                Some(built_by) => format!("{} ({built_by})", place.directory),
                None => place.directory.clone(),
            };
            text += &format!(", from {}", some(places.iter().map(place), MOST_PLACES));
        }
        for (what, names) in [("only .cmi", &without_types), ("no .cmt or .cmi", &without_files)] {
            if !names.is_empty() {
                text += &format!("; {what}: {}", some(names.iter().cloned(), MOST_NAMES));
            }
        }
        let compiler = Some(compiler);
        TypeFiles { text, modules, typed, places, without_types, without_files, compiler }
    }
}

/// The first of some names, and how many more there are.
fn some(names: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let first = names.take(most).collect::<Vec<_>>().join(", ");
    if more == 0 { first } else { format!("{first} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_one_line() {
        let place = |directory: &str, built_by| TypePlace {
            directory: directory.into(),
            built_by,
            modules: 1,
        };
        let places =
            vec![place("_build/default/bin/.main.eobjs", Some("dune")), place("src", None)];
        let names = |names: &str| names.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let files = TypeFiles::found(
            [6, 14],
            places,
            names("Foo Bar"),
            names("A B C D E F"),
            String::new(),
        );
        assert_eq!(
            files.text,
            "of 6 of 14 modules, from _build/default/bin/.main.eobjs (dune), src; only .cmi: Foo, Bar; \
             no .cmt or .cmi: A, B, C, D, E and 1 more"
        );
    }
}
