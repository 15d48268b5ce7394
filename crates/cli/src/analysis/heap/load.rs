//! Reads a snapshot and finds what holds what.

use std::path::Path;

use heaptap_graph::{GraphError, HeapAnalysis, HeapGraph, LoadOptions};

use crate::analysis::ocaml_types::{NamedTypes, TypeOptions};
use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::notices::say;
use crate::io::trace_files::shown;
use crate::text::names::escaped;

/// The most memory to use for a snapshot: a small file can describe very many blocks.
pub(crate) const MOST_MEMORY: u64 = 32 << 30;

/// Reads a complete snapshot, and gives its blocks names by their types if these are wanted.
pub(crate) fn load_with_types(
    file: &Path,
    types: &TypeOptions,
) -> Result<(HeapAnalysis, NamedTypes), Failure> {
    load(file, types, false)
}

/// The same. `fields`: with the fields of pointers.
pub(crate) fn load(
    file: &Path,
    types: &TypeOptions,
    fields: bool,
) -> Result<(HeapAnalysis, NamedTypes), Failure> {
    let input = Input::open_snapshot(file)?;
    let mut graph = load_graph(&input, fields || types.is_wanted())?;
    let named = types.name_blocks(&mut graph)?;
    let analysis = HeapAnalysis::new(graph);
    input.end_progress();
    Ok((analysis.ok_or_else(|| too_big(&input))?, named))
}

/// Says on standard error which files the types of a snapshot are from, or why there are none.
pub(crate) fn say_types(file: &Path, types: &NamedTypes) {
    if let Some(line) = types.line() {
        say(&format!("{}: types {}", shown(file), escaped(line)));
    }
}

/// Reads the graph of a complete snapshot. `fields`: with the fields of pointers.
pub(crate) fn load_graph(input: &Input, fields: bool) -> Result<HeapGraph, Failure> {
    input.make_repeatable()?;
    let options = LoadOptions { memory: MOST_MEMORY, fields };
    HeapGraph::load(input.snapshot_bytes(), options).map_err(|error| match error {
        GraphError::Read(error) => input.snapshot_failure(&error),
        GraphError::CutShort => Failure::Defective(format!(
            "{}: {error}; `heaptap info FILE` shows what it has, `heaptap snapshot PID` takes another",
            input.name()
        )),
        error => Failure::Trouble(format!("{}: {error}", input.name())),
    })
}

/// The failure for a graph with more nodes or pointers than 32 bits can number.
pub(crate) fn too_big(input: &Input) -> Failure {
    Failure::Trouble(format!("{}: {}", input.name(), GraphError::TooBig))
}
