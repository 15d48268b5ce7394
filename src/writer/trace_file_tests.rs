//! Tests of [`TraceFile`].

use std::ffi::OsStr;

use heaptap_trace::{
    Encoder, End, EventKind, EventSource as _, LocationList, LocationTable, Mode, Reader, Source,
};
use proptest::prelude::*;

use super::*;
use crate::queue::{BlockId, BlockRun, Part, Sample};

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

fn new_file() -> NewFile<Vec<u8>> {
    NewFile { out: Vec::new(), info: info(), late_params: None }
}

fn begun(format: TraceFormat) -> TraceFile<Encoder<Vec<u8>>> {
    TraceFile::new(format, new_file(), None).unwrap()
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

impl Context for Ticks {
    fn observe_time(&mut self) {}

    fn micros(&mut self, ticks: u64) -> u64 {
        1_000_000 + ticks
    }

    fn now(&mut self) -> u64 {
        1_000_000
    }

    /// The second and the third part have the same location.
    fn part_code(&mut self, return_address: u64, part: Part) -> u64 {
        let second = part == Part::of_index(2);
        if second { Part::of_index(1) } else { part }.in_code(return_address)
    }

    fn write_failed(&mut self, output: &OsStr, error: &WriteError) {
        panic!("{}: {error}", output.display());
    }
}

/// Feeds records, in several rounds while some must wait.
fn feed(file: &mut TraceFile<Encoder<Vec<u8>>>, records: &[(u16, Record<'_>)]) {
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

/// The records of one lane: kind, number and frames of each.
fn records() -> impl Strategy<Value = Vec<(u8, u64, Vec<u64>)>> {
    let kind = prop_oneof![1 => 0..8u8, 1 => Just(8)];
    prop::collection::vec((kind, 0..20u64, prop::collection::vec(1..9u64, 0..12)), 0..60)
}

proptest! {
    /// Whether the records are read one by one or many at once, the file is
    /// the same.
    #[test]
    fn records_read_at_once_give_the_same_file(records in records()) {
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
        let mut one_by_one = begun(TraceFormat::Memtrace2);
        feed(&mut one_by_one, &records.iter().map(|&record| (0, record)).collect::<Vec<_>>());
        let mut words = vec![0; records.iter().map(Record::len).sum()];
        let mut room = &mut words[..];
        for record in &records {
            room = record.encode(room).unwrap();
        }
        let mut in_one_go = begun(TraceFormat::Memtrace2);
        prop_assert_eq!(in_one_go.apply_all(0, &words, &mut Ticks).unwrap(), words.len());
        let [one_by_one, in_one_go] =
            [one_by_one, in_one_go].map(|file| file.sink.finish(&mut Ticks).unwrap());
        prop_assert_eq!(events(&one_by_one), events(&in_one_go));
        prop_assert_eq!(one_by_one, in_one_go);
    }
}

fn events(bytes: &[u8]) -> Vec<(u64, String)> {
    let mut reader = Reader::from_slice(bytes, Mode::Strict).unwrap();
    let mut events = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        let text = match event.kind {
            EventKind::Alloc(a) => format!("alloc {} {:?}", a.id, a.backtrace.frames),
            EventKind::Promote(id) => format!("promote {id}"),
            EventKind::Collect(id) => format!("collect {id}"),
            other => unreachable!("the writer writes no {other:?}"),
        };
        events.push((event.time - 1_000_000, text));
    }
    events
}

#[test]
fn times_and_stacks_stay_until_changed() {
    let mut file = begun(TraceFormat::Memtrace2);
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
    let bytes = file.sink.finish(&mut &LocationTable::default()).unwrap();
    let want = [
        (5, "alloc 0 [10, 20, 30]"),
        (5, "alloc 1 [10, 20, 30]"),
        (5, "alloc 2 [10, 40, 50]"),
        (9, "promote 1"),
        (9, "collect 0"),
    ];
    assert_eq!(events(&bytes), want.map(|(time, text)| (time, text.to_owned())));
}

#[test]
fn an_end_waits_for_the_allocation_on_another_lane() {
    let mut file = begun(TraceFormat::Memtrace3);
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
    let bytes = file.sink.finish(&mut &LocationTable::default()).unwrap();
    let events = events(&bytes);
    assert_eq!(events.len(), 4);
    assert!(events.iter().any(|(time, text)| *time == 7 && text == "collect 1"), "{events:?}");
}

#[test]
fn parts_with_one_location_have_one_code() {
    let mut file = begun(TraceFormat::Memtrace2);
    let alloc = |index| {
        let (source, part) = (Source::Minor, Part::of_index(index));
        Record::Alloc { source, part, samples: 1, length: 2 }
    };
    let frames = Record::Frames { keep: 0, new: &[10, 20] };
    feed(&mut file, &[(0, frames), (0, alloc(1)), (0, alloc(2)), (0, alloc(0))]);
    let bytes = file.sink.finish(&mut &LocationTable::default()).unwrap();
    let frames = |index| [10, Part::of_index(index).in_code(20)];
    let want = [1, 1, 0].map(frames).into_iter().enumerate();
    let want: Vec<_> = want.map(|(id, frames)| (0, format!("alloc {id} {frames:?}"))).collect();
    assert_eq!(events(&bytes), want);
}

/// Blocks of a kind and blocks of none may be allocated in turn, in the same frame.
#[test]
fn a_block_without_part_or_kind_has_the_code_as_recorded() {
    let mut file = begun(TraceFormat::Memtrace2);
    let (source, part) = (Source::Minor, Part::of_index(0));
    let with_part = Record::Alloc { source, part, samples: 1, length: 2 };
    let frames = Record::Frames { keep: 0, new: &[10, 20] };
    feed(&mut file, &[(0, frames), (0, with_part), (0, ALLOC), (0, with_part), (0, ALLOC)]);
    let bytes = file.sink.finish(&mut &LocationTable::default()).unwrap();
    let code = part.in_code(20);
    let want = [code, 20, code, 20].into_iter().enumerate();
    let want: Vec<_> = want.map(|(id, code)| (0, format!("alloc {id} {:?}", [10, code]))).collect();
    assert_eq!(events(&bytes), want);
}

#[test]
fn a_new_file_knows_new_blocks_only() {
    let table = LocationTable::default();
    let mut file = begun(TraceFormat::Memtrace2);
    feed(&mut file, &[(0, Record::Frames { keep: 0, new: &[7, 8] }), (0, ALLOC), (0, ALLOC)]);
    let first = file.rotate(new_file()).unwrap().finish(&mut &table).unwrap();
    feed(
        &mut file,
        &[
            (0, Record::End(End::Collect, BlockRun::one(BlockId::new(0, 0)))),
            (0, ALLOC),
            (0, Record::End(End::Collect, BlockRun::one(BlockId::new(0, 2)))),
        ],
    );
    let second = file.sink.finish(&mut &table).unwrap();
    assert_eq!(events(&first).len(), 2);
    assert_eq!(events(&second), [(0, "alloc 0 [7, 8]".to_owned()), (0, "collect 0".to_owned())]);
}

/// `: > trace.ctf` while it is written: what follows is a trace from the first byte of the file on.
#[test]
fn a_file_that_was_truncated_has_another_trace() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("trace.ctf");
    let table = LocationTable::default();
    let out: Box<dyn TraceOutput> = Box::new(crate::sys::file::create(&path).unwrap());
    let first = NewFile { out, info: info(), late_params: None };
    let mut file = TraceFile::<Encoder<_>>::new(TraceFormat::Memtrace2, first, None).unwrap();
    let frames = Record::Frames { keep: 0, new: &[7, 8] };
    let apply = |file: &mut TraceFile<Encoder<_>>, records: &[Record<'_>]| {
        for record in records {
            let mut words = vec![0; record.len()];
            record.encode(&mut words).unwrap();
            assert_eq!(file.apply_all(0, &words, &mut Ticks).unwrap(), words.len());
        }
        file.flush(&mut &table).unwrap();
    };
    apply(&mut file, &[frames, ALLOC, ALLOC]);
    assert!(!file.was_truncated());
    std::fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    apply(&mut file, &[ALLOC]);
    file.set_completion(Completion::Complete);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0, "written behind a hole");
    assert!(file.was_truncated());
    file.restart(3_000_000).unwrap();
    let ended = |block| Record::End(End::Collect, BlockRun::one(BlockId::new(0, block)));
    apply(&mut file, &[ended(1), ALLOC, ended(3)]);
    file.end(3_000_000, &mut &table).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let reader = Reader::from_slice(&bytes, Mode::Strict).unwrap();
    assert_eq!(reader.info().start_time, 3_000_000);
    let at = |text: &str| (2_000_000, text.to_owned());
    assert_eq!(events(&bytes), [at("alloc 0 [7, 8]"), at("collect 0")]);
}
