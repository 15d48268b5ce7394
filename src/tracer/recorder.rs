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

use heaptap_trace::Source;

use crate::blocks::{End, Fate, Generations};
use crate::queue::{BUFFER_WORDS, BlockId, HOST_CODES, Producer, Record, Wait};
use crate::stack::native::Registers;
use crate::tracer::counters::Counters;
use crate::tracer::failure::Failure;
use crate::tracer::options::{Follow, WhenFull};
use crate::tracer::session::Session;
use crate::tracer::stacks::{Backtrace, Stacks};

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
    pub(crate) part: Option<usize>,
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
/// stacks, an allocation's part and the block.
const MOST_BESIDE_FRAMES: usize = 7;

/// In the code of an innermost frame, where the number of the allocated part
/// begins, counted from 1. Addresses of code are below.
const PART_SHIFT: u32 = 48;

/// An innermost frame's return address, with the part of the combined allocation
/// it returns to.
pub(crate) fn code_of_part(return_address: u64, part: usize) -> u64 {
    let part = (part as u64 + 1).min((HOST_CODES >> PART_SHIFT) - 1);
    (return_address ^ spread(part)) | part << PART_SHIFT
}

/// The return address in a code, and the part if it has one.
pub(crate) fn part_of_code(code: u64) -> (u64, Option<usize>) {
    let part = code >> PART_SHIFT;
    ((code ^ spread(part)) & ((1 << PART_SHIFT) - 1), (part as usize).checked_sub(1))
}

/// Where a trace's cache keeps a code depends on its low bits alone: without this
/// the parts of one allocation would drive each other out, and each time their
/// locations would be written again.
fn spread(part: u64) -> u64 {
    part.wrapping_mul(0x9E_3779_B97F) & ((1 << PART_SHIFT) - 1)
}

/// One call into the tracer: what the writer has been told of it.
pub(crate) struct Moment {
    /// Since the session's start.
    ticks: u64,
    /// Of the hook's caller.
    registers: Registers,
    time_told: bool,
    stack_told: bool,
}

impl Moment {
    pub(crate) fn at(ticks: u64, registers: Registers) -> Moment {
        Moment { ticks, registers, time_told: false, stack_told: false }
    }

    pub(crate) fn ticks(&self) -> u64 {
        self.ticks
    }
}

/// The recording half of a mutator.
pub(crate) struct Recorder {
    pub(crate) session: Arc<Session>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) stacks: Stacks,
    pub(crate) blocks: Generations,
    pub(crate) producer: Producer,
    /// Of the next sampled block.
    pub(crate) number: u64,
}

impl Recorder {
    /// Records a sampled block and follows it from now on.
    pub(crate) fn alloc(&mut self, moment: &mut Moment, block: &Sampled) -> Result<(), Failure> {
        self.counters.samples.add(block.samples);
        self.counters.sampled_blocks.add(1);
        if self.try_alloc(moment, block).is_none() {
            self.counters.dropped.add(1);
            return Err(Failure::Lost);
        }
        self.counters.allocations.add(1);
        Ok(())
    }

    fn try_alloc(&mut self, moment: &mut Moment, block: &Sampled) -> Option<()> {
        self.tell_held(moment);
        if !self.blocks.reserve(1) || self.number >= BlockId::MAX_NUMBER {
            return None;
        }
        // The format knows blocks with one word of header, or none.
        let header = self.session.options.header_words.min(1);
        let length = match block.source {
            Source::Minor | Source::Major => block.words.saturating_sub(header),
            Source::External => block.words,
        };
        let alloc =
            Record::Alloc { source: block.source, samples: block.samples, length: length as u64 };
        if moment.stack_told {
            put(&self.session, &self.counters, &mut self.producer, &[alloc])?;
        } else {
            self.tell_with_stack(moment, alloc, block.part)?;
        }
        let id = BlockId::new(self.producer.lane(), self.number);
        self.number += 1;
        self.follow(block, id);
        Some(())
    }

    fn follow(&mut self, block: &Sampled, id: BlockId) {
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

    /// Tells the time, the stack as far as it is new, and the allocation: all at
    /// once if they fit a buffer.
    fn tell_with_stack(
        &mut self,
        moment: &mut Moment,
        alloc: Record<'_>,
        part: Option<usize>,
    ) -> Option<()> {
        let Recorder { session, counters, stacks, producer, .. } = self;
        let Backtrace { keep, managed, native } = stacks.take(&session.tables, moment.registers);
        let time = Record::Time(moment.ticks);
        let outer = Record::Frames { keep, new: managed };
        let depth = keep + managed.len();
        let innermost = [managed.last().map_or(0, |&code| code_of_part(code, part.unwrap_or(0)))];
        // What is told of a part differs from what was found in the innermost
        // frame, which is why that is always found anew.
        let of_part = part.is_some() && innermost[0] < HOST_CODES && !managed.is_empty();
        let inner = if of_part {
            Record::Frames { keep: depth - 1, new: &innermost }
        } else {
            Record::Frames { keep: depth, new: native }
        };
        let mut put = |records: &[Record<'_>]| {
            // The time comes first, and is told once.
            let rest = records.get(usize::from(moment.time_told)..).unwrap_or(&[]);
            put(session, counters, producer, rest).ok_or(keep)
        };
        let told = if managed.len() + native.len() + MOST_BESIDE_FRAMES > BUFFER_WORDS {
            tell_in_pieces(session, counters, producer, (keep, managed), &[time, inner, alloc])
        } else if native.is_empty() && !of_part {
            put(&[time, outer, alloc])
        } else {
            put(&[time, outer, inner, alloc])
        };
        if let Err(has) = told {
            // The writer does not have this stack: the next walk must not
            // count on more than it has.
            self.stacks.rewind(has);
            return None;
        }
        moment.time_told = true;
        moment.stack_told = part.is_none();
        if part.is_some() {
            self.stacks.rewind(depth.saturating_sub(1));
        }
        Some(())
    }

    /// Tells what was held back, as far as there is room.
    fn tell_held(&mut self, moment: &mut Moment) {
        if self.blocks.holds_reports() {
            let Recorder { session, counters, blocks, producer, .. } = self;
            blocks.report_held(|end, id| tell_end(session, counters, producer, moment, end, id));
        }
    }

    /// Tells what is held back even if that means to wait for the writer: nobody
    /// may come back to tell it. Not inside a hook.
    pub(crate) fn settle(&mut self, moment: &mut Moment) {
        const LONGEST: Duration = Duration::from_secs(10);
        let start = Instant::now();
        self.tell_held(moment);
        while self.blocks.holds_reports() && self.session.is_live() && start.elapsed() < LONGEST {
            self.producer.wait_for_room(STEP);
            self.tell_held(moment);
        }
    }

    /// After a minor collection: asks for the fate of the young blocks.
    pub(crate) fn sweep_young(&mut self, moment: &mut Moment, fate: impl FnMut(usize) -> Fate) {
        self.tell_held(moment);
        let Recorder { session, counters, blocks, producer, .. } = self;
        blocks.sweep_young(fate, |end, id| tell_end(session, counters, producer, moment, end, id));
        self.count_blocks();
    }

    /// After marking or compacting: asks for the fate of the major blocks.
    pub(crate) fn sweep_major(&mut self, moment: &mut Moment, fate: impl FnMut(usize) -> Fate) {
        self.tell_held(moment);
        let Recorder { session, counters, blocks, producer, .. } = self;
        blocks.sweep_major(fate, |end, id| tell_end(session, counters, producer, moment, end, id));
        self.count_blocks();
    }

    /// Tells of a block that is followed by its address.
    pub(crate) fn end(&mut self, moment: &mut Moment, end: End, id: BlockId) {
        self.tell_held(moment);
        let Recorder { session, counters, blocks, producer, .. } = self;
        let mut report = |end, id| tell_end(session, counters, producer, moment, end, id);
        blocks.tell(end, id, &mut report);
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

fn tell_end(
    session: &Session,
    counters: &Counters,
    producer: &mut Producer,
    moment: &mut Moment,
    end: End,
    id: BlockId,
) -> bool {
    let record = match end {
        End::Promoted => Record::Promote(id),
        End::Collected => Record::Collect(id),
    };
    let both = [Record::Time(moment.ticks), record];
    let skip = usize::from(moment.time_told);
    if put(session, counters, producer, both.get(skip..).unwrap_or(&[])).is_none() {
        return false;
    }
    moment.time_told = true;
    match end {
        End::Promoted => counters.promotions.add(1),
        End::Collected => counters.collections.add(1),
    }
    true
}

/// A stack too long for one buffer, piece by piece, and then the rest. If there
/// is no room in between, says how many frames the writer has got.
fn tell_in_pieces(
    session: &Session,
    counters: &Counters,
    producer: &mut Producer,
    (keep, managed): (usize, &[u64]),
    [time, inner, alloc]: &[Record<'_>; 3],
) -> Result<(), usize> {
    const PIECE: usize = BUFFER_WORDS / 2;
    put(session, counters, producer, &[*time]).ok_or(keep)?;
    let mut told = keep;
    for new in managed.chunks(PIECE) {
        let piece = Record::Frames { keep: told, new };
        put(session, counters, producer, &[piece]).ok_or(told)?;
        told += new.len();
    }
    put(session, counters, producer, &[*inner, *alloc]).ok_or(told)
}

/// Puts records into the buffer together, waiting for room if that is the
/// policy. `None`: there is none, and nothing was put.
#[inline]
fn put(
    session: &Session,
    counters: &Counters,
    producer: &mut Producer,
    records: &[Record<'_>],
) -> Option<()> {
    let words = records.iter().map(Record::len).sum();
    if producer.reserve(words).is_err() {
        wait(session, counters, producer)?;
    }
    let mut room = producer.reserve(words).ok()?;
    for record in records {
        room = record.put(room)?;
    }
    producer.commit(words);
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
        if producer.wait_for_room(STEP.min(most)) != Wait::TimedOut {
            return Some(());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_told_with_its_return_address() {
        for part in [0, 1, 254] {
            let code = code_of_part(0x7fff_1234_5678, part);
            assert!(code < HOST_CODES);
            assert_eq!(part_of_code(code), (0x7fff_1234_5678, Some(part)));
        }
        assert_eq!(part_of_code(0x7fff_1234_5678), (0x7fff_1234_5678, None));
    }

    #[test]
    fn parts_differ_in_the_bits_that_the_cache_looks_at() {
        let low = |part| code_of_part(0x7fff_1234_5678, part) % (1 << 25);
        let codes: std::collections::BTreeSet<u64> = (0..255).map(low).collect();
        assert_eq!(codes.len(), 255);
    }
}
