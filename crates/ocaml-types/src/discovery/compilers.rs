//! Finding the compiler that a program was built with.
//!
//! A compiler that is found is run. So only those count that the user would run anyway, on the
//! `PATH`, or that stand where compilers are installed, and that belong to the user or to root.
//! No path that a program or a snapshot names is run for that reason.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::search::interface_digest;
use super::surroundings::Surroundings;
use super::unit_names::unit_of_stem;
use crate::process;
use crate::program::{LinkedUnits, open_regular};
use crate::script::OcamlVersion;

/// A compiler of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Compiler {
    /// Its toplevel.
    pub(crate) ocaml: PathBuf,
    /// Its version as it says, such as `4.14.1`.
    pub(crate) version: String,
    /// Where its standard library is.
    pub(crate) library: PathBuf,
}

/// How well a compiler goes with a program, from worst to best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// Files of the same layout.
    Minor,
    /// The same version.
    Version,
    /// The same standard library.
    Library,
}

/// No more compilers are asked for their versions.
const MOST_COMPILERS: usize = 64;

/// A compiler that does not say its version by now is none.
const PATIENCE: Duration = Duration::from_secs(5);

/// The compiler of a program with this version, such as `4.14.1`.
///
/// # Errors
/// What there is instead.
pub(crate) fn find(
    version: &str,
    units: &LinkedUnits,
    around: &Surroundings,
) -> Result<Compiler, String> {
    let mut best: Option<(Fit, Compiler)> = None;
    let mut others = Vec::new();
    for ocaml in candidates(around).into_iter().take(MOST_COMPILERS) {
        let Some(compiler) = compiler(&ocaml) else { continue };
        match fit(&compiler, version, units) {
            Some(fit) if best.as_ref().is_none_or(|(other, _)| fit > *other) => {
                best = Some((fit, compiler));
            }
            Some(_) => {}
            None => others.push(format!("{} is {}", ocaml.display(), compiler.version)),
        }
        if matches!(best, Some((Fit::Library, _))) {
            break;
        }
    }
    best.map(|(_, compiler)| compiler).ok_or_else(|| {
        others.truncate(4);
        let others =
            if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
        format!(
            "OCaml {version} is not on the PATH nor in opam's switches{others}: name its toplevel by \
             --ocaml PROGRAM"
        )
    })
}

/// What a compiler says of itself.
pub(crate) fn compiler(ocaml: &Path) -> Option<Compiler> {
    let said = process::output(Command::new(ocaml).arg("-vnum"), Some(PATIENCE)).ok()?;
    let version = String::from_utf8(said.stdout).ok()?.trim().to_owned();
    OcamlVersion::parse(&version)?;
    let library = library(ocaml).unwrap_or_default();
    Some(Compiler { ocaml: ocaml.to_owned(), version, library })
}

/// Where its standard library is: `ocamlc` beside it says so.
fn library(ocaml: &Path) -> Option<PathBuf> {
    let compilers = ["ocamlc", "ocamlc.opt", "ocamlopt"];
    compilers.iter().find_map(|name| {
        let mut command = Command::new(ocaml.with_file_name(name));
        let said = process::output(command.arg("-where"), Some(PATIENCE)).ok()?;
        let path = PathBuf::from(String::from_utf8(said.stdout).ok()?.trim());
        path.is_absolute().then_some(path)
    })
}

fn fit(compiler: &Compiler, version: &str, units: &LinkedUnits) -> Option<Fit> {
    let own = OcamlVersion::parse(&compiler.version)?;
    if OcamlVersion::parse(version).is_some_and(|wanted| wanted != own) {
        return None;
    }
    let linked = units.get("Stdlib").and_then(|unit| unit.interface);
    let (file, _) = open_regular(&compiler.library.join("stdlib.cmi")).unzip();
    let installed = file.and_then(|file| interface_digest(&file, "Stdlib"));
    if linked.is_some() && linked == installed {
        return Some(Fit::Library);
    }
    match OcamlVersion::parse(version) {
        Some(_) if compiler.version == version => Some(Fit::Version),
        Some(_) => Some(Fit::Minor),
        // The version is not known: only the library could tell.
        None => None,
    }
}

/// Toplevels that may be run, those on the `PATH` first.
fn candidates(around: &Surroundings) -> Vec<PathBuf> {
    let switches = around.opam.iter().flat_map(fs::read_dir).flatten().flatten();
    let mut switches: Vec<_> = switches.map(|switch| switch.path().join("bin")).collect();
    switches.sort();
    let usual = ["/usr/local/bin", "/usr/bin"].map(PathBuf::from);
    let directories = around.path.iter().cloned().chain(switches).chain(usual);
    let mut seen = BTreeSet::new();
    let trusted = |ocaml: PathBuf| {
        let directory = fs::metadata(ocaml.parent()?).ok()?;
        let metadata = fs::metadata(&ocaml).ok().filter(fs::Metadata::is_file)?;
        let is_trusted = around.trusts(&directory) && around.trusts(&metadata);
        let real = fs::canonicalize(&ocaml).ok()?;
        (is_trusted && seen.insert(real)).then_some(ocaml)
    };
    directories.map(|directory| directory.join("ocaml")).filter_map(trusted).collect()
}

/// Directories of packages that go with a compiler.
pub(crate) fn packages(compiler: &Compiler, around: &Surroundings) -> Vec<PathBuf> {
    let mut packages = around.packages.clone();
    // Where opam's packages are, the compiler's library is one of them.
    let prefix = compiler.library.parent().filter(|lib| lib.file_name() == Some(OsStr::new("lib")));
    let is_switch =
        |lib: &&Path| lib.parent().is_some_and(|root| root.join(".opam-switch").is_dir());
    packages.extend(prefix.filter(is_switch).map(PathBuf::from));
    packages.extend(findlib(compiler, around));
    packages.push(compiler.library.clone());
    let mut seen = BTreeSet::new();
    packages.retain(|path| path.is_absolute() && seen.insert(path.clone()));
    packages
}

/// Directories that findlib knows, if it is the compiler's own.
fn findlib(compiler: &Compiler, around: &Surroundings) -> Vec<PathBuf> {
    let own = compiler.ocaml.with_file_name("ocamlfind");
    let is_trusted = |path: &Path| fs::metadata(path).is_ok_and(|file| around.trusts(&file));
    if !is_trusted(&own) {
        return Vec::new();
    }
    let mut command = Command::new(own);
    let said = process::output(command.args(["printconf", "path"]), Some(PATIENCE));
    let text = said.map(|said| said.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().map(PathBuf::from).collect()
}

/// The units of the standard library and of the libraries that come with a compiler, which its
/// toplevel finds by itself.
pub(crate) fn own_units(compiler: &Compiler) -> BTreeSet<String> {
    let below = ["", "unix", "threads", "str", "dynlink", "runtime_events"];
    let entries = below.iter().flat_map(|name| fs::read_dir(compiler.library.join(name)));
    let files = entries.flatten().flatten().map(|entry| PathBuf::from(entry.file_name()));
    let interfaces = files.filter(|file| file.extension() == Some(OsStr::new("cmi")));
    interfaces.filter_map(|file| Some(unit_of_stem(file.file_stem()?.to_str()?))).collect()
}
