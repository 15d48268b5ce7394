//! A series as a whole: what a program does is read from the parts, from any of them on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Write as _};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heaptap_trace::{
    Encoder, Event, EventKind, EventSource, Limits, LiveSink as _, LocationList, LocationTable,
    Mode, PartSource, Polled, SeriesReader, SeriesSummary, SeriesTail, Source, Stream, Tail,
    TraceFormat, TraceInfo, WriteError, open_in_time_order, series_name,
};
use proptest::prelude::*;

use super::*;
use crate::queue::{BlockId, BlockRun, Part, Record};
use crate::sys::part_files::PartFiles;
use crate::sys::recording::{DirectoryName, NewDirectory, Recording};
use crate::writer::context::Context;
use crate::writer::trace_file::{NewFile, TraceFile};

/// A tick is a microsecond.
struct Ticks;

impl Locate for Ticks {
    fn locate(&mut self, _: u64, _: &mut LocationList) {}
}

impl Context for Ticks {
    fn observe_time(&mut self) {}

    fn micros(&mut self, ticks: u64) -> u64 {
        1_000 + ticks
    }

    fn now(&mut self) -> u64 {
        1_000
    }

    fn part_code(&mut self, return_address: u64, _: Part) -> u64 {
        return_address
    }

    fn write_failed(&mut self, _: &std::ffi::OsStr, error: &WriteError) {
        panic!("{error}");
    }
}

fn info(sample_rate: f64, start_time: u64) -> TraceInfo {
    TraceInfo {
        sample_rate,
        word_size: 64,
        executable: b"test".to_vec(),
        host: b"here".to_vec(),
        runtime_params: Vec::new(),
        pid: 1,
        context: Vec::new(),
        start_time,
        domain: 0,
    }
}

/// What becomes of a block.
#[derive(Clone, Debug, Default, PartialEq)]
struct Life {
    birth: u64,
    promotion: Option<u64>,
    death: Option<u64>,
    samples: u64,
    stack: Vec<u64>,
    rate: f64,
}

const RATES: [f64; 3] = [0.5, 1e-3, 0.1];

/// A program whose trace is a series.
struct Program {
    file: TraceFile<Encoder<PartOutput>>,
    parts: Vec<PathBuf>,
    time: u64,
    /// By lane: how many blocks it has had, its rate, and its last stack.
    lanes: [(u64, f64); 2],
    alive: Vec<BlockId>,
    lives: BTreeMap<u64, Life>,
    /// The lives at the beginning of each part.
    before: Vec<BTreeMap<u64, Life>>,
}

impl Program {
    fn new(directory: &Path, format: TraceFormat) -> Program {
        let files = PartFiles::new(directory.join("s.ctf").as_os_str(), 1000).unwrap();
        let files = SharedFiles::new(files, RotationLimits::default());
        Program::in_store(Store::Files(files), format)
    }

    fn in_store(store: Store, format: TraceFormat) -> Program {
        let series = Series::new(store, RotationLimits::default(), [7; 16]);
        let mut series = Box::new(series);
        let claimed = series.claim().unwrap();
        let out = series.open(&claimed.trace).unwrap();
        let parts = vec![claimed.trace.clone()];
        series.begin_part(claimed, 0.5, 1_000, 0, &mut Ticks).unwrap();
        let first = NewFile { out, info: info(0.5, 1_000), late_params: None };
        let file = TraceFile::new(format, first, Some(series)).unwrap();
        let lanes = [(0, 0.5); 2];
        let (alive, lives, before) = (Vec::new(), BTreeMap::new(), vec![BTreeMap::new()]);
        let mut program = Program { file, parts, time: 0, lanes, alive, lives, before };
        (0..2).for_each(|lane| program.record(lane, Record::Rate(0.5_f64.to_bits())));
        program
    }

    /// One whose trace is one file, at one rate so far.
    fn of_one_file(directory: &Path, format: TraceFormat) -> Program {
        let trace = directory.join("one.ctf");
        let out = Store::OneFile.open(&trace).unwrap();
        let first = NewFile { out, info: info(0.5, 1_000), late_params: None };
        let file = TraceFile::new(format, first, None).unwrap();
        let (alive, lives, before) = (Vec::new(), BTreeMap::new(), vec![BTreeMap::new()]);
        Program { file, parts: vec![trace], time: 0, lanes: [(0, 0.5); 2], alive, lives, before }
    }

    /// Has a place for blocks at other rates from now on.
    fn allow_many_rates(&mut self) {
        if self.file.series.is_none() {
            let (mut series, files) = Series::beside(&self.parts[0], [8; 16]).unwrap();
            series.begin_part(files, 0.5, 1_000, 0, &mut Ticks).unwrap();
            self.file.begin_series(Box::new(series));
        }
    }

    fn change_rate(&mut self, lane: u16, rate: f64) {
        self.lanes[usize::from(lane)].1 = rate;
        self.record(lane, Record::Rate(rate.to_bits()));
    }

    fn record(&mut self, lane: u16, record: Record<'_>) {
        let mut words = vec![0; record.len()];
        record.encode(&mut words).unwrap();
        assert_eq!(self.file.apply_all(lane, &words, &mut Ticks).unwrap(), words.len());
    }

    fn next_part(&mut self, rate: f64) {
        self.file.flush(&mut Ticks).unwrap();
        let (start, used) = (1_000 + self.time, self.file.free_id());
        let series = self.file.series.as_mut().unwrap();
        let claimed = series.claim().unwrap();
        let (trace, before) = series.begin_part(claimed, rate, start, used, &mut Ticks).unwrap();
        let out = series.open(&trace).unwrap();
        let new = NewFile { out, info: info(rate, start), late_params: None };
        self.file.rotate(new).unwrap().end(start, &mut Ticks).unwrap();
        self.file.series.as_mut().unwrap().end_before(before, start).unwrap();
        self.parts.push(trace);
        self.before.push(self.lives.clone());
    }

    /// Does one of the things that a program does whose trace is one file.
    fn step_in_one_file(&mut self, kind: u8, lane: u16, number: u64, one_lane: bool) {
        match kind {
            0 => self.allow_many_rates(),
            1 | 2 if self.file.series.is_none() => {}
            1 | 2 => self.change_rate(if one_lane { 0 } else { lane }, RATES[number as usize % 3]),
            _ => self.step(kind, lane, number, one_lane),
        }
    }

    /// Does one of the things that a program does.
    fn step(&mut self, kind: u8, lane: u16, number: u64, one_lane: bool) {
        let lane = if one_lane { 0 } else { lane };
        self.time += 1;
        match kind {
            0 => self.next_part(self.file.rate()),
            1 => self.next_part(RATES[number as usize % 3]),
            2 => {
                let rate = self.file.rate();
                self.change_rate(lane, rate);
            }
            3..=6 if !self.alive.is_empty() => self.end(kind, lane, number as usize),
            _ => self.alloc(lane, number),
        }
    }

    fn end(&mut self, kind: u8, lane: u16, number: usize) {
        let at = number % self.alive.len();
        let (block, time) = (self.alive[at], 1_000 + self.time);
        let life = self.lives.get_mut(&block.to_bits()).unwrap();
        let end = if kind == 3 { End::Promote } else { End::Collect };
        match end {
            End::Promote if life.promotion.is_some() => return,
            End::Promote => life.promotion = Some(time),
            End::Collect => {
                life.death = Some(time);
                self.alive.remove(at);
            }
        }
        // Only the domain that allocated a block promotes it.
        let lane = if end == End::Promote { block.lane() } else { lane };
        self.record(lane, Record::Time(self.time));
        self.record(lane, Record::End(end, BlockRun { first: block, count: 1 }));
    }

    fn alloc(&mut self, lane: u16, number: u64) {
        let stack: Vec<u64> = (1..=number % 5 + 1).map(|at| 10 * at + number % 3).collect();
        let samples = 1 + number % 4;
        self.record(lane, Record::Time(self.time));
        self.record(lane, Record::Frames { keep: 0, new: &stack });
        let (source, part, length) = (Source::Minor, Part::NONE, samples + 1);
        self.record(lane, Record::Alloc { source, part, samples, length });
        let (blocks, rate) = &mut self.lanes[usize::from(lane)];
        let block = BlockId::new(lane, *blocks);
        *blocks += 1;
        let (birth, rate) = (1_000 + self.time, *rate);
        let life = Life { birth, promotion: None, death: None, samples, stack, rate };
        self.alive.push(block);
        self.lives.insert(block.to_bits(), life);
    }
}

/// The same as they are found while the parts are written.
fn tailed(parts: &[PathBuf]) -> Vec<Life> {
    let mut lives: BTreeMap<u64, Life> = BTreeMap::new();
    let mut take = |event: &Event<'_>, _: &LocationTable, rate: f64| match event.kind {
        EventKind::Alloc(block) => {
            let (samples, stack) = (block.samples, block.backtrace.frames.to_vec());
            let birth = event.time;
            let life = Life { birth, samples, stack, rate, ..Life::default() };
            assert!(lives.insert(block.id, life).is_none(), "block {} comes twice", block.id);
        }
        EventKind::Promote(id) => {
            // In the order of the file, what another domain has collected may be promoted later.
            let life = lives.get_mut(&id).expect("it was allocated");
            assert!(life.promotion.replace(event.time).is_none());
        }
        EventKind::Collect(id) => {
            let life = lives.get_mut(&id).expect("it was allocated");
            assert!(life.death.replace(event.time).is_none());
        }
        _ => {}
    };
    let mut series = SeriesTail::default();
    for (number, part) in parts.iter().enumerate() {
        let sidecar = || {
            let file = File::open(series_name(part.as_os_str())).unwrap();
            SeriesReader::new(BufReader::new(file)).unwrap()
        };
        let first_id = SeriesSummary::of(&mut sidecar()).unwrap().first_id;
        series.begin_part(sidecar(), first_id, number == 0);
        let mut trace = Tail::new(File::open(part).unwrap(), Mode::Strict, Limits::default());
        trace.stop(None);
        let mut pass_on = |event: &Event<'_>, table: &LocationTable| {
            series.event(event, table, &mut take).unwrap();
            ControlFlow::Continue(())
        };
        while trace.poll(&mut pass_on).unwrap() != Polled::Ended {}
        series.rest(&mut take).unwrap();
        assert!(series.part_is_complete() && series.defect().is_none());
    }
    ordered(lives.into_values())
}

/// The lives in these parts, of which the first one is read with what was alive before.
fn read(parts: &[PathBuf]) -> Vec<Life> {
    let mut lives: BTreeMap<u64, Life> = BTreeMap::new();
    for (number, part) in parts.iter().enumerate() {
        let stream = || Ok(Stream::new(File::open(part).unwrap()));
        let trace = open_in_time_order(stream, Mode::Strict, Limits::default()).unwrap();
        let sidecar = || {
            let file = File::open(series_name(part.as_os_str())).unwrap();
            SeriesReader::new(BufReader::new(file)).unwrap()
        };
        let summary = SeriesSummary::of(&mut sidecar()).unwrap();
        // A part is complete, unless it is written at this moment.
        let is_last = number + 1 == parts.len();
        assert!(summary.defect.is_none() && (summary.is_complete || is_last));
        let mut source = PartSource::new(trace, sidecar(), summary.first_id, number == 0);
        while let Some((event, _)) = source.next_located().unwrap() {
            let time = event.time;
            let born = match event.kind {
                EventKind::Alloc(block) => {
                    let (samples, stack) = (block.samples, block.backtrace.frames.to_vec());
                    Some((block.id, Life { birth: time, samples, stack, ..Life::default() }))
                }
                EventKind::Promote(id) => {
                    let life = lives.get_mut(&id).expect("it was allocated");
                    assert!(life.promotion.replace(time).is_none() && life.death.is_none());
                    None
                }
                EventKind::Collect(id) => {
                    let life = lives.get_mut(&id).expect("it was allocated");
                    assert!(life.death.replace(time).is_none());
                    None
                }
                _ => None,
            };
            if let Some((id, life)) = born {
                let life = Life { rate: source.sampled_at(), ..life };
                assert!(lives.insert(id, life).is_none(), "block {id} comes twice");
            }
        }
    }
    ordered(lives.into_values())
}

fn ordered(lives: impl Iterator<Item = Life>) -> Vec<Life> {
    let mut lives: Vec<Life> = lives.collect();
    lives.sort_by_key(|life| life.birth);
    lives
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn lives_are_whole_from_any_part_on(
        steps in prop::collection::vec((0..24_u8, 0..2_u16, any::<u64>()), 1..200),
        one_lane in any::<bool>(),
    ) {
        let place = tempfile::tempdir().unwrap();
        let format = if one_lane { TraceFormat::Memtrace2 } else { TraceFormat::Memtrace3 };
        let mut program = Program::new(place.path(), format);
        for (kind, lane, number) in steps {
            program.step(kind, lane, number, one_lane);
        }
        let end = 1_000 + program.time;
        program.file.end(end, &mut Ticks).unwrap();
        for (first, before) in program.before.iter().enumerate() {
            // What was gone by then is not known any more.
            let gone = |id: &u64| before.get(id).is_some_and(|life| life.death.is_some());
            let lives = program.lives.iter().filter(|(id, _)| !gone(id));
            let expected = ordered(lives.map(|(_, life)| life.clone()));
            prop_assert_eq!(&read(&program.parts[first..]), &expected, "from part {}", first);
            prop_assert_eq!(&tailed(&program.parts[first..]), &expected, "tailed from {}", first);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever was dropped, and at whatever moment it is written.
    #[test]
    fn what_is_kept_in_memory_is_whole_from_its_first_part_on(
        steps in prop::collection::vec((0..24_u8, 0..2_u16, any::<u64>()), 1..300),
        chunks in 8..40_u64,
        writes in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let place = tempfile::tempdir().unwrap();
        let recording = Arc::new(Recording::new(chunks * 4096, Duration::from_secs(3600)).unwrap());
        let store = Store::Memory(Arc::clone(&recording));
        let mut program = Program::in_store(store, TraceFormat::Memtrace3);
        let writes: Vec<usize> = writes.iter().map(|write| write.index(steps.len())).collect();
        for (step, (kind, lane, number)) in steps.into_iter().enumerate() {
            program.step(kind, lane, number, false);
            prop_assert!(recording.bytes() <= chunks * 4096);
            if writes.contains(&step) {
                program.file.flush(&mut Ticks).unwrap();
                let directory = place.path().join(step.to_string());
                let named = NewDirectory::Named(directory.as_os_str().as_bytes());
                let written = recording.write_to(&named, b"s", &mut Box::new(DirectoryName::new()));
                prop_assert_eq!(written.errno, 0);
                let name = |part: u64| directory.join(format!("s.{part:06}.ctf"));
                let parts: Vec<PathBuf> = (written.oldest..).map(name).take(written.parts).collect();
                let before = &program.before[written.oldest as usize - 1];
                let gone = |id: &u64| before.get(id).is_some_and(|life| life.death.is_some());
                let lives = program.lives.iter().filter(|(id, _)| !gone(id));
                let expected = ordered(lives.map(|(_, life)| life.clone()));
                prop_assert_eq!(read(&parts), expected, "from part {}", written.oldest);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn lives_in_one_file_are_whole_at_whatever_rates(
        steps in prop::collection::vec((0..24_u8, 0..2_u16, any::<u64>()), 1..300),
        one_lane in any::<bool>(),
    ) {
        let place = tempfile::tempdir().unwrap();
        let format = if one_lane { TraceFormat::Memtrace2 } else { TraceFormat::Memtrace3 };
        let mut program = Program::of_one_file(place.path(), format);
        for (kind, lane, number) in steps {
            program.step_in_one_file(kind, lane, number, one_lane);
        }
        program.allow_many_rates();
        let end = 1_000 + program.time;
        program.file.end(end, &mut Ticks).unwrap();
        prop_assert_eq!(read(&program.parts), ordered(program.lives.into_values()));
    }
}

#[test]
fn a_base_that_is_too_large_is_left_out() {
    let place = tempfile::tempdir().unwrap();
    let mut program = Program::new(place.path(), TraceFormat::Memtrace2);
    for number in 0..20_000 {
        program.time += 1;
        program.alloc(0, number);
    }
    let limits = RotationLimits { bytes: Some(100_000), age: None, keep: 9 };
    program.file.series.as_mut().unwrap().limits = limits;
    assert!(program.file.series.as_ref().unwrap().is_due());
    program.next_part(0.5);
    let sidecar = series_name(program.parts[1].as_os_str());
    let mut reader = SeriesReader::new(File::open(&sidecar).unwrap()).unwrap();
    let summary = SeriesSummary::of(&mut reader).unwrap();
    assert_eq!((summary.base, summary.defect), (None, None));
    assert!(std::fs::metadata(&sidecar).unwrap().len() < 1_000);
    // All of it is known if the part before is read.
    (0..program.alive.len()).rev().for_each(|at| {
        program.time += 1;
        program.end(4, 0, at);
    });
    program.file.end(2_000_000, &mut Ticks).unwrap();
    assert!(read(&program.parts).iter().all(|life| life.death.is_some()));
}

/// Whatever a part takes more than it should, others make room for.
#[test]
fn all_files_have_no_more_bytes_than_they_may() {
    const PART: usize = 100_000;
    let place = tempfile::tempdir().unwrap();
    let files = PartFiles::new(place.path().join("s.ctf").as_os_str(), 4).unwrap();
    let limits = RotationLimits { bytes: Some(PART as u64), age: None, keep: 4 };
    let series = Series::new(Store::Files(SharedFiles::new(files, limits)), limits, [7; 16]);
    let bytes = || -> u64 {
        let files = std::fs::read_dir(place.path()).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    };
    for size in [1, 2, 3, 1, 1, 3, 2, 1, 1, 1, 1] {
        let claimed = series.claim().unwrap();
        let mut out = series.open(&claimed.trace).unwrap();
        series.store.end_before();
        for _ in 0..size * 10 {
            out.write_all(&[0; PART / 10]).unwrap();
            assert!(bytes() <= 4 * PART as u64, "{} bytes", bytes());
        }
    }
    assert!(bytes() >= 3 * PART as u64, "more than needed was removed");
}
