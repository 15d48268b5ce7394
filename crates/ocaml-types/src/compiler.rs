//! Running the program's own compiler on the script.
//!
//! The toplevel finds modules in the current directory first, and the user's may be called as
//! the compiler's are. So it runs in an empty directory, which only this user can enter.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use std::{fmt, fs};

use heaptap_graph::TypeTable;

use crate::document::{Document, SkippedFile};
use crate::process;
use crate::script::{OcamlVersion, for_version};

/// The files that a compiler reads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TypeFiles<'a> {
    /// `.cmt` and `.cmi` files in these directories and all below, at least one.
    Directories(&'a [PathBuf]),
    /// These.
    Files(&'a [PathBuf]),
}

/// A run of the compiler's toplevel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompilerRun<'a> {
    pub(crate) files: TypeFiles<'a>,
    /// The `ocaml` of the compiler that the program was built with.
    pub(crate) ocaml: &'a Path,
    /// How long it may take.
    pub(crate) limit: Option<Duration>,
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

impl CompilerRun<'_> {
    /// Reads the types of these modules of a program.
    pub(crate) fn read<'m>(
        &self,
        modules: impl Iterator<Item = &'m str>,
    ) -> Result<DeclaredTypes, TypesError> {
        self.table(&self.print(self.version()?, modules)?, &BTreeSet::new())
    }

    /// The document that the compiler prints about these modules.
    pub(crate) fn print<'m>(
        &self,
        version: OcamlVersion,
        modules: impl Iterator<Item = &'m str>,
    ) -> Result<String, TypesError> {
        let place = tempfile::Builder::new()
            .prefix("heaptap-types-")
            .tempdir()
            .map_err(|error| temporary(&std::env::temp_dir(), &error))?;
        let write = |name: &str, text: &[u8]| {
            let path = place.path().join(name);
            fs::write(&path, text).map_err(|error| temporary(&path, &error)).map(|()| path)
        };
        let script = write("types.ml", for_version(version).as_bytes())?;
        // A name with a line break would be two names.
        let names: Vec<&str> = modules.filter(|name| !name.contains('\n')).collect();
        let names = write("modules", names.join("\n").as_bytes())?;
        let sources = match self.files {
            TypeFiles::Directories(directories) => absolute(directories)?,
            TypeFiles::Files(files) => {
                let lines = files.iter().map(|file| file.as_os_str().as_bytes());
                let lines: Vec<&[u8]> = lines.filter(|file| !file.contains(&b'\n')).collect();
                vec!["--files".into(), write("files", &lines.join(&b'\n'))?]
            }
        };
        let empty = place.path().join("empty");
        fs::create_dir(&empty).map_err(|error| temporary(&empty, &error))?;
        let mut command = Command::new(self.ocaml);
        command
            .args(["-w", "-a", "-noinit", "-I", "+compiler-libs", "ocamlcommon.cma"])
            .arg(&script)
            .arg(&names)
            .args(&sources)
            .current_dir(&empty);
        let output =
            process::output(&mut command, self.limit).map_err(|error| self.not_run(&error))?;
        self.text(&output)
    }

    fn version(&self) -> Result<OcamlVersion, TypesError> {
        let output = process::output(Command::new(self.ocaml).arg("-vnum"), self.limit)
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
            "{ocaml} is OCaml {}; --types knows the compiler libraries of {} to {}",
            text.trim(),
            OcamlVersion::OLDEST,
            OcamlVersion::NEWEST
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
            ErrorKind::TimedOut => format!(
                "{ocaml} took too long to read the types; name the directory of the build by --types \
                 DIRECTORY, which has no limit"
            ),
            _ => format!("--ocaml {ocaml}: {error}"),
        })
    }

    /// What it printed, if it ended well.
    fn text(&self, output: &Output) -> Result<String, TypesError> {
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
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The types in a document. `doubted`: modules whose files may be of another build.
    pub(crate) fn table(
        &self,
        text: &str,
        doubted: &BTreeSet<String>,
    ) -> Result<DeclaredTypes, TypesError> {
        let ocaml = self.ocaml.display();
        let wrong = |error: String| TypesError(format!("{ocaml} printed types wrongly: {error}"));
        let document = Document::parse(text).map_err(wrong)?;
        self.check_document(&document)?;
        let skipped = document.skipped.clone();
        let table = document.into_table(doubted).map_err(wrong)?;
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
        let TypeFiles::Directories(directories) = self.files else { return Ok(()) };
        let directories: Vec<_> =
            directories.iter().map(|path| path.display().to_string()).collect();
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

/// The directories as absolute paths.
fn absolute(directories: &[PathBuf]) -> Result<Vec<PathBuf>, TypesError> {
    let absolute = |path: &PathBuf| {
        let trouble = |reason: &str| TypesError(format!("--types {}: {reason}", path.display()));
        let found = fs::canonicalize(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => trouble("no such directory"),
            _ => trouble(&error.to_string()),
        })?;
        if found.is_dir() { Ok(found) } else { Err(trouble("not a directory")) }
    };
    directories.iter().map(absolute).collect()
}

fn temporary(path: &Path, error: &std::io::Error) -> TypesError {
    TypesError(format!(
        "{}: {error}; --types needs a temporary directory, which TMPDIR may name",
        path.display()
    ))
}
