//! Giving the blocks of a graph their types as names.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use heaptap_graph::{
    BlockTypes, GlobalRoot, HeapAnalysis, HeapGraph, Node, ProblemKind, RootHolder, TypeCoverage,
};
use heaptap_heap::{MetaKey, RootOwner};

use crate::compiler::{CompilerRun, DeclaredTypes, TypeFiles, TypesError};
use crate::discovery::{Program, Surroundings};
use crate::found::{FoundFiles, FoundTypes, find_types};

/// More files or types than these are counted, not named.
const MOST_NAMED: usize = 5;

/// Where the types of a program come from.
#[derive(Clone, Copy, Debug)]
pub enum TypeSource<'a> {
    /// From `.cmt` and `.cmi` files in these directories and in all below, at least one.
    Directories {
        /// The directories.
        directories: &'a [PathBuf],
        /// The `ocaml` of the compiler that the program was built with.
        ocaml: &'a Path,
    },
    /// From files that are looked for.
    Found {
        /// The compiler's `ocaml`, if it is known.
        ocaml: Option<&'a Path>,
        /// What of the machine is looked at.
        around: &'a Surroundings,
    },
}

/// The types that were found, and what was in the way.
#[derive(Debug)]
pub struct TypeSummary {
    types: BlockTypes,
    /// What was found, if it was looked for.
    pub found: Option<FoundFiles>,
    /// What a person should know, one line each.
    pub notes: Vec<String>,
}

/// Gives blocks and variables their types as names. The graph must have been loaded with fields.
///
/// # Errors
/// The snapshot is not of OCaml, there are no files, or the compiler could not read them.
pub fn name_blocks(
    graph: &mut HeapGraph,
    source: TypeSource<'_>,
) -> Result<TypeSummary, TypesError> {
    let runtime = graph.facts().meta(MetaKey::RUNTIME).unwrap_or_default();
    let runtime = String::from_utf8_lossy(runtime);
    if !runtime.starts_with("OCaml") {
        let named = if runtime.is_empty() { "another runtime" } else { &runtime };
        return Err(TypesError(format!(
            "the snapshot is of {named}; types are known of OCaml programs alone"
        )));
    }
    let roots = variables(graph);
    let modules: BTreeSet<&str> = roots.iter().map(|root| root.module).collect();
    let (types, found, mut notes) = match source {
        TypeSource::Directories { directories, ocaml } => {
            let files = TypeFiles::Directories(directories);
            let run = CompilerRun { files, ocaml, limit: None };
            let types = run.read(modules.iter().copied())?;
            let without = missing(&modules, &types);
            (types, None, without.into_iter().collect())
        }
        TypeSource::Found { ocaml, around } => {
            let facts = graph.facts();
            let path = facts.meta(MetaKey::PROGRAM).map(|path| Path::new(OsStr::from_bytes(path)));
            let time = facts.number(MetaKey::TIME).map(Duration::from_nanos);
            let program = Program {
                path: path.filter(|path| path.is_absolute()),
                runtime: &runtime,
                modules: &modules,
                taken: time.and_then(|time| UNIX_EPOCH.checked_add(time)),
            };
            let FoundTypes { types, files, notes } = find_types(&program, ocaml, around)?;
            (types, Some(files), notes)
        }
    };
    let DeclaredTypes { table, skipped } = types;
    let skipped = skipped.iter().map(|file| format!("{}: {}", file.file, file.reason));
    notes.extend(left_out("file left out", skipped));
    let mut types = BlockTypes::spread(graph, table, &roots);
    notes.extend(contradictions(&types));
    let names = types.given_names(graph);
    graph.give_names(names);
    Ok(TypeSummary { types, found, notes })
}

/// One line for the modules that no file describes.
fn missing(modules: &BTreeSet<&str>, types: &DeclaredTypes) -> Option<String> {
    let described: BTreeSet<&str> =
        types.table.modules().iter().map(|module| &*module.name).collect();
    let missing = modules.iter().filter(|module| !described.contains(*module));
    left_out("module without a .cmt or .cmi file", missing.map(|name| (*name).to_owned()))
}

/// The variables of modules that point to blocks.
fn variables(graph: &HeapGraph) -> Vec<GlobalRoot<'_>> {
    let variable = |(holder, block)| {
        let RootHolder::Owner(RootOwner::Global { module, field }) = holder else { return None };
        let module = std::str::from_utf8(graph.facts().module(module)?).ok()?;
        Some(GlobalRoot { module, field, block })
    };
    graph.roots().filter_map(variable).collect()
}

/// One line for some things that are missing, with the first of them.
fn left_out(what: &str, things: impl Iterator<Item = String>) -> Option<String> {
    let all: Vec<String> = things.collect();
    let count = all.len();
    let (first, last) = all.split_at(count.min(MOST_NAMED));
    let plural = match what.split_once(' ') {
        Some((noun, rest)) if count != 1 => format!("{noun}s {rest}"),
        _ => what.to_owned(),
    };
    let more = if last.is_empty() { String::new() } else { format!("; {} more", last.len()) };
    (count > 0).then(|| format!("{count} {plural}: {}{more}", first.join("; ")))
}

/// What the heap and the declared types disagree about.
fn contradictions(types: &BlockTypes) -> Vec<String> {
    let mut notes = Vec::new();
    for problem in types.problems() {
        let module = &problem.module;
        notes.push(match problem.kind {
            // What was looked for, and why it is doubted, is said there.
            ProblemKind::OtherBuild => continue,
            ProblemKind::UndeclaredField(field) => format!(
                "the files of {module} are of another build: the program has a variable in field \
                 {field}, which they do not have; no types of its variables are used"
            ),
            ProblemKind::Mismatch(field) => format!(
                "the files of {module} may be of another build: the variable in field {field} \
                 does not look like its type; all types from there are guessed"
            ),
        });
    }
    let mismatches = types.mismatches();
    let blocks: u64 = mismatches.iter().map(|mismatch| mismatch.blocks).sum();
    if let Some(first) = mismatches.first() {
        notes.push(format!(
            "{blocks} {} not look like the declared type, most often {} with tag {} and size {}; \
             they have no type by that",
            if blocks == 1 { "block does" } else { "blocks do" },
            types.name(first.declared),
            first.tag,
            first.words,
        ));
    }
    match types.conflicts() {
        0 => {}
        1 => notes.push("1 block has two declared types; its type is guessed".to_owned()),
        more => notes.push(format!("{more} blocks have two declared types; theirs are guessed")),
    }
    notes
}

impl TypeSummary {
    /// How much of what is reachable has types.
    pub fn coverage(&self, analysis: &HeapAnalysis) -> TypeCoverage {
        let is_reachable = |block| analysis.dominators.position(Node::Block(block)).is_some();
        self.types.coverage(&analysis.graph, is_reachable)
    }
}
