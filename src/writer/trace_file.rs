//! One trace file: records in, packets out.

use std::io::Write;

use heaptap_trace::{Block, Encoder, Format, Locate, TraceInfo, WriteError};

use crate::queue::{BlockId, LEFT_OUT, Record};
use crate::writer::Host;
use crate::writer::numbers::{Known, Numbers};
use crate::writer::shown::ShownStack;

/// What the writer knows of one lane.
struct Lane {
    stack: ShownStack,
    numbers: Numbers,
    /// Microseconds since the epoch, of the last event or later: a domain's
    /// times never run backwards.
    time: u64,
}

/// Whether a record could be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Done,
    /// It is about a block whose allocation another lane has not told of yet.
    /// That lane must be read first.
    Early,
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
    pub(crate) fn apply_all(
        &mut self,
        number: u16,
        words: &[u64],
        host: &mut impl Host,
    ) -> Result<usize, WriteError> {
        self.enter(number);
        let mut rest = words;
        while let Some((record, behind)) = Record::take(rest) {
            if self.apply(number, record, host)? == Step::Early {
                return Ok(words.len() - rest.len());
            }
            rest = behind;
        }
        debug_assert!(rest.is_empty(), "words that are no record");
        Ok(words.len())
    }

    /// Writes what a lane told, which has been entered.
    #[inline(always)]
    fn apply(
        &mut self,
        number: u16,
        record: Record<'_>,
        host: &mut impl Host,
    ) -> Result<Step, WriteError> {
        let Some(lane) = self.lanes.get_mut(usize::from(number)) else {
            return Ok(Step::Done);
        };
        match record {
            Record::Time(ticks) => lane.time = lane.time.max(host.micros(ticks)),
            Record::Frames { keep, new } => lane.stack.change(keep, new),
            Record::Alloc { source, part, samples, length } => {
                let block = Block { length, samples: samples.clamp(1, length + 1), source };
                let backtrace = lane.stack.backtrace(part);
                let (id, left_out) = self
                    .encoder
                    .alloc_both_ends(number, lane.time, block, backtrace, LEFT_OUT, host)?;
                lane.stack.written(left_out);
                lane.numbers.add(id);
            }
            Record::Promote(block) => return self.end(number, block, true, host),
            Record::Collect(block) => return self.end(number, block, false, host),
        }
        Ok(Step::Done)
    }

    fn end(
        &mut self,
        number: u16,
        block: BlockId,
        promoted: bool,
        locate: &mut impl Locate,
    ) -> Result<Step, WriteError> {
        if block.lane() != number {
            self.enter(block.lane());
        }
        let known = self.lanes.get(usize::from(block.lane()));
        let id = match known.map(|lane| lane.numbers.find(block.number())) {
            Some(Known::Id(id)) => id,
            Some(Known::NotYet) => return Ok(Step::Early),
            Some(Known::Earlier) | None => return Ok(Step::Done),
        };
        let time = self.lanes.get(usize::from(number)).map_or(0, |lane| lane.time);
        if promoted {
            self.encoder.promote(number, time, id, locate)?;
        } else {
            self.encoder.collect(number, time, id, locate)?;
        }
        Ok(Step::Done)
    }

    fn enter(&mut self, number: u16) {
        while self.lanes.len() <= usize::from(number) {
            self.lanes.push(Lane {
                stack: ShownStack::default(),
                numbers: Numbers::from(0),
                time: self.start_time,
            });
        }
    }

    /// Writes what is held back.
    pub(crate) fn flush(&mut self, locate: &mut impl Locate) -> Result<(), WriteError> {
        self.encoder.flush(locate)
    }

    /// Ends the file.
    pub(crate) fn finish(self, locate: &mut impl Locate) -> Result<W, WriteError> {
        self.encoder.finish(locate)
    }
}

#[cfg(test)]
mod tests {
    use heaptap_trace::{Happening, LocationList, LocationTable, Mode, Reader, Source};

    use super::*;
    use crate::queue::Part;

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

    const ALLOC: Record<'static> =
        Record::Alloc { source: Source::Minor, part: Part::NONE, samples: 1, length: 2 };

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
                file.enter(lane);
                let step = file.apply(lane, record, &mut Ticks).unwrap();
                if step == Step::Early {
                    stuck.push(lane);
                }
                step == Step::Early
            });
            assert!(waiting.len() < before, "no progress");
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
        let bytes = file.finish(&mut &LocationTable::default()).unwrap();
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
        let bytes = file.finish(&mut &LocationTable::default()).unwrap();
        let told = told(&bytes);
        assert_eq!(told.len(), 4);
        assert!(told.iter().any(|(time, what)| *time == 7 && what == "collect 1"), "{told:?}");
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
        let second = file.finish(&mut &table).unwrap();
        assert_eq!(told(&first).len(), 2);
        assert_eq!(told(&second), [(0, "alloc 0 [7, 8]".to_owned()), (0, "collect 0".to_owned())]);
    }
}
