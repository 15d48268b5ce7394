//! The blocks of a snapshot that its trace tracks, with what the trace knows about them.
//!
//! The snapshot has the address and the id of each block that the trace tracks. Other blocks were not sampled, so
//! sizes that come from here are estimates with an error, as in `heaptap report`.

use std::collections::HashMap;
use std::path::Path;

use heaptap_graph::{DominatorTree, HeapAnalysis, HeapGraph, HolderId, HolderTree, Node};
use heaptap_heap::MetaKey;
use heaptap_report::{Aggregator, Frame, Options, Scale};
use heaptap_trace::{Allocation, EventKind, EventSource, LocationTable, Source, TraceInfo};

use crate::analysis::aggregate::lifespans_of;
use crate::exit_status::Failure;
use crate::io::input::Input;

/// Bytes of a word.
const WORD: u64 = 8;

/// A block that is in both.
pub(crate) struct TrackedBlock {
    /// Its number in the snapshot.
    pub(crate) block: u32,
    /// Its id in the trace.
    pub(crate) id: u64,
    /// By what a table of the trace groups it.
    pub(crate) frame: Frame,
    pub(crate) samples: u64,
    /// When it was allocated, in microseconds since the Unix epoch.
    pub(crate) time: u64,
}

/// The blocks that a snapshot and its trace both have.
pub(crate) struct TrackedBlocks {
    /// The name of the trace.
    pub(crate) trace: String,
    pub(crate) blocks: Vec<TrackedBlock>,
    events: Box<dyn EventSource>,
}

impl TrackedBlocks {
    /// Reads the trace that was being written when the snapshot was taken. Only blocks that the options select are
    /// returned. `remedy`: what to do if it is another trace.
    pub(crate) fn read(
        analysis: &HeapAnalysis,
        trace: &Path,
        mut options: Options,
        remedy: &str,
    ) -> Result<TrackedBlocks, Failure> {
        let input = Input::open(trace)?;
        let refuse = |why: &str| {
            Failure::Trouble(format!(
                "{}: not the trace that was being written when the snapshot was taken: {why}; {remedy}",
                input.name()
            ))
        };
        let mut events = input.in_file_order()?;
        check_origin(analysis, events.info()).map_err(refuse)?;
        check_complete(analysis)?;
        if let Some(lifespans) = lifespans_of(&input, options.selection.lifetime)? {
            options.lifespans = Some(lifespans);
            events = input.in_file_order()?;
        }
        let (mut resolver, _) = Aggregator::new(events.info(), options).split();
        let mut wanted: HashMap<u64, u32> =
            analysis.graph.tracked().iter().map(|&(block, id)| (id, block)).collect();
        let (mut blocks, mut found, mut of_other_sizes) = (Vec::new(), 0, 0);
        input.each_event(&mut *events, |event, table| {
            if let EventKind::Alloc(allocation) = &event.kind
                && let Some(block) = wanted.remove(&allocation.id)
            {
                found += 1;
                of_other_sizes += usize::from(!is_as_long(&analysis.graph, block, allocation));
                // Nobody counts by path here: paths that are dropped need not be moved.
                let _ = resolver.make_room(event);
                let resolved = resolver.resolve(event, table);
                let (id, samples, time) = (allocation.id, allocation.samples, event.time);
                let one = |frame| TrackedBlock { block, id, frame, samples, time };
                blocks.extend(resolver.row_frame(&resolved).map(one));
            }
            Ok(())
        })?;
        input.end_progress();
        // Few programs cut blocks, and few of their blocks.
        if of_other_sizes > found / 100 {
            return Err(refuse("its blocks have other sizes"));
        }
        Ok(TrackedBlocks { trace: input.name().to_owned(), blocks, events })
    }

    pub(crate) fn info(&self) -> &TraceInfo {
        self.events.info()
    }

    pub(crate) fn locations(&self) -> &LocationTable {
        self.events.locations()
    }

    /// What a sample stands for.
    pub(crate) fn scale(&self) -> Scale {
        let info = self.info();
        Scale::new(info.sample_rate, f64::from(info.word_size) / 8.0)
    }
}

/// Whether a block of the snapshot has the length of an allocation. Memory outside the heap is tracked through the custom
/// block that keeps it; what kinds other than bigarrays keep, the snapshot does not know.
fn is_as_long(graph: &HeapGraph, block: u32, allocation: &Allocation<'_>) -> bool {
    if allocation.source != Source::External {
        return allocation.length == graph.words(block);
    }
    graph.custom(block).is_some_and(|custom| {
        custom.outside_bytes == 0 || custom.outside_bytes / WORD == allocation.length
    })
}

/// Fails if blocks are missing: what comes from the others would be too small.
fn check_complete(analysis: &HeapAnalysis) -> Result<(), Failure> {
    match analysis.graph.facts().number(MetaKey::TRACKED_LEFT_OUT) {
        None | Some(0) => Ok(()),
        Some(missing) => Err(Failure::Trouble(format!(
            "the snapshot lists at most 4,194,304 of the blocks that the trace follows, and {missing} had no room, so \
             that sizes would be too small; trace with a lower --rate, at which fewer blocks are followed"
        ))),
    }
}

/// Why a trace is not that of the snapshot, as far as its header shows.
pub(crate) fn check_origin(analysis: &HeapAnalysis, info: &TraceInfo) -> Result<(), &'static str> {
    let facts = analysis.graph.facts();
    if facts.number(MetaKey::PID).is_some_and(|pid| pid != info.pid) {
        return Err("it is of another process");
    }
    // A process that runs another program, or traces a second time, has the same number.
    if facts.number(MetaKey::TRACE_START).is_some_and(|start| start != info.start_time) {
        return Err("it began at another time");
    }
    Ok(())
}

/// The failure for a snapshot that was taken without a trace.
pub(crate) fn taken_without_trace(snapshot: &Path) -> Failure {
    Failure::Trouble(format!(
        "{}: no trace was being written when it was taken, so where its blocks were allocated is not known; \
         `heaptap run --snapshot exit -o trace.ctf -- PROGRAM` writes both",
        snapshot.display()
    ))
}

/// For each block, the lowest holder that retains it.
pub(crate) struct RetainingHolders<'a> {
    dominators: &'a DominatorTree,
    /// By position in the tree.
    holders: Vec<HolderId>,
}

impl<'a> RetainingHolders<'a> {
    pub(crate) fn new(dominators: &'a DominatorTree) -> RetainingHolders<'a> {
        let mut holders: Vec<HolderId> = Vec::with_capacity(dominators.len());
        for position in 0..dominators.len() as u32 {
            let above = || holders.get(dominators.dominator(position) as usize).copied();
            // A dominator comes first.
            holders.push(match dominators.node(position) {
                Node::Holder(holder) => holder,
                Node::Block(_) => above().unwrap_or(HolderTree::PROGRAM),
            });
        }
        RetainingHolders { dominators, holders }
    }

    /// The holder of a block; `None` if the block is garbage.
    pub(crate) fn of(&self, block: u32) -> Option<HolderId> {
        let position = self.dominators.position(Node::Block(block))?;
        self.holders.get(position as usize).copied()
    }
}
