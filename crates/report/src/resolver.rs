//! From events to blocks with a call path.
//!
//! The first half of an aggregation: it finds the call path of each allocation and
//! whether the block is selected. The second half, [`crate::EventCounter`], counts. Nothing
//! of the second is needed here, so that each half can run on a thread of its own, with
//! [`ResolvedEvent`]s passed from one to the other.

mod common_prefix;
mod last_stacks;
mod own_stacks;
mod recent_sites;

use heaptap_trace::{Allocation, Event, EventKind, LocationTable, Source};

use crate::aggregate::{Frame, frame_of};
use crate::block_counter::OverTime;
use crate::frames::Frames;
use crate::growth::SitePair;
use crate::live::MOST_SAMPLES;
use crate::options::Options;
use crate::paths::{Node, PathMoves, Paths, ROOT};
use crate::rates::RatedSamples;

use last_stacks::LastStacks;

/// An event as the counter takes it: without its backtrace.
#[derive(Clone, Copy, Debug)]
pub struct ResolvedEvent {
    /// Microseconds since the start of the trace, modulo 2⁶⁴: [`since_start`], [`before_start`].
    pub(crate) time: u64,
    pub(crate) id: u64,
    /// Of an allocation: words without the header, and samples.
    pub(crate) length: u64,
    pub(crate) samples: RatedSamples,
    /// The number of the call path of an allocation, and the frames that may be its site, if the
    /// path is new.
    pub(crate) path: u32,
    pub(crate) frames: SitePair,
    pub(crate) domain: u16,
    pub(crate) kind: ResolvedKind,
}

impl ResolvedEvent {
    /// The event of no block.
    const NONE: ResolvedEvent = ResolvedEvent {
        time: 0,
        id: 0,
        length: 0,
        samples: RatedSamples::NONE,
        path: 0,
        frames: SitePair { innermost: 0, own: 0 },
        domain: 0,
        kind: ResolvedKind::Other,
    };
}

/// The time of an event, in microseconds since the start of the trace. What happened before, to
/// blocks that were alive when it started, counts as if it were then.
#[inline(always)]
pub(crate) fn since_start(time: u64) -> u64 {
    (time as i64).max(0) as u64
}

/// How long before the start of the trace an event was, in microseconds; 0 if it was not.
#[inline(always)]
pub(crate) fn before_start(time: u64) -> u64 {
    (time as i64).min(0).unsigned_abs()
}

/// The kinds of event that a counter distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResolvedKind {
    /// The allocation of a block that is selected.
    Alloc(Source),
    Promote,
    Collect,
    /// An event that counts nowhere but passes time.
    Other,
}

/// An allocation event, with the locations that are known at that point.
#[derive(Clone, Copy)]
pub(crate) struct AllocationEvent<'a> {
    /// Microseconds since the start of the trace.
    pub(crate) time: u64,
    pub(crate) domain: u16,
    pub(crate) allocation: &'a Allocation<'a>,
    pub(crate) table: &'a LocationTable,
    /// The number of the rate at which the block was sampled; 0 if there is one rate.
    pub(crate) rate: u32,
}

/// The call tree that paths are found in.
pub(crate) struct TreeMut<'a> {
    pub(crate) frames: &'a mut Frames,
    pub(crate) paths: &'a mut Paths,
}

/// Finds call paths in a tree that somebody else owns.
pub(crate) struct Resolver {
    pub(crate) options: Options,
    /// The time at which the trace starts.
    start: u64,
    word_bytes: u64,
    last_stacks: LastStacks,
}

impl Resolver {
    /// `start`: the time at which the trace starts.
    pub(crate) fn new(options: Options, start: u64, word_bytes: u64) -> Self {
        Resolver { options, start, word_bytes, last_stacks: LastStacks::default() }
    }

    /// Drops the lightest paths if there is no room for those of this event.
    #[inline]
    pub(crate) fn make_room(&mut self, tree: TreeMut<'_>, event: &Event<'_>) -> Option<PathMoves> {
        let TreeMut { frames, paths } = tree;
        let allocates = matches!(event.kind, EventKind::Alloc(_));
        (allocates && paths.is_full()).then(|| {
            self.last_stacks.forget();
            paths.prune(|frame| frames.is_own_code(frame))
        })
    }

    /// Begins anew with an empty tree.
    pub(crate) fn forget_stacks(&mut self) {
        self.last_stacks.forget();
    }

    /// Finds the path of an event. There must be room for it in the tree.
    #[inline]
    pub(crate) fn resolve(
        &mut self,
        tree: TreeMut<'_>,
        event: &Event<'_>,
        table: &LocationTable,
        rate: u32,
    ) -> ResolvedEvent {
        let time = event.time.wrapping_sub(self.start);
        let domain = event.domain;
        let other = |id, kind| ResolvedEvent { time, id, domain, kind, ..ResolvedEvent::NONE };
        match event.kind {
            EventKind::Alloc(allocation) => {
                let event = AllocationEvent { time, domain, allocation: &allocation, table, rate };
                self.resolve_allocation(tree, event)
                    .unwrap_or(other(allocation.id, ResolvedKind::Other))
            }
            EventKind::Promote(id) => other(id, ResolvedKind::Promote),
            EventKind::Collect(id) => other(id, ResolvedKind::Collect),
            // A kind that no report counts.
            _ => other(0, ResolvedKind::Other),
        }
    }

    /// `None` if the block is not selected.
    #[inline]
    fn resolve_allocation(
        &mut self,
        TreeMut { frames, paths }: TreeMut<'_>,
        event: AllocationEvent<'_>,
    ) -> Option<ResolvedEvent> {
        let AllocationEvent { time, domain, allocation, rate, .. } = event;
        let (node, marks) = self.last_stacks.walk(frames, paths, &self.options, event);
        let &Allocation { id, length, source, .. } = allocation;
        let bytes = length.saturating_mul(self.word_bytes);
        let Options { selection, lifespans, .. } = &self.options;
        if !selection.accepts(marks)
            || !selection.accepts_block(since_start(time), bytes, domain, source)
            || lifespans.as_ref().is_some_and(|chosen| !chosen.contains(id))
        {
            return None;
        }
        let samples = allocation.samples.min(MOST_SAMPLES);
        let known = paths.count();
        let path = paths.path(node);
        let rated = RatedSamples::new(samples, rate);
        let rates = &self.options.rates;
        let size = rates.thinning_size(rated);
        paths.allocate_block(path, id, size, rates.weight(rate).times(samples).count);
        let samples = rated;
        let kind = ResolvedKind::Alloc(source);
        let is_new = path as usize == known;
        let frames = if is_new { self.site_pair(frames, paths, node) } else { SitePair::default() };
        Some(ResolvedEvent { time, id, length, samples, path, frames, domain, kind })
    }
}

impl Resolver {
    /// The frames of a path that may be its site.
    fn site_pair(&self, frames: &Frames, paths: &Paths, node: Node) -> SitePair {
        let innermost = paths.frame(node);
        if self.options.over_time != OverTime::LiveSize {
            return SitePair { innermost, own: innermost };
        }
        let up = |&node: &Node| Some(paths.parent(node)).filter(|&parent| parent != ROOT);
        let own = std::iter::successors(Some(node), up)
            .map(|node| paths.frame(node))
            .find(|&frame| frames.is_own_code(frame));
        SitePair { innermost, own: own.unwrap_or(innermost) }
    }
}

/// The first half of an aggregation, with its call tree. See
/// [`crate::Aggregator::split`].
pub struct EventResolver {
    pub(crate) resolver: Resolver,
    pub(crate) frames: Frames,
    pub(crate) paths: Paths,
}

impl EventResolver {
    /// To be called before [`EventResolver::resolve`], for every event. If it returns
    /// new numbers of paths, [`crate::EventCounter::move_paths`] must take them before any
    /// event that is resolved afterwards.
    #[inline]
    pub fn make_room(&mut self, event: &Event<'_>) -> Option<PathMoves> {
        let tree = TreeMut { frames: &mut self.frames, paths: &mut self.paths };
        self.resolver.make_room(tree, event)
    }

    /// Takes the next event, in the order of time.
    #[inline]
    pub fn resolve(&mut self, event: &Event<'_>, table: &LocationTable) -> ResolvedEvent {
        self.resolve_at(event, table, 0)
    }

    /// The same of a trace with several rates, where the last block was sampled at the one with this number:
    /// [`crate::Rates::number`].
    #[inline]
    pub fn resolve_at(
        &mut self,
        event: &Event<'_>,
        table: &LocationTable,
        rate: u32,
    ) -> ResolvedEvent {
        let tree = TreeMut { frames: &mut self.frames, paths: &mut self.paths };
        self.resolver.resolve(tree, event, table, rate)
    }

    /// The frame by which a table groups the block of an event that was just resolved: the one that
    /// allocates it, or its label, domain or source, as [`crate::Depth`] demands. `None` unless the event
    /// allocates a block that is selected.
    pub fn row_frame(&self, event: &ResolvedEvent) -> Option<Frame> {
        matches!(event.kind, ResolvedKind::Alloc(_))
            .then(|| frame_of(&self.frames, &self.paths, self.paths.node(event.path)))
    }
}
