//! Counts events whose call paths are known.
//!
//! The second half of an aggregation, after [`crate::EventResolver`]: it tracks blocks
//! while they are alive, and drives [`crate::block_counter`], which has the figures.

use std::ops::Range;

use heaptap_trace::Source;

use crate::aggregate::Aggregate;
use crate::block_counter::{Birth, BlockCounter, OverTime};
use crate::blocks::recorder::Recorder;
use crate::blocks::{BlockRow, BlockTable, NEVER};
use crate::counts::{Counts, Tallies};
use crate::ids::IdMap;
use crate::live::{LiveObject, LiveObjects};
use crate::paths::PathMoves;
use crate::resolver::{ResolvedEvent, ResolvedKind, before_start, since_start};
use crate::trace_ending::TraceEnding;

/// The second half of an aggregation. See [`crate::Aggregator::split`].
pub struct EventCounter {
    pub(crate) block_counter: BlockCounter,
    pub(crate) live: LiveObjects,
    /// How long before the start of the trace blocks were allocated that are alive and older.
    pub(crate) older: IdMap<u64>,
    /// Records the table of blocks, if one is wanted.
    pub(crate) recorder: Option<Recorder>,
    /// The path of blocks that were promoted, if paths are sources.
    pub(crate) promoted_path: Option<u32>,
}

impl EventCounter {
    /// Takes the next event.
    #[inline]
    pub fn event(&mut self, event: &ResolvedEvent) {
        self.block_counter.aggregate.events += 1;
        let time = since_start(event.time);
        self.block_counter.advance(time, self.live.level());
        match event.kind {
            ResolvedKind::Alloc(source) => self.allocate(event, source),
            ResolvedKind::Promote => self.promote(time, event),
            ResolvedKind::Collect => self.collect(time, event.id),
            ResolvedKind::Other => {}
        }
    }

    #[inline]
    fn allocate(&mut self, event: &ResolvedEvent, source: Source) {
        let &ResolvedEvent { id, length, samples: rated, path, frames, domain, .. } = event;
        let samples = rated.count();
        let (time, before) = (since_start(event.time), before_start(event.time));
        let Aggregate { counts, classes, growth, rates, .. } = &mut self.block_counter.aggregate;
        let sampled = rates.weight(rated.rate()).times(samples);
        let class = classes.number(domain, source);
        if path as usize >= counts.len() {
            counts.resize(path as usize + 1);
            growth.add_path(path, frames);
        }
        // What was alive when the trace started was not allocated in it.
        if before == 0 {
            let birth = Birth { time, path, samples, sampled, length, source, class };
            self.block_counter.allocate(birth);
        } else {
            self.older.insert(id, before);
        }
        if let Some(recorder) = &mut self.recorder {
            let (birth, promotion, death) = (time, NEVER, NEVER);
            recorder.born(BlockRow {
                id,
                birth,
                promotion,
                death,
                length,
                samples: rated,
                path,
                domain,
                source,
                ended: false,
            });
        }
        if self.live.is_full() {
            self.thin();
        }
        if self.live.is_tracked(id, rated) {
            let object = LiveObject::new(time, path, samples, source);
            self.born(id, object.of_class(class), rated.rate());
        }
    }

    /// Tracks a new object.
    #[inline]
    fn born(&mut self, id: u64, object: LiveObject, rate: u32) {
        if let Some(other) = self.live.insert(id, object, rate) {
            self.block_counter.removed(&other);
        }
        self.block_counter.born(&self.live.block(id, object), self.live.level());
    }

    fn promote(&mut self, time: u64, event: &ResolvedEvent) {
        let id = event.id;
        if let Some(recorder) = &mut self.recorder {
            recorder.promoted(id, time);
        }
        if let Some(object) = self.live.get_mut(id)
            && object.promote()
        {
            let before = *object;
            let class = self.block_counter.aggregate.classes.promoted(before.class());
            *object = object.of_class(class);
            self.promoted_path.into_iter().for_each(|path| object.set_path(path));
            let after = *object;
            let block = self.live.block(id, before);
            if before_start(event.time) == 0 {
                self.block_counter.promoted(&block);
            }
            if (class, after.path()) != (before.class(), before.path()) {
                self.block_counter.moved(&block, &self.live.block(id, after));
            }
        }
    }

    #[inline]
    fn collect(&mut self, time: u64, id: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.died(id, time);
        }
        let before = if self.older.is_empty() { None } else { self.older.remove(&id) };
        let Some(block) = self.live.remove(id) else { return };
        self.block_counter.died(&block, time, before.unwrap_or(0));
    }

    /// Takes the end of one of several traces, whose blocks have these ids. If its
    /// process is over, what it still has is not alive any more, but it counts as
    /// alive at the end. Takes time in proportion to the live objects.
    pub fn end_trace(&mut self, ids: Range<u64>, ending: TraceEnding) {
        if let Some(recorder) = &mut self.recorder {
            recorder.trace_ended(&ids, self.block_counter.aggregate.end, ending);
        }
        // Survivors are the evidence for leaks.
        let keep = self.block_counter.over_time() == OverTime::LiveSize;
        self.block_counter.ended(&self.live.end(&ids, keep), keep, ending);
    }

    /// Renumbers paths, after the resolver has dropped the lightest.
    pub fn move_paths(&mut self, moves: &PathMoves) {
        let aggregate = &mut self.block_counter.aggregate;
        aggregate.settle_peak();
        let are_mixed = aggregate.counts.are_mixed();
        let mut counts = Tallies::filled(are_mixed, moves.count, Counts::default());
        for (old, &to) in aggregate.counts.iter().zip(&moves.to) {
            counts.take(to as usize, &old);
        }
        aggregate.counts = counts;
        aggregate.growth.move_paths(moves);
        aggregate.flows.move_paths(moves);
        self.live.move_paths(moves);
        if let Some(recorder) = &mut self.recorder {
            recorder.move_paths(moves);
        }
    }

    /// Halves the objects that are tracked when there are too many, and counts what
    /// is alive anew from those that are left.
    fn thin(&mut self) {
        self.live.thin();
        self.block_counter.recount(self.live.iter(), self.live.level());
    }

    /// Brings the aggregate up to date.
    pub(crate) fn settle(&mut self) {
        self.block_counter.settle(self.live.iter(), self.live.level(), &self.older);
    }

    /// The table of blocks so far.
    pub(crate) fn blocks(&self) -> &BlockTable {
        static NONE: BlockTable = BlockTable::EMPTY;
        self.recorder.as_ref().map_or(&NONE, Recorder::table)
    }

    /// The aggregate and the table of blocks after the last event.
    pub(crate) fn finish(mut self) -> (Aggregate, BlockTable) {
        self.settle();
        self.block_counter.aggregate.frames.drop_index();
        let blocks = self.recorder.map(Recorder::finish).unwrap_or_default();
        (self.block_counter.aggregate, blocks)
    }
}
