//! A mutator: what the hooks of one thread or domain do.
//!
//! Used by one thread at a time: its own, or the collector's while it stands
//! still. The host's fast paths look only at the young limit and at the number
//! that [`Countdown`] counts; both are set so that nothing more is called once
//! the session is over.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use heaptap_trace::Source;

use crate::blocks::Fate;
use crate::queue::{EndWord, Part};
use crate::sampling::{Countdown, Gaps, PartSizes, SampledPart, WORD, YoungSamples};
use crate::stack::native::Registers;
use crate::tracer::backtraces::StackSource;
use crate::tracer::failure::Failure;
use crate::tracer::options::{Follow, Options};
use crate::tracer::recorder::{Followed, HookContext, Recorder, Sampled};
use crate::tracer::session::{Session, Stopwatch};

/// The largest block, in words: half a tebibyte. A host that says more is
/// mistaken.
const MAX_WORDS: usize = 1 << 36;

/// Of so many hooks of allocations one is timed.
const TIMED: u32 = 32;

/// What of the session's options concerns young blocks, at hand for every sample.
struct YoungBlocks {
    /// Bytes in front of where the runtime sees a block.
    header: usize,
    /// Whether parts of a combined allocation are told apart.
    tell_parts: bool,
}

impl YoungBlocks {
    fn of(options: &Options) -> YoungBlocks {
        YoungBlocks { header: options.header_words * WORD, tell_parts: options.parts_have_places }
    }
}

/// One mutator.
pub(crate) struct Mutator {
    gaps: Gaps,
    young: YoungSamples,
    young_blocks: YoungBlocks,
    stopwatch: Stopwatch,
    suspended: u32,
    /// Hooks of allocations so far.
    allocs: u32,
    pub(crate) recorder: Recorder,
}

impl Mutator {
    pub(crate) fn new(gaps: Gaps, recorder: Recorder) -> Mutator {
        let young_blocks = YoungBlocks::of(&recorder.session.options);
        let (young, stopwatch) = (YoungSamples::NONE, recorder.session.stopwatch);
        Mutator { gaps, young, young_blocks, stopwatch, suspended: 0, allocs: 0, recorder }
    }

    /// The countdown to start with.
    pub(crate) fn countdown(&mut self) -> isize {
        Countdown::start(&mut self.gaps)
    }

    /// The young pointer was moved: returns the limit.
    pub(crate) fn renew(&mut self, pointer: usize, start: usize) -> usize {
        self.young.renew(&mut self.gaps, pointer, start);
        if self.is_live() { self.young.limit() } else { start }
    }

    fn is_live(&self) -> bool {
        self.recorder.state.is_live()
    }

    /// The parts, in the order of their addresses from `pointer` on, went below
    /// the limit: returns the new one, which is right even if a sample was lost.
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
        let &mut YoungBlocks { header, tell_parts } = young_blocks;
        let tell_part = tell_parts && parts.len() > 1;
        young.hit(gaps, pointer, parts, |_, sampled| {
            if *suspended != 0 {
                return;
            }
            let SampledPart { index, address, words, samples } = sampled;
            let address = address.saturating_add(header);
            let part = if tell_part { Part::of_index(index) } else { Part::NONE };
            outcome = outcome.and(recorder.young(&mut hook, address, words, samples, part));
        });
        self.leave_alloc(&hook);
        Ok((self.young.limit(), outcome))
    }

    /// An allocation outside the young heap has made the countdown negative.
    pub(crate) fn hit(
        &mut self,
        left: &mut isize,
        (source, address, words): (Source, usize, usize),
        registers: Registers,
    ) -> Result<(), Failure> {
        let followed = Followed::usually(source, self.recorder.session.options.follow);
        self.hit_followed(left, (source, address, words), followed, registers)
    }

    /// The same, of a block that is followed in this way.
    pub(crate) fn hit_followed(
        &mut self,
        left: &mut isize,
        (source, address, words): (Source, usize, usize),
        followed: Followed,
        registers: Registers,
    ) -> Result<(), Failure> {
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
        let block = Sampled { source, address, words, samples, followed, part: Part::NONE };
        let outcome = self.recorder.alloc(&mut hook, &block);
        self.leave_alloc(&hook);
        outcome
    }

    /// After a minor collection.
    pub(crate) fn sweep_young(&mut self, fate: impl FnMut(usize) -> Fate) -> Result<(), Failure> {
        self.following(Follow::Sweeps)?;
        let mut hook = self.enter(Registers::NONE);
        self.recorder.sweep_young(&mut hook, fate);
        self.leave(&hook);
        Ok(())
    }

    /// After marking or compacting.
    pub(crate) fn sweep_major(&mut self, fate: impl FnMut(usize) -> Fate) -> Result<(), Failure> {
        self.following(Follow::Sweeps)?;
        let mut hook = self.enter(Registers::NONE);
        self.recorder.sweep_major(&mut hook, fate);
        self.leave(&hook);
        Ok(())
    }

    /// Where the addresses of the major blocks are kept, for a collector that
    /// changes them itself. They stay where they are until the mutator is used
    /// again.
    pub(crate) fn major_addresses(&mut self) -> impl Iterator<Item = &mut usize> {
        self.recorder.major_addresses()
    }

    /// External memory is about to be released.
    pub(crate) fn external_free(&mut self, address: usize) {
        if let Some(id) = self.recorder.session.directory.take(address) {
            self.report(EndWord::collected(id));
        }
    }

    /// A block followed by its address was collected.
    pub(crate) fn block_collect(&mut self, address: usize) -> Result<(), Failure> {
        self.following(Follow::Addresses)?;
        self.external_free(address);
        Ok(())
    }

    /// A block followed by its address has moved, and perhaps was promoted.
    pub(crate) fn block_move(
        &mut self,
        from: usize,
        to: usize,
        promoted: bool,
    ) -> Result<(), Failure> {
        self.following(Follow::Addresses)?;
        let Some(id) = self.recorder.session.directory.take(from) else { return Ok(()) };
        if promoted {
            self.report(EndWord::promoted(id));
        }
        let kept = self.recorder.session.directory.add(to, id);
        if kept { Ok(()) } else { Err(Failure::Memory) }
    }

    fn following(&self, follow: Follow) -> Result<(), Failure> {
        if !self.is_live() {
            return Err(Failure::Off);
        }
        if self.recorder.session.options.follow == follow { Ok(()) } else { Err(Failure::Order) }
    }

    fn report(&mut self, end: EndWord) {
        if self.is_live() {
            let mut hook = self.enter(Registers::NONE);
            self.recorder.end(&mut hook, end);
            self.leave(&hook);
        }
    }

    /// Samples are not recorded until it is resumed as often.
    pub(crate) fn suspend(&mut self) -> Result<(), Failure> {
        self.suspended = self.suspended.checked_add(1).ok_or(Failure::Order)?;
        Ok(())
    }

    pub(crate) fn resume(&mut self) -> Result<(), Failure> {
        self.suspended = self.suspended.checked_sub(1).ok_or(Failure::Order)?;
        Ok(())
    }

    /// What the mutator is doing from now on; 0 for nothing.
    pub(crate) fn label(&mut self, label: u32) {
        self.recorder.stacks.label = label;
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.recorder.session
    }

    /// Takes over what another mutator, which ends, leaves.
    pub(crate) fn adopt(&mut self, other: &mut Mutator) {
        // Without memory for them the blocks stay alive in the trace.
        self.recorder.blocks.adopt(&mut other.recorder.blocks);
        self.recorder.count_blocks();
    }

    /// Takes over what ended mutators have left.
    pub(crate) fn adopt_orphans(&mut self) {
        let session = Arc::clone(self.session());
        if !session.has_orphans() {
            return;
        }
        let mut registry = session.lock();
        if self.recorder.blocks.adopt(&mut registry.orphans) {
            session.has_orphans.store(false, Ordering::Release);
            self.recorder.count_blocks();
        }
    }

    /// Before it ends: tells what it has not yet told.
    pub(crate) fn settle(&mut self) {
        let mut hook = self.enter(Registers::NONE);
        self.recorder.settle(&mut hook);
    }

    /// Leaves its blocks to whoever comes next.
    pub(crate) fn leave_blocks_to_session(&mut self) {
        if self.recorder.blocks.is_empty() {
            return;
        }
        let session = Arc::clone(self.session());
        let mut registry = session.lock();
        if registry.orphans.adopt(&mut self.recorder.blocks) {
            session.has_orphans.store(true, Ordering::Release);
        }
        self.recorder.count_blocks();
    }

    /// Gives its lane back. Everything it told is on its way.
    pub(crate) fn end(self) {
        let Recorder { session, counters, producer, number, .. } = self.recorder;
        if session.has_forked() {
            producer.abandon();
            return;
        }
        session.lock().end(producer.lane(), number, &counters);
        producer.end();
    }

    // --- After a fork ---

    pub(crate) fn has_forked(&self) -> bool {
        self.recorder.state.has_forked()
    }

    /// In a child: goes on in the child's own session, if it has one, with
    /// nothing of what the parent has sampled.
    pub(crate) fn go_on_in_child(&mut self) {
        let Some(session) = self.session().successor() else { return };
        let way = std::mem::replace(&mut self.recorder.stacks.way, StackSource::None);
        let Ok(mut fresh) = session.mutator(way) else { return };
        fresh.suspended = self.suspended;
        fresh.young = YoungSamples::lost_count(self.young.start());
        fresh.recorder.stacks.label = self.recorder.stacks.label;
        std::mem::replace(self, fresh).end();
    }

    fn enter(&self, registers: Registers) -> HookContext {
        HookContext::at(self.stopwatch.ticks(), registers)
    }

    fn leave(&self, hook: &HookContext) {
        self.recorder.counters.hook_ticks.add(self.spent(hook));
    }

    /// At the end of an allocation's hook. Reading the clock is a good part of
    /// what such a hook costs, so one in [`TIMED`] is timed, for all.
    fn leave_alloc(&mut self, hook: &HookContext) {
        self.allocs = self.allocs.wrapping_add(1);
        if self.allocs.is_multiple_of(TIMED) {
            self.recorder.counters.hook_ticks.add(self.spent(hook) * u64::from(TIMED));
        }
    }

    fn spent(&self, hook: &HookContext) -> u64 {
        self.stopwatch.ticks().saturating_sub(hook.ticks())
    }
}
