//! The blocks of a snapshot that its trace tracks, with what the trace knows about them.
//!
//! The snapshot has the address and the id of each block that the trace tracks. Other blocks were not sampled, so
//! sizes that come from here are estimates with an error, as in `heaptap report`.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use heaptap_graph::HeapAnalysis;
use heaptap_report::figures::units::count;
use heaptap_report::{Aggregator, EventResolver, Frame, Options, Scale};
use heaptap_trace::{
    Allocation, Code, Event, EventKind, EventSource, LocationTable, Source, TraceInfo,
};
use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::origin::SnapshotOrigin;
use crate::analysis::aggregate::lifespans_of;
use crate::analysis::several::TraceSet;
use crate::analysis::thinning::Survivors;
use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::notices::say;
use crate::io::trace_files::{InputFile, shown};

/// Bytes of a word.
const WORD: u64 = 8;

/// The blocks that a snapshot lists as tracked, without the rest of its heap.
pub(crate) struct TrackedList {
    pub(crate) origin: SnapshotOrigin,
    blocks: Vec<ListedBlock>,
}

/// A block of the snapshot.
struct ListedBlock {
    /// Its number in the snapshot.
    block: u32,
    /// Its id in the trace.
    id: u64,
    words: u64,
    /// What a custom block keeps outside the heap, in bytes.
    outside: Option<u64>,
}

impl TrackedList {
    pub(crate) fn of(analysis: &HeapAnalysis) -> TrackedList {
        let graph = &analysis.graph;
        let listed = |&(block, id): &(u32, u64)| ListedBlock {
            block,
            id,
            words: graph.words(block),
            outside: graph.custom(block).map(|custom| custom.outside_bytes),
        };
        let blocks = graph.tracked().iter().map(listed).collect();
        TrackedList { origin: SnapshotOrigin::of(analysis), blocks }
    }

    /// The blocks, by their numbers in the snapshot.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = u32> {
        self.blocks.iter().map(|listed| listed.block)
    }
}

impl ListedBlock {
    /// Whether it has the length of an allocation. Memory outside the heap is tracked through the custom block that
    /// keeps it; what kinds other than bigarrays keep, the snapshot does not know.
    fn is_as_long(&self, allocation: &Allocation<'_>) -> bool {
        if allocation.source != Source::External {
            return allocation.length == self.words;
        }
        self.outside.is_some_and(|outside| outside == 0 || outside / WORD == allocation.length)
    }
}

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
    /// Its stack's number in [`TrackedBlocks::stacks`], if these were asked for.
    pub(crate) stack: Option<u32>,
}

/// The inner ends of stacks, each once.
#[derive(Default)]
pub(crate) struct InnerStacks {
    numbers: HashMap<Rc<[Code]>, u32>,
    stacks: Vec<Rc<[Code]>>,
}

impl InnerStacks {
    /// The most frames of a stack that are kept.
    const MOST_FRAMES: usize = 32;

    /// The frames of a stack, the outermost that is kept first.
    pub(crate) fn get(&self, number: u32) -> &[Code] {
        self.stacks.get(number as usize).map_or(&[], |frames| frames)
    }

    fn number(&mut self, frames: &[Code]) -> u32 {
        let inner = &frames[frames.len().saturating_sub(Self::MOST_FRAMES)..];
        if let Some(&number) = self.numbers.get(inner) {
            return number;
        }
        let (number, inner) = (self.stacks.len() as u32, Rc::from(inner));
        self.stacks.push(Rc::clone(&inner));
        self.numbers.insert(inner, number);
        number
    }
}

/// The blocks that a snapshot and its trace both have.
pub(crate) struct TrackedBlocks {
    /// The name of the trace.
    pub(crate) trace: String,
    pub(crate) blocks: Vec<TrackedBlock>,
    /// Empty unless they were asked for.
    pub(crate) stacks: InnerStacks,
    /// The rate at which all of these were sampled.
    rate: f64,
    events: Box<dyn EventSource>,
}

/// What is read of each block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Frame,
    Stack,
}

impl TrackedBlocks {
    /// Reads the trace that was being written when the snapshot was taken. Only blocks that the options select are
    /// returned. `remedy`: what to do if it is another trace.
    pub(crate) fn read(
        listed: &TrackedList,
        trace: &Path,
        options: Options,
        remedy: &str,
    ) -> Result<TrackedBlocks, Failure> {
        TrackedBlocks::read_detail(listed, trace, options, remedy, Detail::Frame)
    }

    /// The same of all blocks, with their stacks.
    pub(crate) fn read_stacks(
        listed: &TrackedList,
        trace: &Path,
        remedy: &str,
    ) -> Result<TrackedBlocks, Failure> {
        TrackedBlocks::read_detail(listed, trace, Options::default(), remedy, Detail::Stack)
    }

    fn read_detail(
        listed: &TrackedList,
        trace: &Path,
        mut options: Options,
        remedy: &str,
        detail: Detail,
    ) -> Result<TrackedBlocks, Failure> {
        if let Some(parts) = listed.origin.kept_parts(trace) {
            listed.origin.check_complete()?;
            return TrackedBlocks::of_series(listed, &parts, options, detail);
        }
        let input = Input::open(trace)?;
        let refuse = |why: &str| other_trace(input.name(), why, remedy);
        let mut events = input.in_file_order()?;
        listed.origin.check(events.info()).map_err(refuse)?;
        listed.origin.check_complete()?;
        if let Some(lifespans) = lifespans_of(&input, options.selection.lifetime)? {
            options.lifespans = Some(lifespans);
            events = input.in_file_order()?;
        }
        let rate = events.info().sample_rate;
        let mut search = Search::new(listed, events.info(), options, detail);
        input.each_event(&mut *events, |event, table| {
            search.event(event, table, rate);
            Ok(())
        })?;
        input.end_progress();
        if search.has_other_sizes() {
            return Err(refuse("its blocks have other sizes"));
        }
        let (blocks, stacks) = search.at_rate(rate);
        Ok(TrackedBlocks { trace: input.name().to_owned(), blocks, stacks, rate, events })
    }

    /// The same where the trace was a part of a series: a block may have been allocated in an earlier
    /// part. `parts`: those up to the one that was being written.
    fn of_series(
        listed: &TrackedList,
        parts: &[InputFile],
        mut options: Options,
        detail: Detail,
    ) -> Result<TrackedBlocks, Failure> {
        let traces = TraceSet::survey(parts)?;
        let name = shown(parts.last().map_or(Path::new(""), |part| &part.path));
        let span = options.selection.lifetime;
        if !span.is_all() {
            options.lifespans = Some(traces.lifespans(span, &name)?);
        }
        let mut search = Search::new(listed, traces.info(), options, detail);
        let merged = traces.each_event(|event, table, rate| {
            search.event(event, table, rate);
            Ok(())
        })?;
        if search.has_other_sizes() {
            return Err(other_trace(&name, "its blocks have other sizes", "name another one"));
        }
        if let missing @ 1.. = search.wanted.len() as u64 {
            say(&format!(
                "{name}: {} of the snapshot in no part of the series that is kept: sizes lack them",
                count(missing, "sampled block is", "sampled blocks are")
            ));
        }
        let rate = search.lowest_rate().unwrap_or(traces.info().sample_rate);
        let (blocks, stacks) = search.at_rate(rate);
        Ok(TrackedBlocks { trace: name, blocks, stacks, rate, events: Box::new(merged) })
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
        Scale::new(self.rate, f64::from(info.word_size) / 8.0)
    }
}

/// The search for the blocks of a snapshot in a trace.
struct Search<'a> {
    resolver: EventResolver,
    /// The blocks that were not found yet, by their ids.
    wanted: HashMap<u64, &'a ListedBlock>,
    /// Each with the rate at which it was sampled.
    blocks: Vec<(TrackedBlock, f64)>,
    stacks: Option<InnerStacks>,
    found: u64,
    of_other_sizes: u64,
}

impl<'a> Search<'a> {
    fn new(
        listed: &'a TrackedList,
        info: &TraceInfo,
        options: Options,
        detail: Detail,
    ) -> Search<'a> {
        let (resolver, _) = Aggregator::new(info, options).split();
        let wanted = listed.blocks.iter().map(|listed| (listed.id, listed)).collect();
        let blocks = Vec::new();
        let stacks = (detail == Detail::Stack).then(InnerStacks::default);
        Search { resolver, wanted, blocks, stacks, found: 0, of_other_sizes: 0 }
    }

    fn event(&mut self, event: &Event<'_>, table: &LocationTable, rate: f64) {
        if let EventKind::Alloc(allocation) = &event.kind
            && let Some(listed) = self.wanted.remove(&allocation.id)
        {
            self.found += 1;
            self.of_other_sizes += u64::from(!listed.is_as_long(allocation));
            // Nobody counts by path here: paths that are dropped need not be moved.
            let _ = self.resolver.make_room(event);
            let resolved = self.resolver.resolve(event, table);
            let (block, id) = (listed.block, allocation.id);
            let (samples, time) = (allocation.samples, event.time);
            let frames = allocation.backtrace.frames;
            let stack = self.stacks.as_mut().map(|stacks| stacks.number(frames));
            let one = |frame| (TrackedBlock { block, id, frame, samples, time, stack }, rate);
            self.blocks.extend(self.resolver.row_frame(&resolved).map(one));
        }
    }

    /// Few programs cut blocks, and few of their blocks.
    fn has_other_sizes(&self) -> bool {
        self.of_other_sizes > self.found / 100
    }

    fn lowest_rate(&self) -> Option<f64> {
        self.blocks.iter().map(|&(_, rate)| rate).reduce(f64::min)
    }

    /// The blocks as if all had been sampled at this rate, which is the lowest: of others, samples are
    /// kept with the same probability, and always the same ones.
    fn at_rate(self, rate: f64) -> (Vec<TrackedBlock>, InnerStacks) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for (mut block, own) in self.blocks {
            let mut survivors = Survivors { share: rate / own, random };
            block.samples = survivors.of(block.samples);
            random = survivors.random;
            if block.samples > 0 {
                blocks.push(block);
            }
        }
        (blocks, self.stacks.unwrap_or_default())
    }
}

fn other_trace(name: &str, why: &str, remedy: &str) -> Failure {
    Failure::Trouble(format!(
        "{name}: not the trace that was being written when the snapshot was taken: {why}; {remedy}"
    ))
}
