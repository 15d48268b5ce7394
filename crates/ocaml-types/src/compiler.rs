//! Running the program's own compiler on the script.
//!
//! The toplevel finds modules in the current directory first, and the user's may be called as
//! the compiler's are. So it runs in an empty directory, which only this user can enter.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{fmt, fs};

use heaptap_graph::TypeTable;

use crate::document::{Document, SkippedFile};
use crate::script::{OcamlVersion, for_version};

/// Where the types of a program come from.
#[derive(Clone, Copy, Debug)]
pub struct CompilerFiles<'a> {
    /// Directories with `.cmt` and `.cmi` files, also in all directories below; one at least.
    pub directories: &'a [PathBuf],
    /// The `ocaml` of the compiler that the program was built with.
    pub ocaml: &'a Path,
}

/// Why no types could be read, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypesError(pub(crate) String);

impl fmt::Display for TypesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TypesError {}

/// The types that were found.
pub(crate) struct DeclaredTypes {
    pub(crate) table: TypeTable,
    /// Files that could not be used.
    pub(crate) skipped: Vec<SkippedFile>,
}

impl CompilerFiles<'_> {
    /// Reads the types of these modules of a program.
    pub(crate) fn read<'m>(
        &self,
        modules: impl Iterator<Item = &'m str>,
    ) -> Result<DeclaredTypes, TypesError> {
        let directories = self.absolute()?;
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
        let output = Command::new(self.ocaml)
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
    fn absolute(&self) -> Result<Vec<PathBuf>, TypesError> {
        let absolute = |path: &PathBuf| {
            let trouble =
                |reason: &str| TypesError(format!("--types {}: {reason}", path.display()));
            let found = fs::canonicalize(path).map_err(|error| match error.kind() {
                ErrorKind::NotFound => trouble("no such directory"),
                _ => trouble(&error.to_string()),
            })?;
            if found.is_dir() { Ok(found) } else { Err(trouble("not a directory")) }
        };
        self.directories.iter().map(absolute).collect()
    }

    fn version(&self) -> Result<OcamlVersion, TypesError> {
        let output = Command::new(self.ocaml)
            .arg("-vnum")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| self.not_run(&error))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let ocaml = self.ocaml.display();
        let version = OcamlVersion::parse(&text).ok_or_else(|| {
            TypesError(format!("{ocaml} -vnum prints no version: is it OCaml's toplevel?"))
        })?;
        if (OcamlVersion::OLDEST..=OcamlVersion::NEWEST).contains(&version) {
            return Ok(version);
        }
        Err(TypesError(format!(
            "{ocaml} is OCaml {}; --types knows the compiler libraries of 4.12 to 5.3",
            text.trim()
        )))
    }

    fn not_run(&self, error: &std::io::Error) -> TypesError {
        let ocaml = self.ocaml.display();
        TypesError(match error.kind() {
            ErrorKind::NotFound if self.ocaml == OsStr::new("ocaml") => {
                "--types: there is no `ocaml` on the PATH; types are read by the compiler that \
                 built the program: put it there, or name it by --ocaml PROGRAM"
                    .to_owned()
            }
            ErrorKind::NotFound => format!("--ocaml {ocaml}: no such program"),
            _ => format!("--ocaml {ocaml}: {error}"),
        })
    }

    fn table(&self, output: &Output) -> Result<DeclaredTypes, TypesError> {
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
            return Err(TypesError(format!(
                "{ocaml} could not read the types ({}): {said}{what_to_do}",
                output.status
            )));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let wrong = |error: String| TypesError(format!("{ocaml} printed types wrongly: {error}"));
        let document = Document::parse(&text).map_err(wrong)?;
        self.check_document(&document)?;
        let skipped = document.skipped.clone();
        let table = document.into_table().map_err(wrong)?;
        Ok(DeclaredTypes { table, skipped })
    }

    /// Says why there are no types, if there are none.
    fn check_document(&self, document: &Document) -> Result<(), TypesError> {
        if document.flambda {
            return Err(TypesError(format!(
                "{} is a compiler with flambda, which lays out the variables of modules in an \
                 order that its files do not tell; --types needs one without it",
                self.ocaml.display()
            )));
        }
        let directories: Vec<_> =
            self.directories.iter().map(|path| path.display().to_string()).collect();
        let directories = directories.join(", ");
        if document.units_found == 0 {
            return Err(TypesError(format!(
                "--types {directories}: no .cmt or .cmi files there; compile with -bin-annot \
                 (dune does) and name the directory of the compiled files, such as _build"
            )));
        }
        if document.unit_count() == 0 {
            let reason = document.skipped.first().map_or_else(String::new, |skipped| {
                format!("; {}: {}", skipped.file, skipped.reason)
            });
            return Err(TypesError(format!(
                "--types {directories}: no file describes a module of this program{reason}"
            )));
        }
        Ok(())
    }
}

fn temporary(path: &Path, error: &std::io::Error) -> TypesError {
    TypesError(format!(
        "{}: {error}; --types needs a temporary directory, which TMPDIR may name",
        path.display()
    ))
}
