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
//!
//! Allocations are here, those in heaps that are filled upwards in `upward`. `collections` has the
//! hooks of collections, `addresses` those of blocks that are freed one by one, `detached` blocks that
//! are being resized, `tags` the blocks that carry a tag, `slices` the collector's work, and `handover`
//! the end of a mutator.

mod addresses;
mod collections;
mod detached;
mod handover;
mod slices;
mod tags;
mod upward;

pub(crate) use detached::DetachedBlock;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use heaptap_trace::Source;

use crate::blocks::Generations;
use crate::probes::SliceKind;
use crate::queue::Part;
use crate::sampling::{Countdown, Gaps, PartSizes, SampledPart, WORD, YoungSamples};
use crate::stack::native::Registers;
use crate::tracer::backtraces::{Backtraces, StackSource};
use crate::tracer::failure::Failure;
use crate::tracer::hook::HookContext;
use crate::tracer::lane_writer::LaneWriter;
use crate::tracer::options::Options;
use crate::tracer::recorder::{Recorder, SampledBlock, Tracked};
use crate::tracer::session::Session;
use crate::tracer::stopwatch::Stopwatch;

/// The largest block, in words: half a tebibyte. A host that reports a larger
/// one is mistaken.
const MAX_WORDS: usize = 1 << 36;

/// One in this many allocation hooks is timed.
const TIMED_EVERY: u32 = 32;

/// A timed hook counts as at most so many usual ones.
const UNUSUAL: u64 = 16;

/// So many ticks are always believed: some ten microseconds.
const FIRST_USUAL: u64 = 1 << 15;

/// The session's options for young blocks, next to the other state of a hook.
struct YoungBlocks {
    /// Bytes in front of where the runtime sees a block.
    header_bytes: usize,
    /// Whether the parts of a combined allocation have locations of their own.
    has_parts: bool,
    /// Whether the heap is filled upwards: everything in [`YoungSamples`] is mirrored then.
    upward: bool,
}

impl YoungBlocks {
    fn new(options: &Options) -> YoungBlocks {
        YoungBlocks {
            header_bytes: options.header_words * WORD,
            has_parts: options.parts_have_places,
            upward: false,
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
    /// Its kind, by the number that the host gives it; 0 if it is not known.
    pub(crate) kind: u8,
}

/// The outcome of [`Mutator::young_hit`].
pub(crate) struct YoungHit {
    /// The limit to install, valid even if a sample was lost.
    pub(crate) limit: usize,
    /// Whether every sampled block was recorded.
    pub(crate) recorded: Result<(), Failure>,
}

/// One mutator.
pub(crate) struct Mutator {
    gaps: Gaps,
    /// The bits of the rate by which the next sample in the young heap was placed, and the next one
    /// outside it. Each takes up a new rate where its gap is drawn anew anyway: after a sample, or
    /// where the young pointer has moved. That point depends on nothing that comes after it, and
    /// gaps are memoryless: each word is sampled at exactly one of the rates.
    young_rate: u64,
    countdown_rate: u64,
    young: YoungSamples,
    young_blocks: YoungBlocks,
    stopwatch: Stopwatch,
    /// How many more calls of `suspend` there were than of `resume`.
    suspended: u32,
    /// How many allocation hooks there were, modulo 2³².
    alloc_hooks: u32,
    /// Ticks that one of them takes, by experience.
    usual_ticks: u64,
    session: Arc<Session>,
    recorder: Recorder,
    /// When the collector began what it is doing, by kind of slice.
    slices: [Option<u64>; SliceKind::ALL.len()],
}

impl Mutator {
    /// Starts a mutator. It adopts the blocks that ended ones have left.
    pub(crate) fn start(session: &Arc<Session>, source: StackSource) -> Result<Mutator, Failure> {
        if !session.is_live() {
            return Err(Failure::Off);
        }
        let (options, rate) = (&session.options, session.rate());
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
            by_address: Arc::clone(&session.by_address),
            has_headers: options.header_words > 0,
            young_tracked: Tracked::by_default(Source::Minor, options.tracking),
            backtraces,
            blocks,
            tags: None,
            lane,
            number: registered.number,
            rate: rate.bits(),
            // Another mutator may have had the lane, at another rate.
            known_rate: if session.state.has_many_rates() { 0 } else { rate.bits() },
        };
        let mut mutator = Mutator {
            gaps: Gaps::new(rate, options.seed, registered.stream),
            young_rate: rate.bits(),
            countdown_rate: rate.bits(),
            young: YoungSamples::NONE,
            young_blocks: YoungBlocks::new(options),
            stopwatch: session.stopwatch,
            suspended: 0,
            alloc_hooks: 0,
            usual_ticks: 0,
            session: Arc::clone(session),
            recorder,
            slices: [None; SliceKind::ALL.len()],
        };
        session.time_line.domains.fetch_add(1, Ordering::Relaxed);
        mutator.adopt_orphans();
        Ok(mutator)
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
        self.countdown_rate = self.recorder.lane.state.rate_bits();
        self.gaps.use_rate(self.countdown_rate);
        Countdown::start(&mut self.gaps)
    }

    /// The host has moved the young pointer. Returns the limit to install.
    pub(crate) fn renew(&mut self, pointer: usize, start: usize) -> usize {
        self.young_blocks.upward = false;
        self.place_sample(pointer, start)
    }

    /// Places the next sample below the pointer, and returns the limit.
    fn place_sample(&mut self, pointer: usize, start: usize) -> usize {
        self.young_rate = self.recorder.lane.state.rate_bits();
        self.gaps.use_rate(self.young_rate);
        self.young.renew(&mut self.gaps, pointer, start);
        if self.is_live() { self.young.limit() } else { start }
    }

    /// The parts, in the order of their addresses from `pointer` on, went below
    /// the limit.
    pub(crate) fn young_hit(
        &mut self,
        pointer: usize,
        parts: impl PartSizes,
        registers: Registers,
    ) -> Result<YoungHit, Failure> {
        let has_parts = self.young_blocks.has_parts && parts.len() > 1;
        let part = |index| if has_parts { Part::of_index(index) } else { Part::NONE };
        self.young_hit_of_parts(pointer, parts, part, registers)
    }

    /// The same where `kind` returns the kind of each part by its index.
    pub(crate) fn young_hit_of_kinds(
        &mut self,
        pointer: usize,
        parts: impl PartSizes,
        kind: impl Fn(usize) -> u8,
        registers: Registers,
    ) -> Result<YoungHit, Failure> {
        self.young_hit_of_parts(pointer, parts, |index| Part::of_kind(kind(index)), registers)
    }

    #[inline(always)]
    fn young_hit_of_parts(
        &mut self,
        pointer: usize,
        parts: impl PartSizes,
        part: impl Fn(usize) -> Part,
        registers: Registers,
    ) -> Result<YoungHit, Failure> {
        if !self.young.is_set() {
            return Err(Failure::Order);
        }
        if !self.is_live() {
            return Ok(YoungHit { limit: self.young.start(), recorded: Ok(()) });
        }
        let mut hook = self.enter(registers);
        let mut recorded = Ok(());
        self.gaps.use_rate(self.young_rate);
        self.recorder.rate = self.young_rate;
        let Mutator { gaps, young, young_blocks, suspended, recorder, .. } = self;
        let &mut YoungBlocks { header_bytes, upward, .. } = young_blocks;
        young.hit(gaps, pointer, parts, |_, sampled| {
            if *suspended != 0 {
                return;
            }
            let address = if upward { upward::start_of(&sampled) } else { sampled.address };
            let SampledPart { index, words, samples, .. } = sampled;
            let address = address.saturating_add(header_bytes);
            let block =
                recorder.record_young_alloc(&mut hook, address, words, samples, part(index));
            recorded = recorded.and(block);
        });
        self.leave_alloc(&hook);
        if self.recorder.lane.state.rate_bits() != self.young_rate {
            self.place_sample(pointer, self.young.start());
        }
        Ok(YoungHit { limit: self.young.limit(), recorded })
    }

    /// An allocation outside the young heap has made the countdown negative.
    pub(crate) fn hit(
        &mut self,
        left: &mut isize,
        block: AllocatedBlock,
        registers: Registers,
    ) -> Result<(), Failure> {
        let tracked = Tracked::by_default(block.source, self.session.options.tracking);
        self.hit_tracked(left, block, tracked, registers)
    }

    /// The same for a block that is tracked in a certain way.
    pub(crate) fn hit_tracked(
        &mut self,
        left: &mut isize,
        block: AllocatedBlock,
        tracked: Tracked,
        registers: Registers,
    ) -> Result<(), Failure> {
        let AllocatedBlock { source, address, words, kind } = block;
        if !self.is_live() {
            *left = Countdown::NEVER;
            return Ok(());
        }
        if words > MAX_WORDS {
            *left = self.countdown();
            return Err(Failure::Option);
        }
        let rate = self.countdown_rate;
        self.gaps.use_rate(rate);
        let Some(samples) = Countdown::hit(&mut self.gaps, left, words) else {
            *left = self.countdown();
            return Err(Failure::Order);
        };
        if self.recorder.lane.state.rate_bits() != rate {
            *left = self.countdown();
        }
        if self.suspended != 0 {
            return Ok(());
        }
        let mut hook = self.enter(registers);
        self.recorder.rate = rate;
        let block =
            SampledBlock { source, address, words, samples, tracked, part: Part::of_kind(kind) };
        let outcome = self.recorder.record_alloc(&mut hook, &block);
        self.leave_alloc(&hook);
        outcome
    }

    /// The same under a stack that the host has captured: its codes, innermost first.
    pub(crate) fn hit_at(
        &mut self,
        left: &mut isize,
        block: AllocatedBlock,
        codes: &[u64],
    ) -> Result<(), Failure> {
        let captured = self.recorder.backtraces.capture(codes);
        let outcome = self.hit(left, block, Registers::NONE);
        self.recorder.backtraces.forget_captured();
        captured.and(outcome)
    }

    /// Words have gone by unseen, beyond those that certainly held no sample: the next one is drawn
    /// anew, which is as good.
    pub(crate) fn skipped(&mut self, left: &mut isize) {
        *left = if self.is_live() { self.countdown() } else { Countdown::NEVER };
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

    // --- The time spent in hooks ---

    fn enter(&self, registers: Registers) -> HookContext {
        HookContext::at(self.stopwatch.ticks(), registers)
    }

    fn leave(&self, hook: &HookContext) {
        self.recorder.lane.counters.hook_ticks.add(self.ticks_since(hook));
    }

    /// At the end of an allocation's hook. Reading the clock is a good part of
    /// the cost of such a hook, so one in [`TIMED_EVERY`] is timed and stands for
    /// all. The clock goes on while the thread waits for a processor or for the writer, so that
    /// one such hook would seem to be an expensive one 32 times: what is much longer than usual
    /// counts as [`UNUSUAL`] usual ones, from which the usual grows if it stays so.
    fn leave_alloc(&mut self, hook: &HookContext) {
        self.alloc_hooks = self.alloc_hooks.wrapping_add(1);
        if self.alloc_hooks.is_multiple_of(TIMED_EVERY) {
            let most = (self.usual_ticks * UNUSUAL).max(FIRST_USUAL);
            let ticks = self.ticks_since(hook).min(most);
            self.usual_ticks = (self.usual_ticks * 7 + ticks) / 8;
            self.recorder.lane.counters.hook_ticks.add(ticks * u64::from(TIMED_EVERY));
        }
    }

    fn ticks_since(&self, hook: &HookContext) -> u64 {
        self.stopwatch.ticks().saturating_sub(hook.ticks)
    }
}
