//! The export of a heap snapshot.

use std::path::Path;

use heaptap_export::{SnapshotFormat, SnapshotInput};
use heaptap_graph::{DominatorTree, HolderTree, Kinds};
use heaptap_report::figures::units::count;

use crate::analysis::heap::load::{load_graph, too_big};
use crate::exit_status::{VerbResult, Verdict};
use crate::io::input::Input;
use crate::io::notices::say;

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
        let out = super::output(output, format.name, format.is_binary)?;
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
        let notes = out.write_export(|out| format.write(&export, out))?;
        let alive = tree.len() - holders.len();
        if let garbage @ 1.. = (graph.blocks() - alive) as u64 {
            let blocks = count(garbage, "block", "blocks");
            say(&format!("{}: {blocks} left out, which nothing holds", input.name()));
        }
        notes.iter().for_each(|note| say(&format!("{}: {note}", input.name())));
        Ok(Verdict::Sound)
    }
}
