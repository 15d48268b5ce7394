//! No heap snapshot makes the readers panic or allocate without bounds. Built for fuzzing, the
//! reader does not compare checksums, so that changed bytes reach the decoders.

#![no_main]

use std::io::Cursor;

use heaptap_graph::{HeapAnalysis, HeapGraph, LoadOptions, Reach, Summary, check};
use heaptap_heap::{Completion, Defect, Item, Reader, Suspended};
use libfuzzer_sys::fuzz_target;

const MEMORY: u64 = 16 << 20;

fuzz_target!(|bytes: &[u8]| {
    // A file of a few bytes may describe millions of blocks, which takes time and no memory.
    if blocks(bytes) > 300_000 {
        return;
    }
    let summary = Summary::read(bytes);
    let _ = Suspended::read(bytes);
    match check(Cursor::new(bytes), MEMORY) {
        Ok(report) => {
            let summary = summary.expect("what can be checked can be summed up");
            assert_eq!(report.counted, summary.counted);
            assert_eq!(report.completion, summary.completion);
            assert_eq!(report.error.is_some(), summary.error.is_some());
        }
        Err(error) => {
            assert!(summary.is_err() || matches!(error.defect, Defect::Memory(_)), "{error}");
        }
    }
    if let Ok(graph) =
        HeapGraph::load(Cursor::new(bytes), LoadOptions { memory: MEMORY, fields: true })
    {
        let found = graph.reachable();
        assert!(found.reachable.blocks <= found.all.blocks);
        let sum: u64 = found.kinds.iter().map(|kind| kind.first_reached.blocks).sum();
        assert_eq!(sum, found.reachable.blocks);
        let analysis = HeapAnalysis::new(graph).expect("few blocks");
        assert_eq!(analysis.reachable_bytes(), found.reachable.bytes);
        let rows = analysis.kind_rows();
        let own = rows.iter().map(|row| row.own).fold(Reach::default(), Reach::plus);
        assert_eq!(own, found.reachable);
        let _ = analysis.suspects();
    }
});

/// Reads all items, and looks at what must hold for each.
fn blocks(bytes: &[u8]) -> u64 {
    let Ok(mut reader) = Reader::new(bytes) else { return 0 };
    let mut blocks = 0;
    loop {
        match reader.next_item() {
            Ok(Some(Item::Block(block))) => {
                blocks += 1;
                assert!(block.address & 7 == 0 && block.words <= 1 << 61);
                assert!(block.pointers.iter().all(|pointer| pointer.field < block.words));
                assert!(block.pointers.is_sorted_by(|one, other| one.field < other.field));
            }
            Ok(Some(_)) => {}
            Ok(None) => {
                assert_ne!(reader.completion(), Completion::Unknown);
                return blocks;
            }
            Err(error) => {
                assert!(error.offset <= bytes.len() as u64, "{error}");
                return blocks;
            }
        }
        if blocks > 300_000 {
            return blocks;
        }
    }
}
