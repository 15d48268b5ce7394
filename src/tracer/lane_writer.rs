//! Writes a mutator's records into its lane of the queue.
//!
//! Runs on mutators, inside hooks: no malloc, no lock. When no event buffer is
//! free, the session's policy decides: drop the records, or wait for the writer
//! thread, which takes system calls.
//!
//! Records that belong together are reserved and committed together, so that
//! the writer thread sees all of them or none. The exception is a stack that is
//! longer than an event buffer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use heaptap_trace::End;

use crate::blocks::PendingEnds;
use crate::queue::{AllocWords, BUFFER_WORDS, Producer, Record, Sample, WaitOutcome};
use crate::tracer::backtraces::{Backtrace, MAX_SMALL_FRAMES};
use crate::tracer::counters::Counters;
use crate::tracer::hook::HookContext;
use crate::tracer::options::WhenFull;
use crate::tracer::state::State;

/// The most words that an allocation takes besides its frames: one for the
/// time, one for each of two stack records, and those of the block.
const MAX_OVERHEAD: usize = 3 + AllocWords::MAX;

const _: () = assert!(MAX_SMALL_FRAMES <= Sample::MAX_FRAMES);

/// Waiting goes in steps, to notice that the session has ended.
pub(crate) const WAIT_STEP: Duration = Duration::from_millis(20);

/// A stack was not recorded, for lack of an event buffer.
pub(crate) struct NotRecorded {
    /// How many outermost frames of it the writer has.
    pub(crate) frames: usize,
}

/// Reserved words of the lane, for a small stack that is captured in place.
pub(crate) struct SmallStackRoom<'a> {
    head: &'a mut [u64; 2],
    rest: &'a mut [u64],
}

impl SmallStackRoom<'_> {
    /// Where the stack's codes go, innermost first.
    #[inline(always)]
    pub(crate) fn codes(&mut self) -> Option<&mut [u64; MAX_SMALL_FRAMES]> {
        self.rest.first_chunk_mut()
    }

    /// Writes the time and the allocation around `frames` codes, and returns the
    /// number of words to commit.
    #[inline(always)]
    pub(crate) fn fill(self, ticks: u64, frames: usize, alloc: AllocWords) -> Option<usize> {
        if let Some(length) = alloc.small_length() {
            *self.head = Sample::header(ticks, frames, length);
            return Some(2 + frames);
        }
        alloc.write_to(self.rest.get_mut(frames..)?)?;
        let [time, stack] = self.head;
        Record::Time(ticks).encode(std::slice::from_mut(time))?;
        *stack = Record::stack_header(frames);
        Some(2 + frames + alloc.len())
    }
}

/// One mutator's lane, with the policy for when the queue is full.
pub(crate) struct LaneWriter {
    pub(crate) producer: Producer,
    pub(crate) counters: Arc<Counters>,
    pub(crate) state: Arc<State>,
    pub(crate) when_full: WhenFull,
}

impl LaneWriter {
    /// Writes records together: the time if `hook` has not recorded it yet, then
    /// `records`, then the allocation. `None`: there was no room, and nothing was
    /// written.
    ///
    /// Inlined, so that the kinds of the records are known at compile time.
    /// Bench: `benches/cost` (hooks).
    #[inline(always)]
    pub(crate) fn put<const N: usize>(
        &mut self,
        hook: &mut HookContext,
        records: [Record<'_>; N],
        alloc: Option<AllocWords>,
    ) -> Option<()> {
        let time = Record::Time(hook.ticks);
        let time_words = if hook.time_recorded { 0 } else { time.len() };
        let before = records.iter().map(Record::len).sum::<usize>() + time_words;
        let most = before + alloc.map_or(0, |_| AllocWords::MAX);
        let mut room = match self.producer.reserve(most) {
            Ok(room) => room,
            Err(_) => {
                self.wait()?;
                self.producer.reserve(most).ok()?
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
        self.producer.commit(before + alloc.map_or(0, AllocWords::len));
        hook.time_recorded = true;
        Some(())
    }

    /// Reserves room for the time, a small stack and its allocation. `None`: there
    /// is none. To be followed by [`LaneWriter::commit_small_stack`].
    ///
    /// In two steps, not with a closure that captures the stack: the compiler
    /// would not inline that. Bench: `benches/cost` (hooks).
    #[inline(always)]
    pub(crate) fn reserve_small_stack(&mut self) -> Option<SmallStackRoom<'_>> {
        let room = self.producer.reserve(MAX_SMALL_FRAMES + MAX_OVERHEAD).ok()?;
        let (head, rest) = room.split_first_chunk_mut()?;
        Some(SmallStackRoom { head, rest })
    }

    /// Commits the words that [`SmallStackRoom::fill`] returned.
    #[inline(always)]
    pub(crate) fn commit_small_stack(&mut self, hook: &mut HookContext, words: usize) {
        self.producer.commit(words);
        hook.time_recorded = true;
        hook.stack_recorded = true;
    }

    /// Writes a stack of any length and the allocation under it.
    ///
    /// Not inlined: the walk, which comes before it, needs the stack space.
    #[inline(never)]
    pub(crate) fn put_backtrace(
        &mut self,
        hook: &mut HookContext,
        backtrace: &Backtrace<'_>,
        alloc: AllocWords,
    ) -> Result<(), NotRecorded> {
        let &Backtrace { keep, managed, ref repeated, native } = backtrace;
        let outer = Record::Frames { keep, new: managed };
        let inner = Record::Frames { keep: keep + managed.len(), new: native };
        let none = NotRecorded { frames: keep };
        if !repeated.is_empty()
            && let (Some(before), Some(behind)) =
                (managed.get(..repeated.start), managed.get(repeated.end..))
            && before.len() + behind.len() + native.len() + MAX_OVERHEAD + 2 <= BUFFER_WORDS
        {
            let outer = Record::Frames { keep, new: before };
            let again = Record::RepeatFrame { times: repeated.len() };
            let behind = Record::Frames { keep: keep + repeated.end, new: behind };
            return self.put(hook, [outer, again, behind, inner], Some(alloc)).ok_or(none);
        }
        if managed.len() + native.len() + MAX_OVERHEAD > BUFFER_WORDS {
            self.put_in_pieces(hook, backtrace, alloc)
        } else if native.is_empty() {
            self.put(hook, [outer], Some(alloc)).ok_or(none)
        } else {
            self.put(hook, [outer, inner], Some(alloc)).ok_or(none)
        }
    }

    /// Writes a stack that is too long for one event buffer, piece by piece, and
    /// then the allocation.
    #[cold]
    fn put_in_pieces(
        &mut self,
        hook: &mut HookContext,
        backtrace: &Backtrace<'_>,
        alloc: AllocWords,
    ) -> Result<(), NotRecorded> {
        const PIECE: usize = BUFFER_WORDS / 2;
        let mut frames = backtrace.keep;
        for new in backtrace.managed.chunks(PIECE) {
            let piece = Record::Frames { keep: frames, new };
            self.put(hook, [piece], None).ok_or(NotRecorded { frames })?;
            frames += new.len();
        }
        let inner = Record::Frames { keep: frames, new: backtrace.native };
        self.put(hook, [inner], Some(alloc)).ok_or(NotRecorded { frames })
    }

    /// Writes promotions and collections, as many at a time as a buffer has room
    /// for. Those for which there is no room stay in `ends`.
    #[inline(never)]
    pub(crate) fn put_ends(&mut self, hook: &mut HookContext, ends: &mut PendingEnds) {
        let mut recorded = 0;
        while let Some(pending) = ends.get(recorded..).filter(|pending| !pending.is_empty()) {
            let time_words = usize::from(!hook.time_recorded);
            let most = pending.len() + time_words;
            let room = match self.producer.reserve_up_to(most) {
                Ok(room) => room,
                Err(_) => {
                    let waited = self.wait();
                    let Some(Ok(room)) = waited.map(|()| self.producer.reserve_up_to(most)) else {
                        break;
                    };
                    room
                }
            };
            let reserved = room.len();
            let room =
                if time_words == 0 { Some(room) } else { Record::Time(hook.ticks).encode(room) };
            let Some(room) = room else { break };
            let (mut promotions, mut collections) = (0, 0);
            for (word, end) in room.iter_mut().zip(pending) {
                *word = end.word();
                match end.end() {
                    End::Promote => promotions += end.blocks().count,
                    End::Collect => collections += end.blocks().count,
                }
            }
            recorded += room.len();
            self.producer.commit(reserved);
            hook.time_recorded = true;
            self.counters.promotions.add(promotions);
            self.counters.collections.add(collections);
        }
        ends.remove_first(recorded);
    }

    /// Waits for a free event buffer, if that is the policy. `None`: there is
    /// none.
    #[cold]
    #[inline(never)]
    fn wait(&mut self) -> Option<()> {
        let WhenFull::Wait(longest) = self.when_full else { return None };
        self.counters.waits.add(1);
        let start = Instant::now();
        while self.state.is_live() && start.elapsed() < longest {
            if self.producer.wait_for_buffer(WAIT_STEP.min(longest)) != WaitOutcome::TimedOut {
                return Some(());
            }
        }
        None
    }
}
