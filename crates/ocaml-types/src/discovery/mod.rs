//! Finding the files of a program's units, and the compiler that reads them.
//!
//! - `surroundings`: what of the machine and the user is looked at.
//! - `compilers`: the program's compiler among those that are installed.
//! - `places`: where files of units may be.
//! - `search`: looking there, within limits.
//! - `unit_names`: units, their files and what snapshots call them.
//! - `choice`: which of the files of a unit are the program's.
//!
//! Paths come from the snapshot and the program's file, which are hostile. They lead to reading
//! names of directories, and files that belong to the user or to root; never to running anything.

mod choice;
mod compilers;
mod places;
mod search;
mod surroundings;
mod unit_names;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub(crate) use choice::Chosen;
pub use choice::Origin;
use choice::{Build, Expected};
pub(crate) use compilers::Compiler;
use places::Places;
use search::{Limits, Search};
pub use surroundings::Surroundings;
pub(crate) use unit_names::readable;

use crate::compiler::TypesError;
use crate::program::ProgramFile;
use crate::script::OcamlVersion;

/// What a snapshot says about its program.
pub(crate) struct Program<'a> {
    /// The program's file.
    pub(crate) path: Option<&'a Path>,
    /// Such as `OCaml 4.14.1 native`.
    pub(crate) runtime: &'a str,
    /// The modules with variables, as snapshots name them.
    pub(crate) modules: &'a BTreeSet<&'a str>,
    /// When the snapshot was taken.
    pub(crate) taken: Option<SystemTime>,
}

/// What was found.
pub(crate) struct Discovered {
    pub(crate) compiler: Compiler,
    /// The files of each unit.
    pub(crate) units: BTreeMap<String, Chosen>,
    /// Directories of packages.
    pub(crate) packages: Vec<PathBuf>,
    /// What a person should know.
    pub(crate) notes: Vec<String>,
}

/// Looks for the files of a program's units. `ocaml`: the compiler's toplevel, if it is known.
///
/// # Errors
/// There is no such compiler, or no file of any module.
pub(crate) fn discover(
    program: &Program<'_>,
    ocaml: Option<&Path>,
    around: &Surroundings,
) -> Result<Discovered, TypesError> {
    let file = program.path.and_then(ProgramFile::read);
    let file_is_there = file.is_some();
    let file = file.unwrap_or_default();
    let version = program.runtime.split(' ').nth(1).unwrap_or_default();
    let compiler = match ocaml {
        Some(ocaml) => named(ocaml)?,
        None => compilers::find(version, &file.units, around).map_err(TypesError)?,
    };
    check_version(&compiler)?;
    let own = compilers::own_units(&compiler);
    let wanted: BTreeSet<String> =
        file.units.names().filter(|name| !own.contains(*name)).map(str::to_owned).collect();
    // A file that was written later is of another build, and says nothing about this one.
    let is_rebuilt =
        matches!((file.modified, program.taken), (Some(file), Some(taken)) if file > taken);
    let mut search = Search::new(around, (!wanted.is_empty()).then_some(&wanted), Limits::USUAL);
    let packages = compilers::packages(&compiler, around);
    let places =
        Places { program: program.path, sources: &file.sources, around, packages: &packages };
    let expected = Expected {
        units: &file.units,
        modules: program.modules,
        built: file.modified.or(program.taken),
        is_rebuilt,
        packages: &packages,
    };
    places.search(&mut search, &|search| expected.are_found(search, &own));
    let build = expected.choose(&search, &own);
    let notes = notes(program, &build, &search, is_rebuilt, file_is_there);
    if build.units.is_empty() && expected.any_is_missing(&own) {
        return Err(TypesError(nothing(program, &notes)));
    }
    Ok(Discovered { compiler, units: build.units, packages, notes })
}

/// A compiler that was named.
fn named(ocaml: &Path) -> Result<Compiler, TypesError> {
    compilers::compiler(ocaml).ok_or_else(|| {
        let ocaml = ocaml.display();
        TypesError(format!(
            "--ocaml {ocaml}: no such program, or {ocaml} -vnum prints no version: is it OCaml's toplevel?"
        ))
    })
}

fn check_version(compiler: &Compiler) -> Result<(), TypesError> {
    let known = OcamlVersion::OLDEST..=OcamlVersion::NEWEST;
    match OcamlVersion::parse(&compiler.version) {
        Some(version) if known.contains(&version) => Ok(()),
        _ => Err(TypesError(format!(
            "{} is OCaml {}; types are known of 4.12 to {}",
            compiler.ocaml.display(),
            compiler.version,
            OcamlVersion::NEWEST
        ))),
    }
}

fn notes(
    program: &Program<'_>,
    build: &Build,
    search: &Search<'_>,
    is_rebuilt: bool,
    file_is_there: bool,
) -> Vec<String> {
    let mut notes = Vec::new();
    let path = program.path.map(Path::display);
    if let Some(path) = path {
        if is_rebuilt {
            notes.push(format!(
                "{path} was written after the snapshot was taken: names and types of its modules are \
                 guessed, they may be of another build"
            ));
        } else if !file_is_there {
            notes.push(format!(
                "{path} cannot be read, so that nothing says whether the files are of this build: \
                 names and types of its modules are guessed"
            ));
        }
    }
    if let Some((unit, place)) = build.other_builds.first() {
        let more = match build.other_builds.len() - 1 {
            0 => String::new(),
            more => format!(", and those of {more} more"),
        };
        notes.push(format!(
            "the files of {} in {} are of another build{more}: compile the program again, or name \
             the directory of its build by --types DIRECTORY",
            readable(unit),
            place.display()
        ));
    }
    if let Some((unit, place)) = build.other_code.first() {
        notes.push(format!(
            "the code of {} in {} was compiled again: its names and types are guessed",
            readable(unit),
            place.display()
        ));
    }
    if let Some(path) = &search.distrusted {
        notes.push(format!(
            "{} belongs to another user, or others may write it: it is read only if --types names \
             its directory",
            path.display()
        ));
    }
    if search.is_cut_short {
        notes.push(
            "not everything was searched: it took too long; name the directory of the build by \
             --types DIRECTORY"
                .to_owned(),
        );
    }
    notes
}

/// Why nothing was found, and what to do.
fn nothing(program: &Program<'_>, notes: &[String]) -> String {
    let path = program.path.map_or_else(|| "the program".into(), |path| path.display().to_string());
    let why = if notes.is_empty() {
        "compile with -bin-annot (dune does), or name the directory of the compiled files by --types DIRECTORY"
            .to_owned()
    } else {
        notes.join("; ")
    };
    format!(
        "no .cmt or .cmi of {path} found near it, at its sources, in a _build or among packages; {why}"
    )
}

/// Where files of the compiler are, as far as their path says.
pub(crate) fn origin(place: &Path, packages: &[PathBuf]) -> Origin {
    Origin::of(place, packages)
}
