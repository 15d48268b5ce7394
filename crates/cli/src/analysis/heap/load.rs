//! Reads a snapshot and finds what holds what.

use std::path::Path;

use heaptap_heap::{GraphError, HeapAnalysis, HeapGraph, LoadOptions};

use crate::exit_status::Failure;
use crate::io::input::Input;

/// The most memory of a graph: a small file can describe very many blocks.
const MEMORY: u64 = 32 << 30;

/// Reads a complete snapshot. `fields`: with the fields of pointers.
pub(crate) fn load(file: &Path, fields: bool) -> Result<HeapAnalysis, Failure> {
    let input = Input::open(file)?;
    let analysis = HeapAnalysis::new(load_graph(&input, fields)?);
    input.end_progress();
    analysis.ok_or_else(|| too_big(&input))
}

/// Reads the graph of a complete snapshot. `fields`: with the fields of pointers.
pub(crate) fn load_graph(input: &Input, fields: bool) -> Result<HeapGraph, Failure> {
    input.make_repeatable()?;
    let options = LoadOptions { memory: MEMORY, fields };
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
