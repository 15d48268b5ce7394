//! The options `--types` and `--ocaml`: where the types of a program's blocks are read.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::Args;
use heaptap_graph::HeapGraph;
use heaptap_heap::MetaKey;
use heaptap_ocaml_types::{FoundFiles, Surroundings, TypeSource, TypeSummary, name_blocks};
use heaptap_report::figures::heap::types::{TypeFiles, TypePlace};

use crate::exit_status::Failure;

/// Where types come from.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TypeOptions {
    /// Where the OCaml types of blocks come from: `auto` looks for the program's .cmt and .cmi files where
    /// it was built, `none` leaves blocks without names, and a directory is searched with all directories
    /// below; may be given several times [default: auto]
    #[arg(long, value_name = "auto|none|DIRECTORY")]
    types: Vec<PathBuf>,
    /// The `ocaml` of the compiler that the program was built with [default: found by its version]
    #[arg(long, value_name = "PROGRAM")]
    ocaml: Option<PathBuf>,
}

/// What `--types` says.
enum Wish<'a> {
    Auto,
    None,
    Directories(&'a [PathBuf]),
}

/// The types that blocks were given as names.
#[derive(Default)]
pub(crate) struct NamedTypes {
    /// The types; `None` if there are none.
    pub(crate) summary: Option<TypeSummary>,
    /// The files that were looked for, if they were.
    pub(crate) files: Option<TypeFiles>,
}

impl TypeOptions {
    fn wish(&self) -> Wish<'_> {
        match self.types.as_slice() {
            [] => Wish::Auto,
            [only] if only == OsStr::new("auto") => Wish::Auto,
            [only] if only == OsStr::new("none") => Wish::None,
            directories => Wish::Directories(directories),
        }
    }

    /// Whether one of the options was given.
    pub(crate) fn is_given(&self) -> bool {
        !self.types.is_empty() || self.ocaml.is_some()
    }

    /// Whether blocks may get types.
    pub(crate) fn is_wanted(&self) -> bool {
        !matches!(self.wish(), Wish::None)
    }

    /// Says what is wrong with the options. `rows_are_types`: whether there is nothing to show without types.
    pub(crate) fn check(&self, rows_are_types: bool) -> Result<(), Failure> {
        if self.types.len() > 1
            && let Some(word) = self.types.iter().find(|word| is_word(word))
        {
            return Err(Failure::Trouble(format!(
                "--types {0}: give it alone; a directory of that name is ./{0}",
                word.display()
            )));
        }
        if rows_are_types && !self.is_wanted() {
            return Err(Failure::Trouble(
                "--by type: types come from the program's .cmt files; leave out --types none, or \
                 see --by block"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Gives blocks and variables their types as names, if these are wanted. What was looked for and not found is no
    /// failure.
    pub(crate) fn name_blocks(&self, graph: &mut HeapGraph) -> Result<NamedTypes, Failure> {
        match self.wish() {
            Wish::None => Ok(NamedTypes::default()),
            Wish::Directories(directories) => {
                let ocaml = self.ocaml.as_deref().unwrap_or(Path::new("ocaml"));
                let source = TypeSource::Directories { directories, ocaml };
                let summary = name_blocks(graph, source);
                let summary = summary.map_err(|error| Failure::Trouble(error.to_string()))?;
                Ok(NamedTypes { summary: Some(summary), files: None })
            }
            Wish::Auto => {
                let runtime = graph.facts().meta(MetaKey::RUNTIME).unwrap_or_default();
                if !runtime.starts_with(b"OCaml") {
                    return Ok(NamedTypes::default());
                }
                Ok(self.find(graph))
            }
        }
    }

    fn find(&self, graph: &mut HeapGraph) -> NamedTypes {
        let around = Surroundings::of_process();
        let source = TypeSource::Found { ocaml: self.ocaml.as_deref(), around: &around };
        match name_blocks(graph, source) {
            Ok(summary) => {
                let files = summary.found.as_ref().map(|found| found_files(found, &around));
                NamedTypes { summary: Some(summary), files }
            }
            Err(error) => {
                let files = Some(TypeFiles::none(&error.to_string()));
                NamedTypes { summary: None, files }
            }
        }
    }
}

impl NamedTypes {
    /// Says why there are no types, if there are none and nothing else is to be shown.
    pub(crate) fn check(&self, rows_are_types: bool) -> Result<(), Failure> {
        match &self.files {
            Some(files) if rows_are_types && self.summary.is_none() => {
                Err(Failure::Trouble(format!("--by type: {}", files.text)))
            }
            _ => Ok(()),
        }
    }

    /// One line for a report that has no place for more.
    pub(crate) fn line(&self) -> Option<&str> {
        self.files.as_ref().map(|files| files.text.as_str())
    }
}

fn is_word(path: &Path) -> bool {
    path == OsStr::new("auto") || path == OsStr::new("none")
}

/// What was found, with directories as they are called from here.
fn found_files(found: &FoundFiles, around: &Surroundings) -> TypeFiles {
    let here = around.working_directory.as_deref();
    let place = |place: &heaptap_ocaml_types::FoundPlace| {
        let directory = here.and_then(|here| place.directory.strip_prefix(here).ok());
        let directory = directory.unwrap_or(&place.directory);
        let shown = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        TypePlace {
            directory: shown.to_string_lossy().into_owned(),
            built_by: place.origin.name(),
            modules: place.modules,
        }
    };
    TypeFiles::found(
        [found.typed, found.modules],
        found.places.iter().map(place).collect(),
        found.without_types.clone(),
        found.without_files.clone(),
        found.compiler.clone(),
    )
}
