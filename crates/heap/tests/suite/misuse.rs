//! Calls that make no sense, and a sink that fails.

use heaptap_heap::{Encoder, Root, RootOwner, Segment, SegmentKind, Sink, Workspace};

const EINVAL: i32 = 22;

fn misuse(calls: impl FnOnce(&mut Encoder<'_, Vec<u8>>) -> Result<(), i32>) {
    let mut workspace = Box::new(Workspace::new());
    let mut encoder = Encoder::new(Vec::new(), &mut workspace, 1);
    assert_eq!(calls(&mut encoder), Err(EINVAL));
    // From then on every call says so.
    assert_eq!(encoder.begin_block(0x1000, 1, 0), Err(EINVAL));
    assert_eq!(encoder.module(1, b"m"), Err(EINVAL));
    assert_eq!(encoder.finish().err(), Some(EINVAL));
}

#[test]
#[expect(
    clippy::redundant_closure,
    reason = "the functions are not general enough in the lifetime"
)]
fn calls_in_a_wrong_order_are_refused() {
    misuse(|encoder| Encoder::end_block(encoder));
    misuse(|encoder| encoder.pointer(0, 8));
    misuse(|encoder| encoder.code(0, 8));
    misuse(|encoder| encoder.custom(8, 0));
    misuse(|encoder| encoder.string(b"s"));
    misuse(|encoder| encoder.ephemeron_key(0, 8));
    misuse(|encoder| encoder.ephemeron_data(8));
    misuse(|encoder| Encoder::end_ephemeron(encoder));
    misuse(|encoder| {
        encoder.begin_block(0x1000, 1, 0)?;
        encoder.begin_block(0x1010, 1, 0)
    });
    misuse(|encoder| {
        encoder.begin_ephemeron(0x1000)?;
        encoder.module(1, b"m")
    });
    for words in [3, 300] {
        misuse(|encoder| {
            encoder.begin_block(0x1000, words, 0)?;
            encoder.pointer(1, 8)?;
            encoder.pointer(1, 8)
        });
        misuse(|encoder| {
            encoder.begin_block(0x1000, words, 0)?;
            encoder.pointer(words, 8)
        });
        misuse(|encoder| {
            encoder.begin_block(0x1000, words, 0)?;
            encoder.code(words, 8)
        });
        misuse(|encoder| {
            encoder.begin_block(0x1000, words, 0)?;
            encoder.custom(8, 8)?;
            encoder.custom(8, 8)
        });
    }
}

#[test]
fn an_open_block_cannot_be_finished() {
    let mut workspace = Box::new(Workspace::new());
    let mut encoder = Encoder::new(Vec::new(), &mut workspace, 1);
    encoder.begin_block(0x1000, 1, 0).unwrap();
    assert_eq!(encoder.finish().err(), Some(EINVAL));
}

#[test]
fn addresses_are_multiples_of_eight() {
    misuse(|encoder| encoder.begin_block(0x1001, 1, 0));
    misuse(|encoder| encoder.begin_block(u64::MAX - 7, 2, 0));
    misuse(|encoder| encoder.segment(Segment { kind: SegmentKind::Major, start: 4, words: 1 }));
    misuse(|encoder| encoder.root(Root { owner: RootOwner::GlobalC { slot: 1 }, target: 4 }));
    misuse(|encoder| encoder.begin_ephemeron(1));
    misuse(|encoder| {
        encoder.begin_block(0x1000, 1, 0)?;
        encoder.pointer(0, 9)
    });
}

/// Takes some bytes, and fails once: what comes later must not reach it.
struct FullDisk {
    room: usize,
    has_failed: bool,
}

impl Sink for FullDisk {
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), i32> {
        assert!(!self.has_failed, "written to after an error");
        match self.room.checked_sub(bytes.len()) {
            Some(room) => {
                self.room = room;
                Ok(())
            }
            None => {
                self.has_failed = true;
                Err(28)
            }
        }
    }
}

#[test]
fn the_first_error_of_the_sink_stays() {
    for room in [0, 16, 1000, 100_000] {
        let mut workspace = Box::new(Workspace::new());
        let mut encoder = Encoder::new(FullDisk { room, has_failed: false }, &mut workspace, 1);
        let mut write = || -> Result<(), i32> {
            for number in 0..200_000u64 {
                encoder.begin_block(number * 64, 3, 0)?;
                encoder.pointer(0, number.wrapping_mul(0x9e37_79b9_7f4a_7c15) & !7)?;
                encoder.end_block()?;
            }
            Ok(())
        };
        assert_eq!(write(), Err(28), "{room}");
        assert_eq!(encoder.begin_block(8, 1, 0), Err(28));
        assert_eq!(encoder.module(1, b"m"), Err(28));
        assert_eq!(encoder.finish().err(), Some(28));
    }
}
