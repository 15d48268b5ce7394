//! The blocks of a snapshot that its trace tracks, with what the trace knows about them.
//!
//! The snapshot has the address and the id of each block that the trace tracks. Other blocks were not sampled, so
//! sizes that come from here are estimates with an error, as in `heaptap report`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use heaptap_graph::{HeapAnalysis, HeapGraph};
use heaptap_heap::MetaKey;
use heaptap_report::figures::units::count;
use heaptap_report::{Aggregator, EventResolver, Frame, Options, Scale};
use heaptap_trace::{
    Allocation, Code, Event, EventKind, EventSource, LocationTable, Source, TraceInfo,
};
use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::analysis::aggregate::lifespans_of;
use crate::analysis::several::TraceSet;
use crate::analysis::thinning::Survivors;
use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::notices::say;
use crate::io::series_files::{PartOnDisk, directory_of};
use crate::io::trace_files::{InputFile, shown};

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
        analysis: &HeapAnalysis,
        trace: &Path,
        options: Options,
        remedy: &str,
    ) -> Result<TrackedBlocks, Failure> {
        TrackedBlocks::read_detail(analysis, trace, options, remedy, Detail::Frame)
    }

    /// The same of all blocks, with their stacks.
    pub(crate) fn read_stacks(
        analysis: &HeapAnalysis,
        trace: &Path,
        remedy: &str,
    ) -> Result<TrackedBlocks, Failure> {
        TrackedBlocks::read_detail(analysis, trace, Options::default(), remedy, Detail::Stack)
    }

    fn read_detail(
        analysis: &HeapAnalysis,
        trace: &Path,
        mut options: Options,
        remedy: &str,
        detail: Detail,
    ) -> Result<TrackedBlocks, Failure> {
        if let Some(parts) = kept_parts(analysis, trace) {
            check_complete(analysis)?;
            return TrackedBlocks::of_series(analysis, &parts, options, detail);
        }
        let input = Input::open(trace)?;
        let refuse = |why: &str| other_trace(input.name(), why, remedy);
        let mut events = input.in_file_order()?;
        check_origin(analysis, events.info()).map_err(refuse)?;
        check_complete(analysis)?;
        if let Some(lifespans) = lifespans_of(&input, options.selection.lifetime)? {
            options.lifespans = Some(lifespans);
            events = input.in_file_order()?;
        }
        let rate = events.info().sample_rate;
        let mut search = Search::new(analysis, events.info(), options, detail);
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
        analysis: &HeapAnalysis,
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
        let mut search = Search::new(analysis, traces.info(), options, detail);
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
    graph: &'a HeapGraph,
    resolver: EventResolver,
    /// The blocks that were not found yet, by their ids.
    wanted: HashMap<u64, u32>,
    /// Each with the rate at which it was sampled.
    blocks: Vec<(TrackedBlock, f64)>,
    stacks: Option<InnerStacks>,
    found: u64,
    of_other_sizes: u64,
}

impl<'a> Search<'a> {
    fn new(
        analysis: &'a HeapAnalysis,
        info: &TraceInfo,
        options: Options,
        detail: Detail,
    ) -> Search<'a> {
        let (resolver, _) = Aggregator::new(info, options).split();
        let wanted = analysis.graph.tracked().iter().map(|&(block, id)| (id, block)).collect();
        let (blocks, graph) = (Vec::new(), &analysis.graph);
        let stacks = (detail == Detail::Stack).then(InnerStacks::default);
        Search { graph, resolver, wanted, blocks, stacks, found: 0, of_other_sizes: 0 }
    }

    fn event(&mut self, event: &Event<'_>, table: &LocationTable, rate: f64) {
        if let EventKind::Alloc(allocation) = &event.kind
            && let Some(block) = self.wanted.remove(&allocation.id)
        {
            self.found += 1;
            self.of_other_sizes += u64::from(!is_as_long(self.graph, block, allocation));
            // Nobody counts by path here: paths that are dropped need not be moved.
            let _ = self.resolver.make_room(event);
            let resolved = self.resolver.resolve(event, table);
            let (id, samples, time) = (allocation.id, allocation.samples, event.time);
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

/// The parts of the series of this trace up to the one that was being written when the snapshot was
/// taken, without a gap; `None` if that is not there, or if the trace is in no series.
fn kept_parts(analysis: &HeapAnalysis, trace: &Path) -> Option<Vec<InputFile>> {
    let own = PartOnDisk::of(trace)?;
    let mut parts = PartOnDisk::all_in(directory_of(trace));
    parts.retain(|part| part.head.series == own.head.series);
    let last = parts.iter().find(|part| was_written(analysis, part))?.head.part;
    parts.retain(|part| part.head.part <= last);
    parts.sort_by_key(|part| part.head.part);
    let follows = |pair: &[PartOnDisk]| pair[0].head.part + 1 == pair[1].head.part;
    let first = parts.windows(2).rposition(|pair| !follows(pair)).map_or(0, |at| at + 1);
    let file = |part: PartOnDisk| InputFile { path: part.trace, found: true };
    Some(parts.into_iter().skip(first).map(file).collect())
}

/// The part of a series that was being written when the snapshot was taken, if it is among these files.
pub(crate) fn part_of_snapshot(analysis: &HeapAnalysis, files: &[InputFile]) -> Option<PathBuf> {
    let mut parts = files.iter().filter_map(|file| PartOnDisk::of(&file.path));
    parts.find(|part| was_written(analysis, part)).map(|part| part.trace)
}

/// The same among the files of a directory.
pub(crate) fn part_in(analysis: &HeapAnalysis, directory: &Path) -> Option<PathBuf> {
    let parts = PartOnDisk::all_in(directory);
    parts.into_iter().find(|part| was_written(analysis, part)).map(|part| part.trace)
}

fn was_written(analysis: &HeapAnalysis, part: &PartOnDisk) -> bool {
    analysis.graph.facts().number(MetaKey::TRACE_START) == Some(part.head.start_time)
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
