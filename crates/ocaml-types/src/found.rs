//! Types of a program whose files nobody has named: finding and reading them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cache::{Cache, identity};
use crate::compiler::{CompilerRun, DeclaredTypes, TypeFiles, TypesError};
use crate::discovery::{
    Chosen, Compiler, Discovered, Origin, Program, Surroundings, discover, origin, readable,
};
use crate::script::{OcamlVersion, for_version};

/// The compiler has this long for files that were found. A big project takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// A place where files of modules are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPlace {
    /// The directory.
    pub directory: PathBuf,
    /// What built the files there.
    pub origin: Origin,
    /// How many of the modules have their files there.
    pub modules: usize,
}

/// The files that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundFiles {
    /// How many modules have variables that hold blocks.
    pub modules: usize,
    /// How many of them have types.
    pub typed: usize,
    /// Where the files are, those of most modules first.
    pub places: Vec<FoundPlace>,
    /// Modules without a `.cmt`, whose exported variables have names and types by the `.cmi`.
    pub without_types: Vec<String>,
    /// Modules without either.
    pub without_files: Vec<String>,
    /// The compiler that read them.
    pub compiler: String,
    /// Whether it had read them before.
    pub is_cached: bool,
}

/// What was read.
pub(crate) struct FoundTypes {
    pub(crate) types: DeclaredTypes,
    pub(crate) files: FoundFiles,
    pub(crate) notes: Vec<String>,
}

/// Finds and reads the types of a program. `ocaml`: its compiler's toplevel, if it is known.
pub(crate) fn find_types(
    program: &Program<'_>,
    ocaml: Option<&Path>,
    around: &Surroundings,
) -> Result<FoundTypes, TypesError> {
    let Discovered { compiler, units, packages, mut notes } = discover(program, ocaml, around)?;
    let files: Vec<PathBuf> = units.values().flat_map(files).cloned().collect();
    let run = CompilerRun {
        files: TypeFiles::Files(&files),
        ocaml: &compiler.ocaml,
        limit: Some(PATIENCE),
    };
    let (text, is_cached) = print(&run, &compiler, program, around)?;
    let doubted = units.iter().filter(|(_, files)| !files.is_certain);
    let doubted: BTreeSet<String> = doubted.map(|(unit, _)| readable(unit)).collect();
    let types = run.table(&text, &doubted)?;
    let files = FoundFiles {
        compiler: format!("{} ({})", compiler.ocaml.display(), compiler.version),
        is_cached,
        ..summary(program, &types, &units, &packages)
    };
    if !files.without_files.is_empty() {
        notes.push(
            "for modules without files, name the directory of their build by --types DIRECTORY, or ask from \
             within the project"
                .to_owned(),
        );
    }
    Ok(FoundTypes { types, files, notes })
}

fn files(chosen: &Chosen) -> impl Iterator<Item = &PathBuf> {
    chosen.interface.iter().chain(&chosen.types)
}

/// What the compiler prints, or has printed before, and which of the two.
fn print(
    run: &CompilerRun<'_>,
    compiler: &Compiler,
    program: &Program<'_>,
    around: &Surroundings,
) -> Result<(String, bool), TypesError> {
    let version = OcamlVersion::parse(&compiler.version).unwrap_or(OcamlVersion::OLDEST);
    let modules = || program.modules.iter().copied();
    let cache = around.cache.as_deref().and_then(Cache::open);
    let Some(cache) = cache else { return Ok((run.print(version, modules())?, false)) };
    let key = key(run, compiler, version, program.modules);
    if let Some(text) = cache.get(&key) {
        return Ok((text, true));
    }
    let text = run.print(version, modules())?;
    cache.put(&key, &text);
    Ok((text, false))
}

/// Everything that what is printed depends on.
fn key(
    run: &CompilerRun<'_>,
    compiler: &Compiler,
    version: OcamlVersion,
    modules: &BTreeSet<&str>,
) -> String {
    let TypeFiles::Files(files) = run.files else { return String::new() };
    let script = for_version(version);
    let script = format!("{} {}", script.len(), heaptap_codec::crc::crc32c(&[script.as_bytes()]));
    let library = ["stdlib.cmi", "stdlib.cmt"].map(|file| compiler.library.join(file));
    let files = files.iter().chain(&library).map(|path| identity(path));
    let modules = modules.iter().map(|module| format!("{module:?}"));
    let mut lines = vec![script, compiler.version.clone(), identity(&compiler.ocaml)];
    lines.extend(files);
    lines.extend(modules);
    lines.join("\n")
}

/// Which modules have types, and where these are from.
fn summary(
    program: &Program<'_>,
    types: &DeclaredTypes,
    units: &BTreeMap<String, Chosen>,
    packages: &[PathBuf],
) -> FoundFiles {
    // What bytecode calls its constants and what was loaded later.
    let is_module = |name: &&&str| name.starts_with(|c: char| c.is_uppercase());
    let modules: BTreeSet<&str> = program.modules.iter().filter(is_module).copied().collect();
    let described: BTreeMap<&str, bool> =
        types.table.modules().iter().map(|module| (&*module.name, module.is_complete)).collect();
    let of = |wanted: Option<bool>| -> Vec<String> {
        let all = modules.iter().filter(|name| described.get(**name).copied() == wanted);
        all.map(|name| (*name).to_owned()).collect()
    };
    let mut places: BTreeMap<&Path, usize> = BTreeMap::new();
    for (unit, chosen) in units {
        if modules.contains(readable(unit).as_str()) {
            *places.entry(&chosen.place).or_default() += 1;
        }
    }
    let place = |(directory, modules): (&Path, usize)| FoundPlace {
        directory: directory.to_owned(),
        origin: origin(directory, packages),
        modules,
    };
    let mut places: Vec<FoundPlace> = places.into_iter().map(place).collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.modules));
    FoundFiles {
        modules: modules.len(),
        typed: of(Some(true)).len(),
        places,
        without_types: of(Some(false)),
        without_files: of(None),
        ..FoundFiles::default()
    }
}
