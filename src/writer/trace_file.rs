//! One trace file: records in, packets out.

use std::io::Write;
use std::slice::Iter;

use heaptap_trace::{
    Block, DomainEncoder, Encoder, Format, Locate, SmallAlloc, Source, TraceInfo, WriteError,
};

use crate::queue::{BlockId, LEFT_OUT, Part, Record, Sample};
use crate::sys::prefetch::prefetch;
use crate::writer::Host;
use crate::writer::block_ids::{BlockIds, Known};
use crate::writer::lane_stack::{ShownStack, common_outermost};

/// So many bytes ahead words are fetched: another processor has written them.
const AHEAD: usize = 64 * size_of::<u64>();

/// What is fetched at a time, in bytes. Most samples have more than one of it.
const LINE: usize = 64;

/// What the writer knows of one lane.
struct Lane {
    stack: ShownStack,
    block_ids: BlockIds,
    /// Microseconds since the epoch, of the last event or later: a domain's
    /// times never run backwards.
    time: u64,
}

/// A file being written.
pub(crate) struct TraceFile<W> {
    encoder: Encoder<W>,
    lanes: Vec<Lane>,
    start_time: u64,
}

impl<W: Write> TraceFile<W> {
    pub(crate) fn new(out: W, format: Format, info: &TraceInfo) -> Result<Self, WriteError> {
        let encoder = Encoder::new(out, format, info)?;
        Ok(TraceFile { encoder, lanes: Vec::new(), start_time: info.start_time })
    }

    /// Goes on in a new file, which knows nothing of the blocks so far, and
    /// gives back the old one's output.
    pub(crate) fn rotate(
        &mut self,
        (out, format): (W, Format),
        info: &TraceInfo,
        locate: &mut impl Locate,
    ) -> Result<W, WriteError> {
        let next = Encoder::new(out, format, info)?;
        let last = std::mem::replace(&mut self.encoder, next);
        self.start_time = info.start_time;
        for lane in &mut self.lanes {
            lane.stack.forget_shown();
            lane.block_ids = BlockIds::from(lane.block_ids.next());
            lane.time = lane.time.max(info.start_time);
        }
        last.finish(locate)
    }

    /// Writes the records in `words`, which a lane told, and says how many words
    /// were read: fewer than all if a record comes too early.
    #[inline(never)]
    pub(crate) fn apply_all(
        &mut self,
        number: u16,
        words: &[u64],
        host: &mut impl Host,
    ) -> Result<usize, WriteError> {
        self.enter(number);
        let Some((lane, others)) = Others::apart_from(&mut self.lanes, number) else {
            return Ok(0);
        };
        let mut domain = self.encoder.domain(number);
        let mut rest = words.iter();
        while let Some(record) = Record::decode(&mut rest) {
            match record {
                Record::Sample(sample) => {
                    rest = lane.samples(sample, rest, &mut domain, host)?;
                }
                Record::Time(ticks) => lane.pass(ticks, host),
                Record::Frames { keep, new } => lane.stack.change(keep, new),
                Record::RepeatFrame { times } => lane.stack.repeat(times),
                Record::Stack { inner_first } => lane.stack.replace(inner_first),
                Record::SmallAlloc { length } => lane.small(&mut domain, length, host)?,
                Record::Alloc { source, part, samples, length } => {
                    let samples = samples.clamp(1, length.saturating_add(1));
                    lane.alloc(&mut domain, Block { length, samples, source }, part, host)?;
                }
                Record::End(end, run) => {
                    if let Some(ids) = lane.block_ids.find_recent(run) {
                        domain.end_batch(end, lane.time, ids, host)?;
                        continue;
                    }
                    if others.find(lane, run.last()) == Known::NotYet {
                        return Ok(words.len() - rest.len() - record.len());
                    }
                    for block in run.blocks() {
                        if let Known::Id(id) = others.find(lane, block) {
                            domain.end_batch(end, lane.time, id..id + 1, host)?;
                        }
                    }
                }
            }
        }
        debug_assert!(rest.as_slice().is_empty(), "words that are no record");
        Ok(words.len())
    }

    fn enter(&mut self, number: u16) {
        for new in self.lanes.len()..=usize::from(number) {
            self.lanes.push(Lane {
                stack: ShownStack::default(),
                block_ids: BlockIds::from(BlockId::new(new as u16, 0)),
                time: self.start_time,
            });
        }
    }

    /// Writes what is held back.
    pub(crate) fn flush(&mut self, locate: &mut impl Locate) -> Result<(), WriteError> {
        self.encoder.flush(locate)
    }

    /// Ends the file: nothing more is written.
    pub(crate) fn end(&mut self, locate: &mut impl Locate) -> Result<(), WriteError> {
        self.encoder.end(locate)
    }
}

impl Lane {
    /// What follows happened so many ticks after the session's start.
    #[inline(always)]
    fn pass(&mut self, ticks: u64, host: &mut impl Host) {
        self.time = self.time.max(host.micros(ticks));
    }

    /// Writes a sample and those that follow it, and returns the words behind. They
    /// come in crowds, each with all of its stack: as long as that is so, the last
    /// one's words are the stack that the file shows.
    #[inline(never)]
    fn samples<'a, W: Write>(
        &mut self,
        first: Sample<'a>,
        mut words: Iter<'a, u64>,
        domain: &mut DomainEncoder<'_, W>,
        host: &mut impl Host,
    ) -> Result<Iter<'a, u64>, WriteError> {
        let mut shown = first.inner_first;
        self.pass(first.ticks(), host);
        self.stack.replace(shown);
        self.small(domain, first.length(), host)?;
        while self.stack.is_all_shown() {
            let mut allocs = std::iter::from_fn(|| {
                let ahead = words.as_slice().as_ptr().addr() + AHEAD;
                prefetch(ahead);
                prefetch(ahead + LINE);
                let sample = Sample::decode(&mut words)?;
                self.pass(sample.ticks(), host);
                let same = common_outermost(shown, sample.inner_first);
                let inner_first = sample.inner_first.get(..sample.inner_first.len() - same)?;
                shown = sample.inner_first;
                Some(SmallAlloc {
                    time: self.time,
                    length: sample.length(),
                    common_prefix: same as u64,
                    inner_first,
                })
            });
            let (ids, unusual) = domain.alloc_batch(&mut allocs);
            if ids.is_empty() && unusual.is_none() {
                break;
            }
            self.block_ids.add_all(ids);
            let same = unusual.map_or(shown.len(), |alloc| alloc.common_prefix as usize);
            self.stack.show(shown, same);
            let Some(SmallAlloc { length, .. }) = unusual else { break };
            self.small(domain, length, host)?;
        }
        Ok(words)
    }

    /// Writes a minor block with one sample.
    #[inline(always)]
    fn small<W: Write>(
        &mut self,
        domain: &mut DomainEncoder<'_, W>,
        length: u64,
        host: &mut impl Host,
    ) -> Result<(), WriteError> {
        let block = Block { length, samples: 1, source: Source::Minor };
        self.alloc(domain, block, Part::NONE, host)
    }

    /// Writes a block allocated under the lane's stack.
    #[inline(always)]
    fn alloc<W: Write>(
        &mut self,
        domain: &mut DomainEncoder<'_, W>,
        block: Block,
        part: Part,
        host: &mut impl Host,
    ) -> Result<(), WriteError> {
        if part != Part::NONE
            && let Some(innermost) = self.stack.innermost()
        {
            self.stack.tell_part(innermost, host.part_code(innermost, part));
        }
        let backtrace = self.stack.backtrace();
        let (id, left_out) = domain.alloc_elided(self.time, block, backtrace, LEFT_OUT, host)?;
        self.stack.written(left_out);
        self.block_ids.add(id);
        Ok(())
    }
}

/// All lanes but the one whose records are being read, which may tell of blocks
/// of the others.
struct Others<'a> {
    before: &'a [Lane],
    behind: &'a [Lane],
}

impl<'a> Others<'a> {
    /// The lane with this number, and the others.
    fn apart_from(lanes: &'a mut [Lane], number: u16) -> Option<(&'a mut Lane, Others<'a>)> {
        let (before, rest) = lanes.split_at_mut_checked(usize::from(number))?;
        let (lane, behind) = rest.split_first_mut()?;
        Some((lane, Others { before, behind }))
    }

    /// What the file knows of a block. Of a lane that was not read yet no block is
    /// known yet.
    #[cold]
    fn find(&self, lane: &Lane, block: BlockId) -> Known {
        let mut lanes = self.before.iter().chain([lane]).chain(self.behind);
        let of = lanes.nth(usize::from(block.lane()));
        of.map_or(Known::NotYet, |lane| lane.block_ids.find(block))
    }
}

#[cfg(test)]
mod tests {
    use heaptap_trace::{End, EventKind, LocationList, LocationTable, Mode, Reader};
    use proptest::prelude::*;

    use super::*;
    use crate::queue::BlockRun;

    fn info() -> TraceInfo {
        TraceInfo {
            sample_rate: 0.5,
            word_size: 64,
            executable: b"test".to_vec(),
            host: b"here".to_vec(),
            runtime_params: Vec::new(),
            pid: 1,
            context: Vec::new(),
            start_time: 1_000_000,
            domain: 0,
        }
    }

    const ALLOC: Record<'static> = Record::SmallAlloc { length: 2 };

    fn major(length: u64) -> Record<'static> {
        Record::Alloc { source: Source::Major, part: Part::NONE, samples: 2, length }
    }

    /// A tick is a microsecond.
    struct Ticks;

    impl Locate for Ticks {
        fn locate(&mut self, _: u64, _: &mut LocationList) {}
    }

    impl Host for Ticks {
        fn observe_time(&mut self) {}

        fn micros(&mut self, ticks: u64) -> u64 {
            1_000_000 + ticks
        }

        fn now(&mut self) -> u64 {
            1_000_000
        }

        /// The second and the third part have one place.
        fn part_code(&mut self, return_address: u64, part: Part) -> u64 {
            let second = part == Part::of_index(2);
            if second { Part::of_index(1) } else { part }.in_code(return_address)
        }

        fn failed(&mut self, error: &WriteError) {
            panic!("{error}");
        }
    }

    /// Feeds records, in several rounds while some are early.
    fn feed(file: &mut TraceFile<Vec<u8>>, records: &[(u16, Record<'_>)]) {
        let mut waiting = records.to_vec();
        while !waiting.is_empty() {
            let before = waiting.len();
            let mut stuck = Vec::new();
            waiting.retain(|&(lane, record)| {
                if stuck.contains(&lane) {
                    return true;
                }
                let mut words = vec![0; record.len()];
                record.encode(&mut words).unwrap();
                let early = file.apply_all(lane, &words, &mut Ticks).unwrap() == 0;
                if early {
                    stuck.push(lane);
                }
                early
            });
            assert!(waiting.len() < before, "no progress");
        }
    }

    /// What one lane tells, of stacks of few frames and of blocks that were told.
    fn records() -> impl Strategy<Value = Vec<(u8, u64, Vec<u64>)>> {
        let kind = prop_oneof![1 => 0..8u8, 1 => Just(8)];
        prop::collection::vec((kind, 0..20u64, prop::collection::vec(1..9u64, 0..12)), 0..60)
    }

    proptest! {
        /// However the records come, one by one or many in a row, the file is
        /// the same.
        #[test]
        fn what_is_read_in_one_go_is_read_right(records in records()) {
            let mut blocks: u64 = 0;
            let heads: Vec<_> = records
                .iter()
                .map(|(_, number, frames)| Sample::header(*number, frames.len(), number + 1))
                .collect();
            let records: Vec<_> = records
                .iter()
                .zip(&heads)
                .filter_map(|((kind, number, frames), head)| {
                    let first = number % u64::max(blocks, 1);
                    let count = u64::clamp(blocks - first, 1, number + 1);
                    let run = BlockRun { first: BlockId::new(0, first), count };
                    let record = match kind {
                        0 => Record::Time(*number),
                        1 => Record::Frames { keep: *number as usize % 5, new: frames },
                        2 => Record::SmallAlloc { length: number + 1 },
                        3 => major(number + 1),
                        4 => Record::Stack { inner_first: frames },
                        5 => Record::RepeatFrame { times: *number as usize },
                        8 => Record::Sample(Sample { header: head, inner_first: frames }),
                        _ if blocks == 0 => return None,
                        6 => Record::End(End::Promote, run),
                        _ => Record::End(End::Collect, run),
                    };
                    blocks += u64::from(matches!(kind, 2 | 3 | 8));
                    Some(record)
                })
                .collect();
            let mut one_by_one = TraceFile::new(Vec::new(), Format::V2, &info()).unwrap();
            feed(&mut one_by_one, &records.iter().map(|&record| (0, record)).collect::<Vec<_>>());
            let mut words = vec![0; records.iter().map(Record::len).sum()];
            let mut room = &mut words[..];
            for record in &records {
                room = record.encode(room).unwrap();
            }
            let mut in_one_go = TraceFile::new(Vec::new(), Format::V2, &info()).unwrap();
            prop_assert_eq!(in_one_go.apply_all(0, &words, &mut Ticks).unwrap(), words.len());
            let [one_by_one, in_one_go] =
                [one_by_one, in_one_go].map(|file| file.encoder.finish(&mut Ticks).unwrap());
            prop_assert_eq!(told(&one_by_one), told(&in_one_go));
            prop_assert_eq!(one_by_one, in_one_go);
        }
    }

    fn told(bytes: &[u8]) -> Vec<(u64, String)> {
        let mut reader = Reader::from_slice(bytes, Mode::Strict).unwrap();
        let mut told = Vec::new();
        while let Some(event) = reader.next_event().unwrap() {
            let what = match event.kind {
                EventKind::Alloc(a) => format!("alloc {} {:?}", a.id, a.backtrace.frames),
                EventKind::Promote(id) => format!("promote {id}"),
                EventKind::Collect(id) => format!("collect {id}"),
            };
            told.push((event.time - 1_000_000, what));
        }
        told
    }

    #[test]
    fn times_and_stacks_stay_until_changed() {
        let mut file = TraceFile::new(Vec::new(), Format::V2, &info()).unwrap();
        let block = |number| BlockId::new(0, number);
        feed(
            &mut file,
            &[
                (0, Record::Time(5)),
                (0, Record::Frames { keep: 0, new: &[10, 20, 30] }),
                (0, ALLOC),
                (0, ALLOC),
                (0, Record::Time(3)),
                (0, Record::Frames { keep: 1, new: &[40] }),
                (0, Record::Frames { keep: 2, new: &[50] }),
                (0, ALLOC),
                (0, Record::Time(9)),
                (0, Record::End(End::Promote, BlockRun::one(block(1)))),
                (0, Record::End(End::Collect, BlockRun::one(block(0)))),
            ],
        );
        let bytes = file.encoder.finish(&mut &LocationTable::default()).unwrap();
        let want = [
            (5, "alloc 0 [10, 20, 30]"),
            (5, "alloc 1 [10, 20, 30]"),
            (5, "alloc 2 [10, 40, 50]"),
            (9, "promote 1"),
            (9, "collect 0"),
        ];
        assert_eq!(told(&bytes), want.map(|(time, what)| (time, what.to_owned())));
    }

    #[test]
    fn an_end_waits_for_the_allocation_on_another_lane() {
        let mut file = TraceFile::new(Vec::new(), Format::V3, &info()).unwrap();
        feed(
            &mut file,
            &[
                (1, Record::Time(7)),
                (1, Record::End(End::Collect, BlockRun::one(BlockId::new(0, 1)))),
                (1, ALLOC),
                (0, Record::Time(1)),
                (0, ALLOC),
                (0, ALLOC),
            ],
        );
        let bytes = file.encoder.finish(&mut &LocationTable::default()).unwrap();
        let told = told(&bytes);
        assert_eq!(told.len(), 4);
        assert!(told.iter().any(|(time, what)| *time == 7 && what == "collect 1"), "{told:?}");
    }

    #[test]
    fn parts_with_one_place_have_one_code() {
        let mut file = TraceFile::new(Vec::new(), Format::V2, &info()).unwrap();
        let alloc = |index| {
            let (source, part) = (Source::Minor, Part::of_index(index));
            Record::Alloc { source, part, samples: 1, length: 2 }
        };
        let frames = Record::Frames { keep: 0, new: &[10, 20] };
        feed(&mut file, &[(0, frames), (0, alloc(1)), (0, alloc(2)), (0, alloc(0))]);
        let bytes = file.encoder.finish(&mut &LocationTable::default()).unwrap();
        let frames = |index| [10, Part::of_index(index).in_code(20)];
        let want = [1, 1, 0].map(frames).into_iter().enumerate();
        let want: Vec<_> = want.map(|(id, frames)| (0, format!("alloc {id} {frames:?}"))).collect();
        assert_eq!(told(&bytes), want);
    }

    #[test]
    fn a_new_file_knows_new_blocks_only() {
        let table = LocationTable::default();
        let mut file = TraceFile::new(Vec::new(), Format::V2, &info()).unwrap();
        feed(&mut file, &[(0, Record::Frames { keep: 0, new: &[7, 8] }), (0, ALLOC), (0, ALLOC)]);
        let first = file.rotate((Vec::new(), Format::V2), &info(), &mut &table).unwrap();
        feed(
            &mut file,
            &[
                (0, Record::End(End::Collect, BlockRun::one(BlockId::new(0, 0)))),
                (0, ALLOC),
                (0, Record::End(End::Collect, BlockRun::one(BlockId::new(0, 2)))),
            ],
        );
        let second = file.encoder.finish(&mut &table).unwrap();
        assert_eq!(told(&first).len(), 2);
        assert_eq!(told(&second), [(0, "alloc 0 [7, 8]".to_owned()), (0, "collect 0".to_owned())]);
    }
}
