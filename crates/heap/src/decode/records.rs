//! Decodes a chunk of records.

use heaptap_codec::Cursor;

use super::blocks::address;
use crate::chunk::ChunkKind;
use crate::codes::part;
use crate::model::{
    Ephemeron, EphemeronKey, Finaliser, FinaliserKind, Item, KindNamespace, MAX_STRING, MetaKey,
    Name, OutsideArea, OutsideKind, Root, RootOwner, Segment, SegmentKind, Tracked,
};

/// Where decoding is in a chunk, and what lasts beyond it.
#[derive(Debug, Default)]
pub(super) struct RecordDecoder {
    /// How many bytes have been decoded.
    done: usize,
    last_target: u64,
    last_address: u64,
    last_id: u64,
    last_number: u64,
    /// The ephemeron that the chunk before broke off, in words.
    broken_off: Option<u64>,
    keys: Vec<EphemeronKey>,
}

impl RecordDecoder {
    /// Begins a chunk.
    pub(super) fn begin(&mut self) {
        self.done = 0;
        self.last_target = 0;
        self.last_address = 0;
        self.last_id = 0;
        self.last_number = 0;
    }

    pub(super) fn is_done(&self, stream: &[u8]) -> bool {
        self.done == stream.len()
    }

    /// Decodes the next record. `None` if it makes no sense.
    pub(super) fn next<'a>(&'a mut self, kind: ChunkKind, stream: &'a [u8]) -> Option<Item<'a>> {
        let mut cursor = Cursor::new(stream.get(self.done..)?);
        let item = match kind {
            ChunkKind::Meta => Item::Meta {
                key: MetaKey(cursor.varint_u32()?),
                value: cursor.counted(MAX_STRING)?,
            },
            ChunkKind::Segments => Item::Segment(self.segment(&mut cursor)?),
            ChunkKind::Roots => Item::Root(self.root(&mut cursor)?),
            ChunkKind::Finalisers => Item::Finaliser(self.finaliser(&mut cursor)?),
            ChunkKind::Ephemerons => {
                let (ephemeron, is_last) = self.ephemeron(&mut cursor)?;
                self.done = stream.len() - cursor.remaining();
                let ephemeron = Ephemeron { is_last, keys: &self.keys, ..ephemeron };
                return Some(Item::Ephemeron(ephemeron));
            }
            ChunkKind::Modules => {
                Item::Module { id: self.id(&mut cursor)?, name: cursor.counted(MAX_STRING)? }
            }
            ChunkKind::Threads => Item::Thread {
                id: self.id(&mut cursor)?,
                domain: cursor.varint_u32()?,
                name: cursor.counted(MAX_STRING)?,
            },
            ChunkKind::CodesSeen => Item::CodeSeen(self.address(&mut cursor)?),
            ChunkKind::CustomKinds => Item::CustomKind {
                operations: self.address(&mut cursor)?,
                identifier: cursor.counted(MAX_STRING)?,
            },
            ChunkKind::KindNames => Item::KindName {
                namespace: one_of(&mut cursor, [KindNamespace::Tag, KindNamespace::HostRoot])?,
                kind: cursor.varint_u32()?,
                name: cursor.counted(MAX_STRING)?,
            },
            ChunkKind::Names => Item::Name(Name {
                address: self.address(&mut cursor)?,
                function: cursor.counted(MAX_STRING)?,
                file: cursor.counted(MAX_STRING)?,
                line: cursor.varint_u32()?,
            }),
            ChunkKind::Tracked => Item::Tracked(Tracked {
                address: self.target(&mut cursor)?,
                id: step(&mut cursor, &mut self.last_id)?,
            }),
            ChunkKind::OutsideAreas => Item::OutsideArea(self.outside_area(&mut cursor)?),
            ChunkKind::Blocks | ChunkKind::Totals | ChunkKind::End => return None,
        };
        self.done = stream.len() - cursor.remaining();
        Some(item)
    }

    fn target(&mut self, cursor: &mut Cursor<'_>) -> Option<u64> {
        address(step(cursor, &mut self.last_target)?)
    }

    fn address(&mut self, cursor: &mut Cursor<'_>) -> Option<u64> {
        step(cursor, &mut self.last_address)
    }

    fn id(&mut self, cursor: &mut Cursor<'_>) -> Option<u32> {
        step(cursor, &mut self.last_id)?.try_into().ok()
    }

    fn near_number(&mut self, cursor: &mut Cursor<'_>) -> Option<u64> {
        step(cursor, &mut self.last_number)
    }

    fn segment(&mut self, cursor: &mut Cursor<'_>) -> Option<Segment> {
        use SegmentKind::{Host, Large, Major, Young};
        let kind = one_of(cursor, [Major, Young, Large, Host])?;
        let start = self.target(cursor)?;
        Some(Segment { kind, start, words: cursor.varint()? })
    }

    fn root(&mut self, cursor: &mut Cursor<'_>) -> Option<Root> {
        let owner = match cursor.varint()? {
            0 => RootOwner::Global {
                module: self.id(cursor)?,
                field: self.near_number(cursor)?.try_into().ok()?,
            },
            1 => RootOwner::Stack {
                thread: self.id(cursor)?,
                depth: self.near_number(cursor)?.try_into().ok()?,
                return_address: self.address(cursor)?,
                slot: cursor.varint_u32()?,
            },
            2 => RootOwner::LocalC { thread: self.id(cursor)? },
            3 => RootOwner::GlobalC { slot: self.address(cursor)? },
            4 => RootOwner::Hook { slot: self.address(cursor)? },
            5 => RootOwner::Continuation {
                block: step(cursor, &mut self.last_id)?,
                depth: self.near_number(cursor)?.try_into().ok()?,
                return_address: self.address(cursor)?,
                slot: cursor.varint_u32()?,
            },
            6 => RootOwner::Host { kind: self.id(cursor)?, index: self.near_number(cursor)? },
            7 => RootOwner::DomainLocal { domain: self.id(cursor)? },
            8 => RootOwner::Handler {
                thread: self.id(cursor)?,
                fiber: self.near_number(cursor)?.try_into().ok()?,
                return_address: self.address(cursor)?,
                slot: cursor.varint_u32()?,
            },
            _ => return None,
        };
        Some(Root { owner, target: self.target(cursor)? })
    }

    fn finaliser(&mut self, cursor: &mut Cursor<'_>) -> Option<Finaliser> {
        use FinaliserKind::{First, Last, Pending};
        let kind = one_of(cursor, [First, Last, Pending])?;
        let value = self.target(cursor)?;
        Some(Finaliser { kind, value, function: address(self.address(cursor)?)? })
    }

    fn outside_area(&mut self, cursor: &mut Cursor<'_>) -> Option<OutsideArea> {
        let kind = one_of(cursor, [OutsideKind::Allocated, OutsideKind::Mapped])?;
        Some(OutsideArea {
            block: self.target(cursor)?,
            operations: step(cursor, &mut self.last_id)?,
            start: self.address(cursor)?,
            bytes: cursor.varint()?,
            kind,
        })
    }

    /// An ephemeron without its keys, and whether this is its last part.
    fn ephemeron(&mut self, cursor: &mut Cursor<'_>) -> Option<(Ephemeron<'static>, bool)> {
        self.keys.clear();
        let goes_on = one_of(cursor, [false, true])?;
        let word = self.address(cursor)?;
        if self.broken_off.take() != goes_on.then_some(word) {
            return None;
        }
        let mut next_key = if goes_on { cursor.varint()? } else { 0 };
        let mut data = None;
        let is_last = loop {
            match cursor.varint()? {
                part::LAST => break true,
                part::BROKEN_OFF => break false,
                part::DATA if data.is_none() => data = Some(self.target(cursor)?),
                part::DATA => return None,
                distance => {
                    let index = next_key.checked_add(distance - part::KEY)?;
                    let target = self.target(cursor)?;
                    self.keys.push(EphemeronKey { index, target });
                    next_key = index.checked_add(1)?;
                }
            }
        };
        if !is_last {
            self.broken_off = Some(word);
            if !cursor.is_empty() {
                return None;
            }
        }
        let address = address(word)?;
        Some((Ephemeron { address, is_first: !goes_on, is_last, data, keys: &[] }, is_last))
    }
}

/// What a number stands for, which is its place here.
fn one_of<T: Copy, const N: usize>(cursor: &mut Cursor<'_>, all: [T; N]) -> Option<T> {
    all.get(usize::try_from(cursor.varint()?).ok()?).copied()
}

/// A number that is coded as the difference to the one before.
fn step(cursor: &mut Cursor<'_>, last: &mut u64) -> Option<u64> {
    *last = cursor.difference(*last)?;
    Some(*last)
}
