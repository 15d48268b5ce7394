//! A mutator: the hooks of one thread or domain.
//!
//! Used by one thread at a time: its own, or the collector's while the mutator
//! is stopped. Hooks do not malloc, lock or unwind, and make no system call
//! except to wait for the writer thread. The methods for the start and end of a
//! mutator may do all of these.
//!
//! The host's fast paths look only at the young limit and at the number that
//! [`Countdown`] counts down. Once the session is over both are set so that
//! no hook is called again.

use std::sync::Arc;

use heaptap_trace::Source;

use crate::blocks::{Fate, Generations};
use crate::queue::{EndWord, Part};
use crate::sampling::{Countdown, Gaps, PartSizes, SampledPart, WORD, YoungSamples};
use crate::stack::native::Registers;
use crate::tracer::backtraces::{Backtraces, StackSource};
use crate::tracer::failure::Failure;
use crate::tracer::hook::HookContext;
use crate::tracer::lane_writer::LaneWriter;
use crate::tracer::options::{Follow, Options};
use crate::tracer::recorder::{Followed, Recorder, SampledBlock};
use crate::tracer::session::Session;
use crate::tracer::stopwatch::Stopwatch;

/// The largest block, in words: half a tebibyte. A host that reports a larger
/// one is mistaken.
const MAX_WORDS: usize = 1 << 36;

/// One in this many allocation hooks is timed.
const TIMED_EVERY: u32 = 32;

/// The session's options for young blocks, next to the other state of a hook.
struct YoungBlocks {
    /// Bytes in front of where the runtime sees a block.
    header_bytes: usize,
    /// Whether the parts of a combined allocation have locations of their own.
    has_parts: bool,
}

impl YoungBlocks {
    fn new(options: &Options) -> YoungBlocks {
        YoungBlocks {
            header_bytes: options.header_words * WORD,
            has_parts: options.parts_have_places,
        }
    }
}

/// A block whose words were taken off the countdown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllocatedBlock {
    pub(crate) source: Source,
    /// Where the runtime sees it.
    pub(crate) address: usize,
    /// Header included.
    pub(crate) words: usize,
}

/// One mutator.
pub(crate) struct Mutator {
    gaps: Gaps,
    young: YoungSamples,
    young_blocks: YoungBlocks,
    stopwatch: Stopwatch,
    /// How many more calls of `suspend` there were than of `resume`.
    suspended: u32,
    /// How many allocation hooks there were, modulo 2³².
    alloc_hooks: u32,
    session: Arc<Session>,
    recorder: Recorder,
}

impl Mutator {
    /// Starts a mutator. It adopts the blocks that ended ones have left.
    pub(crate) fn start(session: &Arc<Session>, source: StackSource) -> Result<Mutator, Failure> {
        if !session.is_live() {
            return Err(Failure::Off);
        }
        let options = &session.options;
        let backtraces = Backtraces::new(source, options.max_frames, options.native_frames)
            .ok_or(Failure::Memory)?;
        let blocks = Generations::new().ok_or(Failure::Memory)?;
        let producer = session.channel.producer().ok_or(Failure::Mutators)?;
        if options.one_mutator && producer.lane() != 0 {
            return Err(Failure::Mutators);
        }
        let registered = session.registry().register(producer.lane());
        let lane = LaneWriter {
            producer,
            counters: registered.counters,
            state: Arc::clone(&session.state),
            when_full: options.when_full,
        };
        let recorder = Recorder {
            tables: Arc::clone(&session.tables),
            directory: Arc::clone(&session.directory),
            has_headers: options.header_words > 0,
            young_followed: Followed::usually(Source::Minor, options.follow),
            backtraces,
            blocks,
            lane,
            number: registered.number,
        };
        let mut mutator = Mutator {
            gaps: Gaps::new(session.rate(), options.seed, registered.stream),
            young: YoungSamples::NONE,
            young_blocks: YoungBlocks::new(options),
            stopwatch: session.stopwatch,
            suspended: 0,
            alloc_hooks: 0,
            session: Arc::clone(session),
            recorder,
        };
        mutator.adopt_orphans();
        Ok(mutator)
    }

    /// The mutator that continues this one in a session of a forked child. It has
    /// none of this one's blocks.
    pub(crate) fn restart_in(&mut self, session: &Arc<Session>) -> Result<Mutator, Failure> {
        let source = std::mem::replace(&mut self.recorder.backtraces.source, StackSource::None);
        let mut fresh = Mutator::start(session, source)?;
        fresh.suspended = self.suspended;
        fresh.young = YoungSamples::lost_count(self.young.start());
        fresh.set_label(self.recorder.backtraces.label);
        Ok(fresh)
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub(crate) fn has_forked(&self) -> bool {
        self.recorder.lane.state.has_forked()
    }

    fn is_live(&self) -> bool {
        self.recorder.lane.state.is_live()
    }

    // --- Allocations ---

    /// The value with which the countdown starts.
    pub(crate) fn countdown(&mut self) -> isize {
        Countdown::start(&mut self.gaps)
    }

    /// The host has moved the young pointer. Returns the limit to install.
    pub(crate) fn renew(&mut self, pointer: usize, start: usize) -> usize {
        self.young.renew(&mut self.gaps, pointer, start);
        if self.is_live() { self.young.limit() } else { start }
    }

    /// The parts, in the order of their addresses from `pointer` on, went below
    /// the limit. Returns the limit to install, which is valid even if a sample
    /// was lost.
    pub(crate) fn young_hit(
        &mut self,
        pointer: usize,
        parts: impl PartSizes,
        registers: Registers,
    ) -> Result<(usize, Result<(), Failure>), Failure> {
        if !self.young.is_set() {
            return Err(Failure::Order);
        }
        if !self.is_live() {
            return Ok((self.young.start(), Ok(())));
        }
        let mut hook = self.enter(registers);
        let mut outcome = Ok(());
        let Mutator { gaps, young, young_blocks, suspended, recorder, .. } = self;
        let &mut YoungBlocks { header_bytes, has_parts } = young_blocks;
        let records_part = has_parts && parts.len() > 1;
        young.hit(gaps, pointer, parts, |_, sampled| {
            if *suspended != 0 {
                return;
            }
            let SampledPart { index, address, words, samples } = sampled;
            let address = address.saturating_add(header_bytes);
            let part = if records_part { Part::of_index(index) } else { Part::NONE };
            let recorded = recorder.record_young_alloc(&mut hook, address, words, samples, part);
            outcome = outcome.and(recorded);
        });
        self.leave_alloc(&hook);
        Ok((self.young.limit(), outcome))
    }

    /// An allocation outside the young heap has made the countdown negative.
    pub(crate) fn hit(
        &mut self,
        left: &mut isize,
        block: AllocatedBlock,
        registers: Registers,
    ) -> Result<(), Failure> {
        let followed = Followed::usually(block.source, self.session.options.follow);
        self.hit_followed(left, block, followed, registers)
    }

    /// The same for a block that is followed in a certain way.
    pub(crate) fn hit_followed(
        &mut self,
        left: &mut isize,
        block: AllocatedBlock,
        followed: Followed,
        registers: Registers,
    ) -> Result<(), Failure> {
        let AllocatedBlock { source, address, words } = block;
        if !self.is_live() {
            *left = Countdown::NEVER;
            return Ok(());
        }
        if words > MAX_WORDS {
            *left = Countdown::start(&mut self.gaps);
            return Err(Failure::Option);
        }
        let Some(samples) = Countdown::hit(&mut self.gaps, left, words) else {
            *left = Countdown::start(&mut self.gaps);
            return Err(Failure::Order);
        };
        if self.suspended != 0 {
            return Ok(());
        }
        let mut hook = self.enter(registers);
        let block = SampledBlock { source, address, words, samples, followed, part: Part::NONE };
        let outcome = self.recorder.record_alloc(&mut hook, &block);
        self.leave_alloc(&hook);
        outcome
    }

    // --- Collections ---

    /// After a minor collection.
    pub(crate) fn sweep_young(&mut self, fate: impl FnMut(usize) -> Fate) -> Result<(), Failure> {
        self.check_follow(Follow::Sweeps)?;
        let mut hook = self.enter(Registers::NONE);
        self.recorder.sweep_young(&mut hook, fate);
        self.leave(&hook);
        Ok(())
    }

    /// After marking or compaction.
    pub(crate) fn sweep_major(&mut self, fate: impl FnMut(usize) -> Fate) -> Result<(), Failure> {
        self.check_follow(Follow::Sweeps)?;
        let mut hook = self.enter(Registers::NONE);
        self.recorder.sweep_major(&mut hook, fate);
        self.leave(&hook);
        Ok(())
    }

    /// The addresses of the major blocks, for a collector that updates them
    /// itself. They do not move until the mutator is used again.
    pub(crate) fn major_addresses(&mut self) -> impl Iterator<Item = &mut usize> {
        self.recorder.blocks.major_addresses()
    }

    /// External memory is about to be released.
    pub(crate) fn external_free(&mut self, address: usize) {
        if let Some(id) = self.recorder.directory.take(address) {
            self.record_end(EndWord::collected(id));
        }
    }

    /// A block that is followed by its address was collected.
    pub(crate) fn block_collect(&mut self, address: usize) -> Result<(), Failure> {
        self.check_follow(Follow::Addresses)?;
        self.external_free(address);
        Ok(())
    }

    /// A block that is followed by its address has moved, and may have been
    /// promoted.
    pub(crate) fn block_move(
        &mut self,
        from: usize,
        to: usize,
        promoted: bool,
    ) -> Result<(), Failure> {
        self.check_follow(Follow::Addresses)?;
        let Some(id) = self.recorder.directory.take(from) else { return Ok(()) };
        if promoted {
            self.record_end(EndWord::promoted(id));
        }
        let kept = self.recorder.directory.add(to, id);
        if kept { Ok(()) } else { Err(Failure::Memory) }
    }

    fn check_follow(&self, follow: Follow) -> Result<(), Failure> {
        if !self.is_live() {
            return Err(Failure::Off);
        }
        if self.session.options.follow == follow { Ok(()) } else { Err(Failure::Order) }
    }

    fn record_end(&mut self, end: EndWord) {
        if self.is_live() {
            let mut hook = self.enter(Registers::NONE);
            self.recorder.record_end(&mut hook, end);
            self.leave(&hook);
        }
    }

    // --- The host's requests ---

    /// Samples are not recorded until [`Mutator::resume`] was called as often.
    pub(crate) fn suspend(&mut self) -> Result<(), Failure> {
        self.suspended = self.suspended.checked_add(1).ok_or(Failure::Order)?;
        Ok(())
    }

    pub(crate) fn resume(&mut self) -> Result<(), Failure> {
        self.suspended = self.suspended.checked_sub(1).ok_or(Failure::Order)?;
        Ok(())
    }

    /// Sets the label of the work that the mutator does from now on; 0 for none.
    pub(crate) fn set_label(&mut self, label: u32) {
        self.recorder.backtraces.label = label;
    }

    // --- The end of a mutator ---

    /// Adopts the blocks of another mutator, which ends.
    pub(crate) fn adopt(&mut self, other: &mut Mutator) {
        // Without memory for them the blocks stay alive in the trace.
        self.recorder.blocks.adopt(&mut other.recorder.blocks);
        self.recorder.count_blocks();
    }

    /// Adopts the blocks that ended mutators have left.
    pub(crate) fn adopt_orphans(&mut self) {
        if !self.session.has_orphans() {
            return;
        }
        let Mutator { session, recorder, .. } = self;
        session.with_orphans(|orphans| {
            recorder.blocks.adopt(orphans);
        });
        recorder.count_blocks();
    }

    /// Before its end: records the ends that were held back.
    pub(crate) fn settle(&mut self) {
        let mut hook = self.enter(Registers::NONE);
        self.recorder.settle(&mut hook);
    }

    /// Leaves its blocks to the next mutator that starts or adopts orphans.
    pub(crate) fn leave_blocks_to_session(&mut self) {
        let Mutator { session, recorder, .. } = self;
        if recorder.blocks.is_empty() {
            return;
        }
        session.with_orphans(|orphans| {
            orphans.adopt(&mut recorder.blocks);
        });
        recorder.count_blocks();
    }

    /// Gives its lane back. What it recorded will be written.
    pub(crate) fn end(self) {
        let Mutator { session, recorder: Recorder { lane, number, .. }, .. } = self;
        let LaneWriter { producer, counters, .. } = lane;
        if session.has_forked() {
            producer.abandon();
            return;
        }
        session.registry().remove(producer.lane(), number, &counters);
        producer.end();
    }

    // --- The time spent in hooks ---

    fn enter(&self, registers: Registers) -> HookContext {
        HookContext::at(self.stopwatch.ticks(), registers)
    }

    fn leave(&self, hook: &HookContext) {
        self.recorder.lane.counters.hook_ticks.add(self.ticks_since(hook));
    }

    /// At the end of an allocation's hook. Reading the clock is a good part of
    /// the cost of such a hook, so one in [`TIMED_EVERY`] is timed and stands for
    /// all.
    fn leave_alloc(&mut self, hook: &HookContext) {
        self.alloc_hooks = self.alloc_hooks.wrapping_add(1);
        if self.alloc_hooks.is_multiple_of(TIMED_EVERY) {
            let ticks = self.ticks_since(hook) * u64::from(TIMED_EVERY);
            self.recorder.lane.counters.hook_ticks.add(ticks);
        }
    }

    fn ticks_since(&self, hook: &HookContext) -> u64 {
        self.stopwatch.ticks().saturating_sub(hook.ticks)
    }
}
