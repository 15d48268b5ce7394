//! From a sampled block to records in the mutator's event buffer.
//!
//! Runs on mutators, inside hooks: no malloc, no locks, and no system calls but
//! those of waiting when the writer has fallen behind and the policy is to wait.
//!
//! Only samples can be dropped, and then before they have a number. What
//! happens to a block that was recorded is never forgotten: if there is no room
//! to say so it is held back, in order, and said later.

use std::sync::Arc;
use std::time::{Duration, Instant};

use heaptap_trace::{End, Source};

use crate::blocks::{Fate, Generations, PendingEnds};
use crate::queue::{
    AllocWords, BUFFER_WORDS, BlockId, EndWord, Part, Producer, Record, Sample, WaitOutcome,
};
use crate::stack::FrameTables;
use crate::stack::native::Registers;
use crate::tracer::backtraces::{Backtrace, MOST_SMALL, Place, Stacks};
use crate::tracer::counters::Counters;
use crate::tracer::failure::Failure;
use crate::tracer::options::{Follow, WhenFull};
use crate::tracer::session::Session;
use crate::tracer::state::State;

/// A sampled block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampled {
    pub(crate) source: Source,
    /// Where the runtime sees it.
    pub(crate) address: usize,
    /// Header included.
    pub(crate) words: usize,
    pub(crate) samples: u64,
    pub(crate) followed: Followed,
    /// Which part of a combined allocation it is, if that is to be told.
    pub(crate) part: Part,
}

/// How a block is followed after its allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Followed {
    /// Until somebody tells its fate by its address.
    ByAddress,
    /// By sweeps of the young blocks.
    Young,
    /// By sweeps of the major blocks.
    Major,
}

impl Followed {
    /// As blocks from this source usually are.
    pub(crate) fn usually(source: Source, follow: Follow) -> Followed {
        match (source, follow) {
            (Source::External, _) | (_, Follow::Addresses) => Followed::ByAddress,
            (Source::Minor, Follow::Sweeps) => Followed::Young,
            (Source::Major, Follow::Sweeps) => Followed::Major,
        }
    }
}

/// Words that an allocation takes besides its frames: those of the time, two
/// stacks and the block.
const MOST_BESIDE_FRAMES: usize = 3 + AllocWords::MAX;

const _: () = assert!(MOST_SMALL <= Sample::MAX_FRAMES);

/// One call into the tracer: what the writer has been told of it.
pub(crate) struct HookContext {
    /// Since the session's start.
    ticks: u64,
    /// Of the hook's caller.
    registers: Registers,
    time_told: bool,
    stack_told: bool,
}

impl HookContext {
    pub(crate) fn at(ticks: u64, registers: Registers) -> HookContext {
        HookContext { ticks, registers, time_told: false, stack_told: false }
    }

    pub(crate) fn ticks(&self) -> u64 {
        self.ticks
    }
}

/// The recording half of a mutator.
pub(crate) struct Recorder {
    pub(crate) session: Arc<Session>,
    /// Of the session, at hand for every sample.
    pub(crate) state: Arc<State>,
    pub(crate) tables: Arc<FrameTables>,
    pub(crate) has_headers: bool,
    /// How young blocks are followed.
    pub(crate) young_followed: Followed,
    pub(crate) counters: Arc<Counters>,
    pub(crate) stacks: Stacks,
    pub(crate) blocks: Generations,
    pub(crate) producer: Producer,
    /// Of the next sampled block.
    pub(crate) number: u64,
}

impl Recorder {
    /// Records a sampled block and follows it from now on.
    pub(crate) fn alloc(&mut self, hook: &mut HookContext, block: &Sampled) -> Result<(), Failure> {
        self.record(hook, *block)
    }

    /// The same for one in the young heap. Nearly all are, and of them much is
    /// known where this is compiled.
    #[inline(never)]
    pub(crate) fn young(
        &mut self,
        hook: &mut HookContext,
        address: usize,
        words: usize,
        samples: u64,
        part: Part,
    ) -> Result<(), Failure> {
        let followed = self.young_followed;
        let source = Source::Minor;
        self.record(hook, Sampled { source, address, words, samples, followed, part })
    }

    #[inline(always)]
    fn record(&mut self, hook: &mut HookContext, block: Sampled) -> Result<(), Failure> {
        self.counters.samples.add(block.samples);
        if self.try_record(hook, block).is_none() {
            self.counters.dropped.add(1);
            return Err(Failure::Lost);
        }
        self.counters.allocations.add(1);
        Ok(())
    }

    #[inline(always)]
    fn try_record(&mut self, hook: &mut HookContext, block: Sampled) -> Option<()> {
        self.tell_held(hook);
        let number = self.number;
        if !self.blocks.reserve(1) || number >= BlockId::MAX_NUMBER {
            return None;
        }
        // The format knows blocks with one word of header, or none.
        let header = usize::from(self.has_headers);
        let length = match block.source {
            Source::Minor | Source::Major => block.words.saturating_sub(header),
            Source::External => block.words,
        };
        let Sampled { source, part, samples, .. } = block;
        let alloc = AllocWords::new(source, part, samples, length as u64);
        if hook.stack_told {
            put(&self.session, &self.counters, &mut self.producer, hook, [], Some(alloc))?;
        } else {
            let place = self.stacks.place();
            if self.tell_with_small_stack(hook, place, alloc).is_none() {
                self.tell_with_stack(hook, place, alloc)?;
            }
        }
        self.number = number + 1;
        self.follow(block, BlockId::new(self.producer.lane(), number));
        Some(())
    }

    #[inline(always)]
    fn follow(&mut self, block: Sampled, id: BlockId) {
        match block.followed {
            Followed::ByAddress => {
                // Without memory the block stays alive in the trace.
                self.session.directory.add(block.address, id);
            }
            Followed::Young => self.blocks.add_young(block.address, id),
            Followed::Major => self.blocks.add_major(block.address, id),
        }
        self.count_blocks();
    }

    /// Tells the time, a small stack and the allocation: the walk puts the stack
    /// where the writer will read it. `None` if the stack is not small or there
    /// is no room, and nothing was told.
    #[inline(always)]
    fn tell_with_small_stack(
        &mut self,
        hook: &mut HookContext,
        place: Place,
        alloc: AllocWords,
    ) -> Option<()> {
        let Recorder { tables, stacks, producer, .. } = self;
        if !stacks.expects_small(place) {
            return None;
        }
        let room = producer.reserve(MOST_SMALL + MOST_BESIDE_FRAMES).ok()?;
        let (head, rest) = room.split_first_chunk_mut()?;
        let count = stacks.take_small(tables, place, rest.first_chunk_mut()?)?;
        let words = if let Some(length) = alloc.small_length() {
            *head = Sample::header(hook.ticks, count, length);
            2 + count
        } else {
            alloc.write_to(rest.get_mut(count..)?)?;
            let [time, stack] = head;
            Record::Time(hook.ticks).encode(std::slice::from_mut(time))?;
            *stack = Record::stack_header(count);
            2 + count + alloc.len()
        };
        producer.commit(words);
        (hook.time_told, hook.stack_told) = (true, true);
        Some(())
    }

    /// Tells the time, the stack as far as it is new, and the allocation: all at
    /// once if they fit a buffer.
    #[inline(never)]
    fn tell_with_stack(
        &mut self,
        hook: &mut HookContext,
        place: Place,
        alloc: AllocWords,
    ) -> Option<()> {
        let Recorder { session, tables, counters, stacks, producer, .. } = self;
        let backtrace = stacks.take(tables, place, hook.registers);
        let told = tell_backtrace(session, counters, producer, hook, &backtrace, alloc);
        if let Err(has) = told {
            // The writer does not have this stack: the next walk must not
            // count on more than it has.
            self.stacks.rewind(has);
            return None;
        }
        hook.stack_told = true;
        Some(())
    }

    /// Tells what was held back, as far as there is room.
    #[inline]
    fn tell_held(&mut self, hook: &mut HookContext) {
        if !self.blocks.ends.is_empty() {
            let Recorder { session, counters, blocks, producer, .. } = self;
            tell_ends(session, counters, producer, hook, &mut blocks.ends);
        }
    }

    /// Tells what is held back even if that means to wait for the writer: nobody
    /// may come back to tell it. Not inside a hook.
    pub(crate) fn settle(&mut self, hook: &mut HookContext) {
        const LONGEST: Duration = Duration::from_secs(10);
        let start = Instant::now();
        self.tell_held(hook);
        while !self.blocks.ends.is_empty() && self.session.is_live() && start.elapsed() < LONGEST {
            self.producer.wait_for_buffer(STEP);
            self.tell_held(hook);
        }
    }

    /// After a minor collection: asks for the fate of the young blocks.
    pub(crate) fn sweep_young(&mut self, hook: &mut HookContext, fate: impl FnMut(usize) -> Fate) {
        let Recorder { session, counters, blocks, producer, .. } = self;
        blocks.sweep_young(fate, |ends| tell_ends(session, counters, producer, hook, ends));
        self.tell_held(hook);
        self.count_blocks();
    }

    /// After marking or compacting: asks for the fate of the major blocks.
    pub(crate) fn sweep_major(&mut self, hook: &mut HookContext, fate: impl FnMut(usize) -> Fate) {
        let Recorder { session, counters, blocks, producer, .. } = self;
        blocks.sweep_major(fate, |ends| tell_ends(session, counters, producer, hook, ends));
        self.tell_held(hook);
        self.count_blocks();
    }

    /// Tells of a block that is followed by its address.
    pub(crate) fn end(&mut self, hook: &mut HookContext, end: EndWord) {
        self.blocks.ends.push(end);
        self.tell_held(hook);
    }

    /// Where the addresses of the major blocks are kept. They stay where they
    /// are until the mutator is used again.
    pub(crate) fn major_addresses(&mut self) -> impl Iterator<Item = &mut usize> {
        self.blocks.major_addresses()
    }

    pub(crate) fn count_blocks(&self) {
        self.counters.live_blocks.set(self.blocks.len() as u64);
    }
}

/// Tells the ends, as many at a time as a buffer has room for; those for which
/// there is none stay.
#[inline(never)]
fn tell_ends(
    session: &Session,
    counters: &Counters,
    producer: &mut Producer,
    hook: &mut HookContext,
    ends: &mut PendingEnds,
) {
    let mut told = 0;
    while let Some(some) = ends.get(told..).filter(|left| !left.is_empty()) {
        let time = usize::from(!hook.time_told);
        let most = some.len() + time;
        let room = match producer.reserve_up_to(most) {
            Ok(room) => room,
            Err(_) => {
                let waited = wait(session, counters, producer);
                let Some(Ok(room)) = waited.map(|()| producer.reserve_up_to(most)) else { break };
                room
            }
        };
        let reserved = room.len();
        let room = if time == 1 { Record::Time(hook.ticks).encode(room) } else { Some(room) };
        let Some(room) = room else { break };
        let (mut promotions, mut collections) = (0, 0);
        for (word, end) in room.iter_mut().zip(some) {
            *word = end.word();
            match end.end() {
                End::Promote => promotions += end.blocks().count,
                End::Collect => collections += end.blocks().count,
            }
        }
        told += room.len();
        producer.commit(reserved);
        hook.time_told = true;
        counters.promotions.add(promotions);
        counters.collections.add(collections);
    }
    ends.remove_first(told);
}

/// Tells a stack and the allocation under it: all at once if they fit a buffer. If
/// there is no room, says how many frames the writer has got.
///
/// Apart from the walk, which needs the room on the stack.
#[inline(never)]
fn tell_backtrace(
    session: &Session,
    counters: &Counters,
    producer: &mut Producer,
    hook: &mut HookContext,
    backtrace: &Backtrace<'_>,
    alloc: AllocWords,
) -> Result<(), usize> {
    let &Backtrace { keep, managed, ref repeated, native } = backtrace;
    let outer = Record::Frames { keep, new: managed };
    let inner = Record::Frames { keep: keep + managed.len(), new: native };
    if !repeated.is_empty()
        && let (Some(before), Some(behind)) =
            (managed.get(..repeated.start), managed.get(repeated.end..))
        && before.len() + behind.len() + native.len() + MOST_BESIDE_FRAMES + 2 <= BUFFER_WORDS
    {
        let outer = Record::Frames { keep, new: before };
        let again = Record::RepeatFrame { times: repeated.len() };
        let behind = Record::Frames { keep: keep + repeated.end, new: behind };
        let records = [outer, again, behind, inner];
        return put(session, counters, producer, hook, records, Some(alloc)).ok_or(keep);
    }
    if managed.len() + native.len() + MOST_BESIDE_FRAMES > BUFFER_WORDS {
        let stack = (keep, managed);
        tell_in_pieces(session, counters, producer, hook, stack, (inner, alloc))
    } else if native.is_empty() {
        put(session, counters, producer, hook, [outer], Some(alloc)).ok_or(keep)
    } else {
        put(session, counters, producer, hook, [outer, inner], Some(alloc)).ok_or(keep)
    }
}

/// A stack too long for one buffer, piece by piece, and then the rest. If there
/// is no room in between, says how many frames the writer has got.
#[cold]
fn tell_in_pieces(
    session: &Session,
    counters: &Counters,
    producer: &mut Producer,
    hook: &mut HookContext,
    (keep, managed): (usize, &[u64]),
    (inner, alloc): (Record<'_>, AllocWords),
) -> Result<(), usize> {
    const PIECE: usize = BUFFER_WORDS / 2;
    let mut told = keep;
    for new in managed.chunks(PIECE) {
        let piece = Record::Frames { keep: told, new };
        put(session, counters, producer, hook, [piece], None).ok_or(told)?;
        told += new.len();
    }
    put(session, counters, producer, hook, [inner], Some(alloc)).ok_or(told)
}

/// Puts records into the buffer together, and the allocation behind them if there is
/// one; before them the time if that was not told yet. Waits for room if that is the
/// policy. `None`: there is none, and nothing was put.
///
/// Inlined, so that what the records are is known where it is compiled.
#[inline(always)]
fn put<const N: usize>(
    session: &Session,
    counters: &Counters,
    producer: &mut Producer,
    hook: &mut HookContext,
    records: [Record<'_>; N],
    alloc: Option<AllocWords>,
) -> Option<()> {
    let time = Record::Time(hook.ticks);
    let time_words = if hook.time_told { 0 } else { time.len() };
    let before = records.iter().map(Record::len).sum::<usize>() + time_words;
    let most = before + alloc.map_or(0, |_| AllocWords::MAX);
    let mut room = match producer.reserve(most) {
        Ok(room) => room,
        Err(_) => {
            wait(session, counters, producer)?;
            producer.reserve(most).ok()?
        }
    };
    if time_words != 0 {
        room = time.encode(room)?;
    }
    for record in records {
        room = record.encode(room)?;
    }
    if let Some(alloc) = alloc {
        alloc.write_to(room)?;
    }
    producer.commit(before + alloc.map_or(0, AllocWords::len));
    hook.time_told = true;
    Some(())
}

/// Waiting goes in steps, to notice that the session ended.
const STEP: Duration = Duration::from_millis(20);

#[cold]
#[inline(never)]
fn wait(session: &Session, counters: &Counters, producer: &mut Producer) -> Option<()> {
    let WhenFull::Wait(most) = session.options.when_full else { return None };
    counters.waits.add(1);
    let start = Instant::now();
    while session.is_live() && start.elapsed() < most {
        if producer.wait_for_buffer(STEP.min(most)) != WaitOutcome::TimedOut {
            return Some(());
        }
    }
    None
}
