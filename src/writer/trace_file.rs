//! One trace file: records in, packets out.

use std::io::Write;
use std::slice::Iter;

use heaptap_trace::{
    Block, DomainEncoder, Encoder, End, Format, Locate, SmallAlloc, Source, TraceInfo, WriteError,
};

use crate::queue::{BlockId, LEFT_OUT, Part, Record, Sample};
use crate::sys::prefetch::prefetch;
use crate::writer::Host;
use crate::writer::numbers::{Known, Numbers};
use crate::writer::shown::{ShownStack, common_outermost};

/// So many bytes ahead words are fetched: another processor has written them.
const AHEAD: usize = 64 * size_of::<u64>();

/// What is fetched at a time, in bytes. Most samples have more than one of it.
const LINE: usize = 64;

/// What the writer knows of one lane.
struct Lane {
    stack: ShownStack,
    numbers: Numbers,
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
            lane.numbers = Numbers::from(lane.numbers.next());
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
        while let Some(record) = Record::take(&mut rest) {
            match record {
                Record::Sample(sample) => {
                    lane.samples(sample, &mut rest, &mut domain, host)?;
                }
                Record::Time(ticks) => lane.pass(ticks, host),
                Record::Frames { keep, new } => lane.stack.change(keep, new),
                Record::Again { times } => lane.stack.repeat(times),
                Record::Stack { inner_first } => lane.stack.replace(inner_first),
                Record::Small { length } => lane.small(&mut domain, length, host)?,
                Record::Alloc { source, part, samples, length } => {
                    let samples = samples.clamp(1, length.saturating_add(1));
                    lane.alloc(&mut domain, Block { length, samples, source }, part, host)?;
                }
                Record::Promote(block) | Record::Collect(block) => {
                    let first = match others.find(lane, block) {
                        Known::Id(id) => end_of(record, id),
                        Known::Earlier => None,
                        Known::NotYet => return Ok(words.len() - rest.len() - record.len()),
                    };
                    domain.ends(lane.time, &mut first.into_iter(), host)?;
                    // They come in crowds.
                    let mut more = std::iter::from_fn(|| lane.take_end(&mut rest));
                    domain.ends(lane.time, &mut more, host)?;
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
                numbers: Numbers::from(BlockId::new(new as u16, 0)),
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

/// The end that a record tells, of the block with this id.
#[inline(always)]
fn end_of(record: Record<'_>, id: u64) -> Option<End> {
    match record {
        Record::Promote(_) => Some(End::Promote(id)),
        Record::Collect(_) => Some(End::Collect(id)),
        _ => None,
    }
}

impl Lane {
    /// The next record, if it tells the end of a block whose id is easily found.
    #[inline(always)]
    fn take_end(&self, words: &mut Iter<'_, u64>) -> Option<End> {
        let mut ahead = words.clone();
        let record = Record::take(&mut ahead)?;
        let (Record::Promote(block) | Record::Collect(block)) = record else { return None };
        let end = end_of(record, self.numbers.find_recent(block)?);
        *words = ahead;
        end
    }

    fn pass(&mut self, ticks: u64, host: &mut impl Host) {
        self.time = self.time.max(host.micros(ticks));
    }

    /// Writes a sample and those that follow it. They come in crowds, each with
    /// all of its stack: as long as that is so, the last one's words are the stack
    /// that the file shows.
    #[inline(never)]
    fn samples<'a, W: Write>(
        &mut self,
        first: Sample<'a>,
        words: &mut Iter<'a, u64>,
        domain: &mut DomainEncoder<'_, W>,
        host: &mut impl Host,
    ) -> Result<(), WriteError> {
        let Sample { ticks, inner_first: mut shown, length } = first;
        self.pass(ticks, host);
        self.stack.replace(shown);
        self.small(domain, length, host)?;
        while self.stack.is_all_shown() {
            let mut allocs = std::iter::from_fn(|| {
                let ahead = words.as_slice().as_ptr().addr() + AHEAD;
                prefetch(ahead);
                prefetch(ahead + LINE);
                let Sample { ticks, inner_first, length } = Sample::take(words)?;
                self.time = self.time.max(host.micros(ticks));
                let same = common_outermost(shown, inner_first);
                shown = inner_first;
                Some(SmallAlloc {
                    time: self.time,
                    length,
                    common_prefix: same as u64,
                    inner_first: inner_first.get(..inner_first.len() - same).unwrap_or(&[]),
                })
            });
            let (ids, unusual) = domain.usual_allocs(&mut allocs);
            if ids.is_empty() && unusual.is_none() {
                break;
            }
            self.numbers.add_all(ids);
            let same = unusual.map_or(shown.len(), |alloc| alloc.common_prefix as usize);
            self.stack.show(shown, same);
            let Some(SmallAlloc { length, .. }) = unusual else { break };
            self.small(domain, length, host)?;
        }
        Ok(())
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
        let (id, left_out) = domain.alloc_both_ends(self.time, block, backtrace, LEFT_OUT, host)?;
        self.stack.written(left_out);
        self.numbers.add(id);
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

    /// What the file knows of a block.
    #[inline(always)]
    fn find(&self, lane: &Lane, block: BlockId) -> Known {
        lane.numbers.find_recent(block).map_or_else(|| self.find_any(lane, block), Known::Id)
    }

    /// Of a lane that was not read yet no block is known yet.
    #[cold]
    fn find_any(&self, lane: &Lane, block: BlockId) -> Known {
        let mut lanes = self.before.iter().chain([lane]).chain(self.behind);
        let of = lanes.nth(usize::from(block.lane()));
        of.map_or(Known::NotYet, |lane| lane.numbers.find(block))
    }
}

#[cfg(test)]
mod tests {
    use heaptap_trace::{Happening, LocationList, LocationTable, Mode, Reader};
    use proptest::prelude::*;

    use super::*;

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

    const ALLOC: Record<'static> = Record::Small { length: 2 };

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
                record.put(&mut words).unwrap();
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
            let mut blocks = 0;
            let records: Vec<_> = records
                .iter()
                .filter_map(|(kind, number, frames)| {
                    let block = BlockId::new(0, number % u64::max(blocks, 1));
                    let record = match kind {
                        0 => Record::Time(*number),
                        1 => Record::Frames { keep: *number as usize % 5, new: frames },
                        2 => Record::Small { length: number + 1 },
                        3 => Record::alloc(Source::Major, Part::NONE, 2, number + 1),
                        4 => Record::Stack { inner_first: frames },
                        5 => Record::Again { times: *number as usize },
                        8 => Record::Sample(Sample {
                            ticks: *number,
                            inner_first: frames,
                            length: number + 1,
                        }),
                        _ if blocks == 0 => return None,
                        6 => Record::Promote(block),
                        _ => Record::Collect(block),
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
                room = record.put(room).unwrap();
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
            let what = match event.what {
                Happening::Alloc(a) => format!("alloc {} {:?}", a.id, a.backtrace.frames),
                Happening::Promote(id) => format!("promote {id}"),
                Happening::Collect(id) => format!("collect {id}"),
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
                (0, Record::Promote(block(1))),
                (0, Record::Collect(block(0))),
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
                (1, Record::Collect(BlockId::new(0, 1))),
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
        let alloc = |index| Record::alloc(Source::Minor, Part::of_index(index), 1, 2);
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
                (0, Record::Collect(BlockId::new(0, 0))),
                (0, ALLOC),
                (0, Record::Collect(BlockId::new(0, 2))),
            ],
        );
        let second = file.encoder.finish(&mut &table).unwrap();
        assert_eq!(told(&first).len(), 2);
        assert_eq!(told(&second), [(0, "alloc 0 [7, 8]".to_owned()), (0, "collect 0".to_owned())]);
    }
}
