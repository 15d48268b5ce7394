//! The export of a heap snapshot.

use std::io::{self, BufWriter, IsTerminal as _, Write, stdout};
use std::path::Path;

use heaptap_export::{SnapshotFormat, SnapshotInput};
use heaptap_graph::{DominatorTree, HolderTree, Kinds};
use heaptap_report::figures::units::count;

use crate::analysis::heap::load::{load_graph, too_big};
use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::input::Input;
use crate::io::notices::say;
use crate::io::output::{Output, raw_stdout};

/// A snapshot and where it goes.
pub(super) struct SnapshotExport<'a> {
    pub(super) input: Input,
    pub(super) format: &'static SnapshotFormat,
    /// The most nodes, unless the format's own limit is to be used.
    pub(super) nodes: Option<usize>,
    pub(super) output: Option<&'a Path>,
}

impl SnapshotExport<'_> {
    pub(super) fn run(self) -> VerbResult {
        let SnapshotExport { input, format, nodes, output } = self;
        if format.is_binary && output.is_none() && stdout().is_terminal() {
            return Err(Failure::Trouble(format!(
                "standard output is a terminal, and {} is binary; name a file with -o",
                format.name
            )));
        }
        let out = output.map(Output::create).transpose()?;
        let graph = load_graph(&input, format.has_fields)?;
        input.end_progress();
        let holders = HolderTree::new(&graph).ok_or_else(|| too_big(&input))?;
        let tree = DominatorTree::new(&graph, &holders).ok_or_else(|| too_big(&input))?;
        let kinds = Kinds::new(&graph);
        let export = SnapshotInput {
            graph: &graph,
            holders: &holders,
            tree: &tree,
            kinds: &kinds,
            nodes: nodes.unwrap_or(format.nodes),
        };
        let notes = match out {
            Some(mut out) => {
                let written = write(format, &export, &mut out);
                let notes = written.map_err(|error| Failure::writing(out.name(), &error))?;
                out.complete_export()?;
                notes
            }
            None => raw_stdout()
                .and_then(|mut out| write(format, &export, &mut out))
                .map_err(|error| Failure::writing("standard output", &error))?,
        };
        let alive = tree.len() - holders.len();
        if let garbage @ 1.. = (graph.blocks() - alive) as u64 {
            let blocks = count(garbage, "block", "blocks");
            say(&format!("{}: {blocks} left out, which nothing holds", input.name()));
        }
        notes.iter().for_each(|note| say(&format!("{}: {note}", input.name())));
        Ok(Verdict::Sound)
    }
}

fn write(
    format: &SnapshotFormat,
    input: &SnapshotInput<'_>,
    out: &mut dyn Write,
) -> io::Result<Vec<String>> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let notes = format.write(input, &mut out)?;
    out.flush()?;
    Ok(notes)
}
