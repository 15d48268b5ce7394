//! Running the program's own compiler on the script.
//!
//! The toplevel finds modules in the current directory first, and the user's may be called as
//! the compiler's are. So it runs in an empty directory, which only this user can enter.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use clap::Args;
use heaptap_graph::TypeTable;

use super::document::{Document, SkippedFile};
use super::script::{OcamlVersion, for_version};
use crate::exit_status::Failure;

/// Where types come from.
#[derive(Args, Clone, Debug)]
pub(crate) struct TypeOptions {
    /// Name the OCaml types of blocks, from the .cmt and .cmi files in this directory and all
    /// directories below, such as dune's _build; may be given several times
    #[arg(long, value_name = "DIRECTORY")]
    types: Vec<PathBuf>,
    /// The `ocaml` of the compiler that the program was built with
    #[arg(long, value_name = "PROGRAM", default_value = "ocaml", requires = "types")]
    ocaml: PathBuf,
}

/// The types that were found.
pub(super) struct DeclaredTypes {
    pub(super) table: TypeTable,
    /// Files that could not be used.
    pub(super) skipped: Vec<SkippedFile>,
}

impl TypeOptions {
    /// Whether types are asked for.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.types.is_empty()
    }

    /// Says what is missing if rows are types, and where types come from is not given.
    pub(crate) fn check(&self, rows_are_types: bool) -> Result<(), Failure> {
        if rows_are_types && !self.is_wanted() {
            return Err(Failure::Trouble(
                "--by type: types come from the program's .cmt files; name their directory by \
                 --types DIRECTORY, or see --by block"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Reads the types of these modules of a program.
    pub(super) fn read<'m>(
        &self,
        modules: impl Iterator<Item = &'m str>,
    ) -> Result<DeclaredTypes, Failure> {
        let directories = self.directories()?;
        let version = self.version()?;
        let place = tempfile::Builder::new()
            .prefix("heaptap-types-")
            .tempdir()
            .map_err(|error| temporary(&std::env::temp_dir(), &error))?;
        let write = |name: &str, text: &str| {
            let path = place.path().join(name);
            fs::write(&path, text).map_err(|error| temporary(&path, &error)).map(|()| path)
        };
        let script = write("types.ml", &for_version(version))?;
        // A name with a line break would be two names.
        let names: Vec<&str> = modules.filter(|name| !name.contains('\n')).collect();
        let names = write("modules", &names.join("\n"))?;
        let empty = place.path().join("empty");
        fs::create_dir(&empty).map_err(|error| temporary(&empty, &error))?;
        let output = Command::new(&self.ocaml)
            .args(["-w", "-a", "-noinit", "-I", "+compiler-libs", "ocamlcommon.cma"])
            .arg(&script)
            .arg(&names)
            .args(&directories)
            .current_dir(&empty)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| self.not_run(&error))?;
        self.table(&output)
    }

    /// The directories as absolute paths.
    fn directories(&self) -> Result<Vec<PathBuf>, Failure> {
        let absolute = |path: &PathBuf| {
            let trouble =
                |reason: &str| Failure::Trouble(format!("--types {}: {reason}", path.display()));
            let found = fs::canonicalize(path).map_err(|error| match error.kind() {
                ErrorKind::NotFound => trouble("no such directory"),
                _ => trouble(&error.to_string()),
            })?;
            if found.is_dir() { Ok(found) } else { Err(trouble("not a directory")) }
        };
        self.types.iter().map(absolute).collect()
    }

    fn version(&self) -> Result<OcamlVersion, Failure> {
        let output = Command::new(&self.ocaml)
            .arg("-vnum")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| self.not_run(&error))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let ocaml = self.ocaml.display();
        let version = OcamlVersion::parse(&text).ok_or_else(|| {
            Failure::Trouble(format!("{ocaml} -vnum prints no version: is it OCaml's toplevel?"))
        })?;
        if (OcamlVersion::OLDEST..=OcamlVersion::NEWEST).contains(&version) {
            return Ok(version);
        }
        Err(Failure::Trouble(format!(
            "{ocaml} is OCaml {}; --types knows the compiler libraries of 4.12 to 5.3",
            text.trim()
        )))
    }

    fn not_run(&self, error: &std::io::Error) -> Failure {
        let ocaml = self.ocaml.display();
        Failure::Trouble(match error.kind() {
            ErrorKind::NotFound if self.ocaml == OsStr::new("ocaml") => {
                "--types: there is no `ocaml` on the PATH; types are read by the compiler that \
                 built the program: put it there, or name it by --ocaml PROGRAM"
                    .to_owned()
            }
            ErrorKind::NotFound => format!("--ocaml {ocaml}: no such program"),
            _ => format!("--ocaml {ocaml}: {error}"),
        })
    }

    fn table(&self, output: &Output) -> Result<DeclaredTypes, Failure> {
        let ocaml = self.ocaml.display();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim();
            let what_to_do = if said.contains("ocamlcommon.cma") {
                "; the compiler's libraries are missing: install them (ocaml-compiler-libs, or \
                 libcompiler-libs-ocaml-dev)"
            } else {
                ""
            };
            return Err(Failure::Trouble(format!(
                "{ocaml} could not read the types ({}): {said}{what_to_do}",
                output.status
            )));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let wrong =
            |error: String| Failure::Trouble(format!("{ocaml} printed types wrongly: {error}"));
        let document = Document::parse(&text).map_err(wrong)?;
        self.check_document(&document)?;
        let skipped = document.skipped.clone();
        let table = document.into_table().map_err(wrong)?;
        Ok(DeclaredTypes { table, skipped })
    }

    /// Says why there are no types, if there are none.
    fn check_document(&self, document: &Document) -> Result<(), Failure> {
        if document.flambda {
            return Err(Failure::Trouble(format!(
                "{} is a compiler with flambda, which lays out the variables of modules in an \
                 order that its files do not tell; --types needs one without it",
                self.ocaml.display()
            )));
        }
        let directories: Vec<_> =
            self.types.iter().map(|path| path.display().to_string()).collect();
        let directories = directories.join(", ");
        if document.units_found == 0 {
            return Err(Failure::Trouble(format!(
                "--types {directories}: no .cmt or .cmi files there; compile with -bin-annot \
                 (dune does) and name the directory of the compiled files, such as _build"
            )));
        }
        if document.unit_count() == 0 {
            let reason = document.skipped.first().map_or_else(String::new, |skipped| {
                format!("; {}: {}", skipped.file, skipped.reason)
            });
            return Err(Failure::Trouble(format!(
                "--types {directories}: no file describes a module of this program{reason}"
            )));
        }
        Ok(())
    }
}

fn temporary(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Trouble(format!(
        "{}: {error}; --types needs a temporary directory, which TMPDIR may name",
        path.display()
    ))
}
