//! Backtraces too long for the format whose two ends are kept.

use heaptap_trace::{
    Code, DomainSink as _, ElidableFrames, Encoder, EventKind, Format, LeftOut, LocationTable,
    Mode, Reader,
};
use proptest::prelude::*;

use crate::corners::SMALL;
use crate::generate::plain_info;

/// The frame for `n` that are left out has this code plus `n`.
const LEFT_OUT: Code = 1 << 61;

/// The stacks a reader sees when those of `suffixes` are written.
fn read_back(bytes: &[u8]) -> Vec<Vec<Code>> {
    let mut reader = Reader::from_slice(bytes, Mode::Strict).unwrap();
    let mut stacks = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        if let EventKind::Alloc(allocation) = event.kind {
            stacks.push(allocation.backtrace.frames.to_vec());
        }
    }
    stacks
}

/// Writes one stack after another, each as a prefix of what is in the file and
/// new frames, and returns the bytes with what each stack should look like.
fn write(stacks: &[(usize, Vec<Code>)]) -> (Vec<u8>, Vec<Vec<Code>>) {
    let table = LocationTable::default();
    let mut locate = &table;
    let mut encoder = Encoder::new(Vec::new(), Format::V2, &plain_info()).unwrap();
    let time = plain_info().start_time;
    let mut shown: Vec<Code> = Vec::new();
    let mut want = Vec::new();
    for (keep, new) in stacks {
        let prefix = keep % (shown.len() + 1);
        let frames = ElidableFrames { common_prefix: prefix as u64, new, left_out: LEFT_OUT };
        let (_, cut) = encoder.domain(0).alloc_elided(time, SMALL, frames, &mut locate).unwrap();
        shown.truncate(prefix);
        match cut {
            None => shown.extend(new),
            Some(LeftOut { kept, count }) => {
                assert_ne!(count, 0);
                shown.extend(&new[..kept]);
                shown.push(LEFT_OUT + count);
                shown.extend(&new[kept + count as usize..]);
            }
        }
        want.push(shown.clone());
    }
    (encoder.finish(&mut locate).unwrap(), want)
}

#[test]
fn a_thousand_different_frames_keep_both_ends() {
    let stack: Vec<Code> = (1000..2000).collect();
    let (bytes, want) = write(&[(0, stack.clone())]);
    assert_eq!(read_back(&bytes), want);
    let marker = want[0].iter().position(|&code| code > LEFT_OUT).unwrap();
    assert_eq!(want[0][..marker], stack[..marker]);
    assert!(marker > 280, "{marker} frames at the main end");
    assert_eq!(want[0][marker + 1..], stack[910..]);
    assert_eq!(want[0][marker] - LEFT_OUT, 910 - marker as Code);
}

#[test]
fn what_fits_is_whole() {
    for stack in [vec![7; 262_144], (1..=408).collect(), Vec::new()] {
        let (bytes, _) = write(&[(0, stack.clone())]);
        assert!(read_back(&bytes) == [stack], "a stack that fits was cut");
    }
}

fn stacks() -> impl Strategy<Value = Vec<(usize, Vec<Code>)>> {
    let calls = prop::collection::vec((1..3000u64, 1..60usize), 0..600);
    let frames = calls.prop_map(|calls| {
        calls.into_iter().flat_map(|(code, times)| std::iter::repeat_n(code, times)).collect()
    });
    prop::collection::vec((any::<usize>(), frames), 1..8)
}

proptest! {
    #[test]
    fn a_reader_sees_what_was_kept(stacks in stacks()) {
        let (bytes, want) = write(&stacks);
        prop_assert_eq!(read_back(&bytes), want);
    }
}
