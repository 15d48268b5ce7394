//! Any bytes can be read: no panic, bounded memory, and the same events from
//! memory and from a pipe, strictly and leniently, in the order of the file and
//! of time.

#![no_main]

mod mutate;
mod recorded;

use std::io::Read;

use heaptap_trace::{Limits, Merged, Mode, Reader, Stream};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

use crate::recorded::{Reading, RecordedKind, read};

/// A pipe that gives a few bytes at a time.
struct Dribble<'a> {
    rest: &'a [u8],
    next: usize,
}

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.next = self.next * 7 % 251 + 1;
        let room = buffer.len().min(self.next);
        self.rest.read(&mut buffer[..room])
    }
}

/// Limits that ordinary inputs meet, and the usual ones.
const LIMITS: [Limits; 2] =
    [Limits { frames: 3_000, domains: 3 }, Limits { frames: 1 << 18, domains: 64 }];

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::mutate(data, size, max_size, seed)
});

fuzz_target!(|bytes: &[u8]| {
    let limits = LIMITS[bytes.len() % 2];
    let strict = read(Reader::open(bytes, Mode::Strict, limits));
    let lenient = read(Reader::open(bytes, Mode::Lenient, limits));
    check_strict(&strict, &lenient);
    check_piped(&stretched(bytes), limits);
    check_counts(&lenient);
    check_merged(bytes, limits, &lenient);
});

/// The same with 32 KiB of another process after the first packet: so much is in
/// a reader's buffer when it begins, and only what it gets later depends on what
/// the pipe gives.
fn stretched(bytes: &[u8]) -> Vec<u8> {
    let size = bytes.get(4..8).and_then(|bits| bits.try_into().ok());
    let size = size.map_or(0, u32::from_le_bytes) as usize / 8;
    let Some((first, rest)) = bytes.split_at_checked(size) else { return bytes.to_vec() };
    let Some(header) = first.first_chunk::<68>() else { return bytes.to_vec() };
    let mut foreign = [0; 32_768];
    foreign[..68].copy_from_slice(header);
    foreign[4..8].copy_from_slice(&(8 * 32_768_u32).to_le_bytes());
    foreign[30] ^= 1;
    [first, &foreign, rest].concat()
}

/// A pipe gives the same events and the same defects as memory.
fn check_piped(bytes: &[u8], limits: Limits) {
    let whole = read(Reader::open(bytes, Mode::Lenient, limits));
    let pipe = Stream::new(Dribble { rest: bytes, next: 3 });
    let piped = read(Reader::open(pipe, Mode::Lenient, limits));
    assert_eq!(whole.events, piped.events);
    assert_eq!(whole.totals, piped.totals);
    assert_eq!(whole.losses.defects, piped.losses.defects);
    assert_eq!(whole.losses.defect_count, piped.losses.defect_count);
    assert_eq!(whole.losses.truncated, piped.losses.truncated);
    assert_eq!(whole.losses.allocations, piped.losses.allocations);
}

/// Strict reading gives the beginning of what lenient reading gives, and all of
/// it where nothing is wrong; its times never run backwards in a domain.
fn check_strict(strict: &Reading, lenient: &Reading) {
    assert!(lenient.events.starts_with(&strict.events));
    if strict.error.is_none() {
        assert_eq!(strict.events.len(), lenient.events.len());
        assert!(lenient.losses.is_clean());
    }
    let mut last = std::collections::HashMap::new();
    for event in &strict.events {
        let last = last.entry(event.domain).or_insert(0);
        assert!(*last <= event.time);
        *last = event.time;
    }
}

/// The counts are those of the events, and every number is in its range.
fn check_counts(reading: &Reading) {
    assert_eq!(reading.events.len() as u64, reading.totals.events());
    for event in &reading.events {
        if let RecordedKind::Alloc { samples, length, .. } = event.kind {
            assert!((1..=length + 1).contains(&samples));
        }
    }
}

/// The merge has the same events, in the order of time where the trace is sound.
fn check_merged(bytes: &[u8], limits: Limits, lenient: &Reading) {
    let Ok(mut merged) = Merged::open(|| Ok(bytes), Mode::Lenient, limits) else { return };
    let (mut last, mut count) = (0, 0);
    while let Some(event) = merged.next_event().expect("a lenient reading in memory") {
        assert!(!lenient.losses.is_clean() || last <= event.time);
        last = event.time;
        count += 1;
    }
    if lenient.losses.is_clean() {
        assert_eq!(count, lenient.events.len());
    }
}
