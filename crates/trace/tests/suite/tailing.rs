//! Traces that are read while they are written.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use heaptap_trace::{
    Completion, CutReason, Defect, Format, Limits, Losses, Mode, Polled, ReadError, Tail, TraceHead,
};
use proptest::prelude::*;

use crate::corners::{alloc, script};
use crate::generate::{cases, scripts};
use crate::reading::{Reading, RecordedEvent, RecordedKind, read_leniently, read_strictly};
use crate::script::{Step, Style};
use crate::traces::{Dice, generated, program, real};

/// What was written so far, as a pipe or a file gives it.
#[derive(Clone, Default)]
struct Growing {
    written: Rc<RefCell<Vec<u8>>>,
    read: usize,
    /// At the end, alternately returns 0 bytes, as a file, and blocks, as a pipe.
    blocks: Rc<Cell<bool>>,
}

impl Read for Growing {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let written = self.written.borrow();
        let count = (&written[self.read..]).read(room)?;
        self.read += count;
        if count == 0 && self.blocks.replace(!self.blocks.get()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(count)
    }
}

/// Adds what a tail returns to `seen`, breaking off after every `at_once` events.
fn poll<'a, R: Read + 'a>(
    tail: &mut Tail<'a, R>,
    seen: &mut Vec<RecordedEvent>,
    at_once: usize,
) -> Result<Polled, ReadError> {
    loop {
        let mut left = at_once;
        let polled = tail.poll(&mut |event, _| {
            seen.push(RecordedEvent::of(event));
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if polled != Polled::BrokenOff {
            return Ok(polled);
        }
    }
}

/// Tails a trace that is written in pieces of these sizes, in turn.
fn tail(bytes: &[u8], sizes: &[usize], at_once: usize) -> (Vec<RecordedEvent>, Losses) {
    let growing = Growing::default();
    let written = Rc::clone(&growing.written);
    let mut tail = Tail::new(growing, Mode::Lenient, Limits::default());
    let (mut seen, mut rest) = (Vec::new(), bytes);
    for &size in sizes.iter().cycle() {
        let (piece, later) = rest.split_at(size.min(rest.len()));
        rest = later;
        written.borrow_mut().extend_from_slice(piece);
        assert_eq!(poll(&mut tail, &mut seen, at_once).unwrap(), Polled::NothingYet);
        if rest.is_empty() {
            break;
        }
    }
    tail.stop(None);
    assert_eq!(poll(&mut tail, &mut seen, at_once).unwrap(), Polled::Ended);
    assert_eq!(poll(&mut tail, &mut seen, at_once).unwrap(), Polled::Ended);
    (seen, tail.reader().unwrap().losses().clone())
}

/// The events in the order of a tail: an end whose allocation is in a later packet
/// comes right after it, and at the end if there is none.
fn in_tail_order(reading: &Reading) -> Vec<RecordedEvent> {
    let mut packets: HashMap<u64, u64> = HashMap::new();
    for (recorded, &packet) in reading.recorded.iter().zip(&reading.packet_ends) {
        if let RecordedKind::Alloc { id, .. } = recorded.kind {
            packets.insert(id, packet);
        }
    }
    let (mut ordered, mut held) = (Vec::new(), Vec::new());
    for (recorded, &packet) in reading.recorded.iter().zip(&reading.packet_ends) {
        match recorded.kind {
            RecordedKind::Alloc { id, .. } => {
                ordered.push(recorded.clone());
                let is_of = |end: &RecordedEvent| matches!(end.kind, RecordedKind::Promote(of) | RecordedKind::Collect(of) if of == id);
                ordered.extend(held.extract_if(.., |end| is_of(end)));
            }
            RecordedKind::Promote(id) | RecordedKind::Collect(id) => {
                let is_ahead = packets.get(&id).is_none_or(|&of_block| of_block > packet);
                let to = if is_ahead { &mut held } else { &mut ordered };
                to.push(recorded.clone());
            }
        }
    }
    ordered.extend(held);
    ordered
}

fn assert_same(bytes: &[u8], sizes: &[usize], at_once: usize) {
    let whole = read_leniently(bytes);
    let (seen, losses) = tail(bytes, sizes, at_once);
    assert!(seen == in_tail_order(&whole), "the same events, in pieces of {sizes:?}");
    // All fields.
    assert_eq!(format!("{losses:?}"), format!("{:?}", whole.losses), "in pieces of {sizes:?}");
}

#[test]
fn real_and_generated_traces_in_pieces() {
    for sound in generated().into_iter().chain(real(100_000)) {
        for sizes in [&[1_usize][..], &[4096], &[32_768], &[1, 65, 66, 67, 68, 9999], &[1 << 30]] {
            assert_same(&sound.bytes, sizes, 1000);
        }
    }
}

/// A killed writer leaves a part of a packet, which counts as lost as in any reading.
#[test]
fn a_trace_that_ends_inside_a_packet() {
    for format in [Format::V2, Format::V3] {
        let bytes = program(format, 90, 30).perform(Style::Whole).bytes;
        let first = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize / 8;
        for end in (first..bytes.len()).step_by(7) {
            assert_same(&bytes[..end], &[100], usize::MAX);
        }
    }
}

/// Damage is skipped as in any reading, whatever is written when it is found.
#[test]
fn damaged_traces_in_pieces() {
    let mut dice = Dice::seeded(23);
    for sound in generated() {
        let first = sound.trace.packets[0].range.end as u64;
        for _ in 0..40 {
            let mut bytes = sound.bytes.clone();
            for _ in 0..=dice.below(3) {
                let at = first + dice.below(bytes.len() as u64 - first);
                bytes[at as usize] ^= 1 << dice.below(8);
            }
            // Some bytes too many, or too few, so that packets are not where they should be.
            let at = (first + dice.below(bytes.len() as u64 - first)) as usize;
            match dice.below(4) {
                0 => drop(bytes.drain(at..(at + 1 + dice.below(5000) as usize).min(bytes.len()))),
                1 => drop(bytes.splice(at..at, vec![0xc1; 1 + dice.below(70_000) as usize])),
                _ => {}
            }
            let sizes: Vec<usize> = (0..5).map(|_| 1 + dice.below(9000) as usize).collect();
            assert_same(&bytes, &sizes, 100);
        }
    }
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn arbitrary_programs_in_arbitrary_pieces(
        script in scripts(80),
        sizes in prop::collection::vec(prop_oneof![1..100_usize, 1..10_000_usize], 1..10),
        at_once in 1..50_usize,
    ) {
        assert_same(&script.perform(Style::Whole).bytes, &sizes, at_once);
    }
}

/// Domain 1 has a single packet, which comes last in the file. Domain 0 promotes and collects
/// its block in the first one.
#[test]
fn an_end_waits_for_the_allocation_in_another_domain() {
    let mut steps = vec![alloc(0, 0, vec![(5, 1)]), alloc(1, 0, vec![(7, 1)])];
    steps.push(Step::Collect { domain: 0, wait: 1, back: 0 });
    steps.extend((0..5000).map(|_| alloc(0, 0, vec![(5, 1)])));
    let bytes = script(Format::V3, steps).perform(Style::Whole).bytes;
    let of_block = |recorded: &RecordedEvent| match recorded.kind {
        RecordedKind::Alloc { .. } => recorded.domain == 1,
        RecordedKind::Promote(_) | RecordedKind::Collect(_) => true,
    };
    let is_end = |recorded: &&RecordedEvent| recorded.frames().is_empty();
    let reading = read_strictly(&bytes);
    let in_file = reading.recorded.iter().filter(|recorded| of_block(recorded));
    assert_eq!(in_file.map(|recorded| is_end(&recorded)).collect::<Vec<_>>(), [true, false]);
    let (seen, _) = tail(&bytes, &[1000], usize::MAX);
    let of_it = seen.iter().filter(|recorded| of_block(recorded));
    assert_eq!(of_it.map(|recorded| is_end(&recorded)).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn the_writer_says_at_the_end_whether_the_trace_is_complete() {
    let bytes = program(Format::V3, 400, 31).perform(Style::Whole).bytes;
    let until = {
        let mut cut = bytes.clone();
        let at = Completion::OFFSET as usize;
        cut[at..at + 4].copy_from_slice(&Completion::Unfinished.bytes());
        read_leniently(&cut).losses.cut_short.unwrap().until
    };
    for (completion, reason) in [
        (None, None),
        (Some(Completion::Complete), None),
        (Some(Completion::Unfinished), Some(CutReason::Unfinished)),
        (Some(Completion::WriteFailed), Some(CutReason::WriteFailed)),
    ] {
        let mut tail = Tail::new(&bytes[..], Mode::Strict, Limits::default());
        let mut seen = Vec::new();
        assert_eq!(poll(&mut tail, &mut seen, usize::MAX).unwrap(), Polled::NothingYet);
        tail.stop(completion);
        assert_eq!(poll(&mut tail, &mut seen, usize::MAX).unwrap(), Polled::Ended);
        let found = tail.reader().unwrap().losses().cut_short;
        assert_eq!(found.map(|cut| cut.reason), reason);
        assert!(found.is_none_or(|cut| cut.until == until));
        if let Some(completion) = completion {
            let (mut marked, at) = (bytes.to_vec(), Completion::OFFSET as usize);
            marked[at..at + 4].copy_from_slice(&completion.bytes());
            assert_eq!(TraceHead::of(&marked).unwrap().completion, completion);
        }
    }
}

#[test]
fn what_is_no_trace_is_reported_as_soon_as_that_is_known() {
    let growing = Growing::default();
    let written = Rc::clone(&growing.written);
    let mut tail = Tail::new(growing, Mode::Lenient, Limits::default());
    let mut seen = Vec::new();
    for byte in *b"#!/" {
        assert_eq!(poll(&mut tail, &mut seen, 1).unwrap(), Polled::NothingYet);
        written.borrow_mut().push(byte);
    }
    written.borrow_mut().push(b'b');
    let Err(ReadError::Defect(located)) = poll(&mut tail, &mut seen, 1) else { panic!() };
    assert!(matches!(located.defect.downcast_ref(), Some(Defect::Magic { .. })));
    // An empty file is one as soon as nothing more will come.
    let mut tail = Tail::new(&b""[..], Mode::Lenient, Limits::default());
    assert_eq!(poll(&mut tail, &mut seen, 1).unwrap(), Polled::NothingYet);
    tail.stop(None);
    let Err(ReadError::Defect(located)) = poll(&mut tail, &mut seen, 1) else { panic!() };
    assert_eq!(located.defect.downcast_ref(), Some(&Defect::Empty));
}

/// Three clients of one file, which is written in pieces meanwhile.
#[test]
fn three_tails_of_a_growing_file_see_every_event_once() {
    let bytes = program(Format::V3, 20_000, 300).perform(Style::Whole).bytes;
    let expected = in_tail_order(&read_strictly(&bytes));
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("three_tails.ctf");
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).open(&path).unwrap();
    let is_written = AtomicBool::new(false);
    let polls = [const { AtomicUsize::new(0) }; 3];
    thread::scope(|scope| {
        let (path, is_written) = (&path, &is_written);
        let client = move |polls: &AtomicUsize| {
            let file = File::open(path).unwrap();
            let mut tail = Tail::new(file, Mode::Strict, Limits::default());
            let (mut seen, mut waits) = (Vec::new(), 0);
            loop {
                if is_written.load(Ordering::Acquire) {
                    tail.stop(None);
                }
                if poll(&mut tail, &mut seen, usize::MAX).unwrap() == Polled::Ended {
                    return (seen, waits);
                }
                waits += usize::from(!seen.is_empty());
                polls.fetch_add(1, Ordering::Release);
                thread::sleep(Duration::from_micros(100));
            }
        };
        let clients: Vec<_> =
            polls.iter().map(|polls| scope.spawn(move || client(polls))).collect();
        let mut dice = Dice::seeded(3);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let size = rest.len().min(1 + dice.below(20_000) as usize);
            file.write_all(&rest[..size]).unwrap();
            rest = &rest[size..];
            // Each client looks at what there is now.
            for polls in &polls {
                let before = polls.load(Ordering::Acquire);
                while polls.load(Ordering::Acquire) == before {
                    thread::yield_now();
                }
            }
        }
        is_written.store(true, Ordering::Release);
        for client in clients {
            let (seen, waits) = client.join().unwrap();
            assert!(seen == expected, "{} of {} events", seen.len(), expected.len());
            assert!(waits > 3, "it tailed the file as it grew");
        }
    });
    fs::remove_file(&path).unwrap();
}
