//! The sidecar: what is written is read, up to wherever the file ends.

use proptest::prelude::*;

use super::*;
use crate::model::{
    Code, End, Event, EventKind, EventSource, Locate, Location, LocationList, LocationTable,
    Losses, ReadError, Source, TraceInfo,
};

const HEAD: SeriesHead = SeriesHead {
    series: *b"0123456789abcdef",
    part: 3,
    rate: 0.25,
    start_time: 1_000_000,
    series_start: 10,
    first_id: 500,
};

/// A code has as many locations as its number modulo 3.
struct Codes;

impl Locate for Codes {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        for at in 0..code % 3 {
            let definition = format!("f{code}");
            list.add(Location {
                file: b"a.ml",
                line: 10 * code as u32 + at as u32,
                start_char: 1,
                end_char: 2,
                definition: definition.as_bytes(),
            });
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Written {
    Block(CarriedBlock, Vec<Code>),
    Ends(CarriedEnds),
}

/// A sidecar with these base blocks and what follows, and where each chunk ends.
fn sidecar(base: &[Written], later: &[Written]) -> (Vec<u8>, Vec<usize>) {
    let mut encoder = SeriesEncoder::new(&HEAD);
    let (mut bytes, mut chunks) = (Vec::new(), Vec::new());
    for rate in [0.25, 1.0] {
        encoder.rate(rate);
    }
    let mut put = |encoder: &mut SeriesEncoder, written: &Written| {
        match written {
            Written::Block(block, stack) => {
                let mut node = 0;
                for &code in stack {
                    let code = encoder.code(code, &mut Codes);
                    node = encoder.node(node, code);
                }
                encoder.block(&CarriedBlock { node, ..*block });
            }
            Written::Ends(ends) => encoder.ends(ends),
        }
        if let Some(chunk) = encoder.take() {
            bytes.extend(chunk);
            chunks.push(bytes.len());
        }
    };
    base.iter().for_each(|written| put(&mut encoder, written));
    encoder.base_complete();
    later.iter().for_each(|written| put(&mut encoder, written));
    encoder.part_complete(5_000_000);
    bytes.extend(encoder.take().unwrap());
    (bytes, chunks)
}

fn read(bytes: &[u8]) -> (Vec<Written>, SeriesReader<&[u8]>) {
    let mut reader = SeriesReader::new(bytes).unwrap();
    let mut found = Vec::new();
    loop {
        let written = match reader.next_record().unwrap() {
            None => break,
            Some(SeriesRecord::Block(block)) => Written::Block(block, Vec::new()),
            Some(SeriesRecord::Ends(ends)) => Written::Ends(ends),
            Some(_) => continue,
        };
        found.push(match written {
            Written::Block(block, mut stack) => {
                reader.stack(block.node, &mut stack);
                Written::Block(CarriedBlock { node: 0, ..block }, stack)
            }
            ends => ends,
        });
    }
    (found, reader)
}

fn block() -> impl Strategy<Value = Written> {
    let numbers = (any::<u32>(), 0..2_000_000_u64, prop::option::of(0..1000_u64), 1..1_u64 << 40);
    let others = (0..3_usize, any::<u16>(), 0..2_u32, any::<u32>());
    let stack = prop::collection::vec(1..20_u64, 0..8);
    (numbers, others, stack).prop_map(|((id, birth, after, length), others, stack)| {
        let (source, domain, rate, position) = others;
        let block = CarriedBlock {
            id: u64::from(id),
            birth,
            promotion: after.map(|after| birth + after),
            length,
            samples: 1 + length / 2,
            source: Source::ALL[source],
            domain,
            node: 0,
            rate,
            position: u64::from(position),
        };
        Written::Block(block, stack)
    })
}

fn ends() -> impl Strategy<Value = Written> {
    let numbers = (any::<bool>(), any::<u32>(), any::<u16>(), any::<u32>(), any::<u32>(), 1..9_u64);
    numbers.prop_map(|(promotes, time, domain, position, first, count)| {
        let end = if promotes { End::Promote } else { End::Collect };
        let (time, position, first) = (u64::from(time), u64::from(position), u64::from(first));
        Written::Ends(CarriedEnds { end, time, domain, position, first, count })
    })
}

/// No more ends than there are blocks that can end.
fn possible(base: usize, later: Vec<Written>) -> Vec<Written> {
    let mut may_end = [base as u64; 2];
    let mut is_possible = |written: &Written| match written {
        Written::Block(..) => {
            may_end = may_end.map(|blocks| blocks + 1);
            true
        }
        Written::Ends(ends) => {
            let left = &mut may_end[usize::from(ends.end == End::Collect)];
            left.checked_sub(ends.count).map(|rest| *left = rest).is_some()
        }
    };
    later.into_iter().filter(|written| is_possible(written)).collect()
}

/// Whether the base is listed or left out, what comes later counts as later; and a rate at which nothing
/// was sampled is told, but for the part's own.
#[test]
fn samples_count_by_rate_before_and_after_the_base() {
    let block = |id, rate| CarriedBlock {
        id,
        birth: 1_000_001,
        promotion: None,
        length: 4,
        samples: 3,
        source: Source::Minor,
        domain: 0,
        node: 0,
        rate,
        position: 500,
    };
    for is_listed in [true, false] {
        let mut encoder = SeriesEncoder::new(&HEAD);
        for rate in [HEAD.rate, 0.5, 1e-3, 1e-7] {
            encoder.rate(rate);
        }
        if is_listed {
            encoder.block(&block(7, 1));
            encoder.base_complete();
        } else {
            encoder.base_left_out(1);
        }
        encoder.block(&block(900, 2));
        let bytes = encoder.take().unwrap();
        let summary = SeriesSummary::of(&mut SeriesReader::new(&bytes[..]).unwrap()).unwrap();
        let base: &[u64] = if is_listed { &[0, 3] } else { &[] };
        assert_eq!((&*summary.base_samples, &*summary.stray_samples), (base, &[0, 0, 3][..]));
        assert_eq!((summary.base, summary.strays), (is_listed.then_some(1), 1));
        let without: Vec<f64> = summary.rates_without_samples(HEAD.rate).collect();
        assert_eq!(without, if is_listed { vec![1e-7] } else { vec![0.5, 1e-7] });
    }
}

proptest! {
    #[test]
    fn a_sidecar_is_read_up_to_the_last_whole_chunk(
        base in prop::collection::vec(block(), 0..40),
        later in prop::collection::vec(prop_oneof![block(), ends()], 0..12),
        cut in any::<prop::sample::Index>(),
        flipped in any::<prop::sample::Index>(),
    ) {
        let later = possible(base.len(), later);
        let (bytes, chunks) = sidecar(&base, &later);
        let all: Vec<Written> = base.iter().chain(&later).cloned().collect();
        let (found, reader) = read(&bytes);
        prop_assert_eq!(&found, &all);
        prop_assert_eq!((reader.head(), reader.defect()), (Some(&HEAD), None));
        prop_assert_eq!(reader.offset(), bytes.len() as u64);
        let summary = SeriesSummary::of(&mut SeriesReader::new(&bytes[..]).unwrap()).unwrap();
        prop_assert_eq!(summary.base, Some(base.len() as u64));
        prop_assert!(summary.is_complete && summary.defect.is_none());

        let cut = cut.index(bytes.len());
        let whole = chunks.iter().take_while(|&&end| end <= cut).count();
        let (found, _) = read(&bytes[..cut]);
        prop_assert_eq!(&found[..], &all[..whole]);

        let mut damaged = bytes.clone();
        let at = flipped.index(damaged.len());
        damaged[at] ^= 4;
        let (found, reader) = read(&damaged);
        prop_assert!(reader.defect().is_some());
        prop_assert_eq!(&found[..], &all[..found.len()]);
    }

    #[test]
    fn no_bytes_cause_a_panic(records in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = SERIES_MAGIC.to_vec();
        bytes.extend((records.len() as u32).to_le_bytes());
        bytes.extend(heaptap_codec::crc::crc32c(&[&records]).to_le_bytes());
        bytes.extend(&records);
        read(&bytes);
        let (sound, _) = sidecar(&[], &[]);
        read(&[sound, bytes[8..].to_vec()].concat());
    }
}

#[test]
fn locations_and_names_are_written_once() {
    let stack = vec![5, 4, 5];
    let block = CarriedBlock {
        id: 1,
        birth: 2,
        promotion: None,
        length: 3,
        samples: 1,
        source: Source::Minor,
        domain: 0,
        node: 0,
        rate: 1,
        position: 0,
    };
    let (bytes, _) = sidecar(&[Written::Block(block, stack)], &[]);
    let (_, reader) = read(&bytes);
    let lines = |code| reader.locations().resolve(code).map(|at| at.line).collect::<Vec<_>>();
    assert_eq!((lines(5), lines(4)), (vec![50, 51], vec![40]));
    assert_eq!(reader.rates(), [0.25, 1.0]);
    let text = String::from_utf8_lossy(&bytes);
    assert_eq!((text.matches("a.ml").count(), text.matches("f5").count()), (1, 1));
}

/// A part with one domain.
struct Part {
    info: TraceInfo,
    events: std::vec::IntoIter<(u64, EventKind<'static>)>,
    table: LocationTable,
    losses: Losses,
}

impl EventSource for Part {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn locations(&self) -> &LocationTable {
        &self.table
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }

    fn next_located(&mut self) -> Result<Option<(Event<'_>, &LocationTable)>, ReadError> {
        let next = self.events.next();
        Ok(next.map(|(time, kind)| (Event { time, domain: 0, kind }, &self.table)))
    }
}

#[test]
fn ends_come_between_the_allocations_of_their_domain() {
    let alloc = |id| {
        let backtrace = crate::Backtrace { frames: &[], common_prefix: 0, new: &[] };
        let (length, source) = (1, Source::Minor);
        EventKind::Alloc(crate::Allocation { id, length, samples: 1, source, backtrace })
    };
    // All of this happens within a microsecond.
    let events = vec![(7, alloc(0)), (7, alloc(1)), (7, EventKind::Collect(0)), (7, alloc(2))];
    let info = TraceInfo {
        sample_rate: 0.25,
        word_size: 64,
        executable: Vec::new(),
        host: Vec::new(),
        runtime_params: Vec::new(),
        pid: 1,
        context: Vec::new(),
        start_time: HEAD.start_time,
        domain: 0,
    };
    let part = || {
        let (table, losses) = (LocationTable::default(), Losses::default());
        let (info, events) = (info.clone(), events.clone().into_iter());
        Box::new(Part { info, events, table, losses }) as Box<dyn EventSource>
    };
    let block = |id, position, rate| {
        let (birth, promotion, length, samples) = (5, Some(6), 1, 1);
        let (source, domain, node) = (Source::Minor, 0, 0);
        let block = CarriedBlock {
            id,
            birth,
            promotion: promotion.filter(|_| id < 500),
            length,
            samples,
            source,
            domain,
            node,
            rate,
            position,
        };
        Written::Block(block, Vec::new())
    };
    let end = |position, first, count| {
        Written::Ends(CarriedEnds { end: End::Collect, time: 7, domain: 0, position, first, count })
    };
    let base = [block(7, 0, 1), block(8, 0, 1)];
    let later = [end(501, 7, 2), block(STRAY_IDS, 502, 1), end(503, STRAY_IDS, 1)];
    let (bytes, _) = sidecar(&base, &later);
    let events_of = |with_base| {
        let sidecar = SeriesReader::new(&bytes[..]).unwrap();
        let mut source = PartSource::new(part(), sidecar, HEAD.first_id, with_base);
        let mut found = Vec::new();
        while let Some((event, _)) = source.next_located().unwrap() {
            let kind = match event.kind {
                EventKind::Alloc(allocation) => ('a', allocation.id),
                EventKind::Promote(id) => ('p', id),
                EventKind::Collect(id) => ('c', id),
            };
            found.push((kind, event.time, source.sampled_at()));
        }
        found
    };
    let stray = STRAY_IDS;
    let expected = [
        (('a', 7), 5, 1.0),
        (('p', 7), 6, 1.0),
        (('a', 8), 5, 1.0),
        (('p', 8), 6, 1.0),
        (('a', 500), 7, 0.25),
        (('c', 7), 7, 0.25),
        (('c', 8), 7, 0.25),
        (('a', 501), 7, 0.25),
        (('a', stray), 5, 1.0),
        (('c', 500), 7, 1.0),
        (('a', 502), 7, 0.25),
        (('c', stray), 7, 0.25),
    ];
    assert_eq!(events_of(true), expected);
    assert_eq!(events_of(false)[..], expected[4..]);
}

/// A few bytes could ask for any number of events.
#[test]
fn no_more_blocks_end_than_there_are() {
    let ends = |end, count| {
        let (time, domain, position, first) = (7, 0, 500, 8);
        Written::Ends(CarriedEnds { end, time, domain, position, first, count })
    };
    let block = CarriedBlock {
        id: 8,
        birth: 5,
        promotion: None,
        length: 1,
        samples: 1,
        source: Source::Minor,
        domain: 0,
        node: 0,
        rate: 1,
        position: 0,
    };
    let base = [Written::Block(block, Vec::new())];
    let once = [ends(End::Promote, 1), ends(End::Collect, 1)];
    let (bytes, _) = sidecar(&base, &once);
    assert_eq!(read(&bytes).1.defect(), None);
    for more in [ends(End::Collect, 1), ends(End::Promote, 1), ends(End::Collect, 1 << 60)] {
        let later = [&once[..], &[more]].concat();
        let (bytes, _) = sidecar(&base, &later);
        let (found, reader) = read(&bytes);
        assert_eq!((found.len(), reader.defect()), (3, Some(SeriesDefect::Record)));
    }
}
