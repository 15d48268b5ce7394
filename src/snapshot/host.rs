//! What a host reports about its heap, checked before it is written.
//!
//! A host that links this library walks its heap itself and reports segments, blocks and
//! roots. It may be wrong: each call is checked against the calls before, so that whatever it
//! reports, the file is well formed. The first wrong call ends the snapshot, and all later ones
//! return the same.
//!
//! At a safe point or in a copy of the process: nothing here allocates, locks or panics.

use heaptap_heap::{
    EphemeronKey, Finaliser, KindNamespace, MAX_STRING, Pointer, Root, RootOwner, Segment,
};

use super::walker::{HeapEncoder, WalkError};

const WORD: u64 = 8;

/// Why a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostFault {
    /// A pointer is NULL or misaligned.
    Null,
    /// It is not allowed after the calls before.
    Order(&'static str),
    /// An argument is out of range.
    Argument(&'static str),
    /// The file could not be written: an error number.
    Write(i32),
}

impl From<i32> for HostFault {
    /// From what the encoder returns.
    fn from(errno: i32) -> HostFault {
        HostFault::Write(errno)
    }
}

/// Where a host may report the next block.
#[derive(Clone, Copy)]
struct SegmentRest {
    /// The end of the last block, or the segment's start.
    next: u64,
    end: u64,
}

/// A block that was begun.
#[derive(Clone, Copy)]
struct OpenBlock {
    words: u64,
    /// The least field that may hold the next pointer.
    next_field: u64,
    has_contents: bool,
    has_outside: bool,
}

/// A block that a host reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostBlock {
    pub(crate) address: u64,
    pub(crate) words: u64,
    pub(crate) tag: u32,
}

/// A snapshot as a host fills it.
pub(crate) struct HostWalk<'a, 'w> {
    encoder: &'a mut HeapEncoder<'w>,
    header_bytes: u64,
    /// How many bytes of a block's contents are included.
    string_bytes: usize,
    segment: Option<SegmentRest>,
    block: Option<OpenBlock>,
    /// Whether a block owns memory outside the heap.
    has_outside: bool,
    /// The first call that was refused.
    fault: Option<HostFault>,
}

impl<'a, 'w> HostWalk<'a, 'w> {
    pub(crate) fn new(
        encoder: &'a mut HeapEncoder<'w>,
        header_words: u32,
        string_bytes: u32,
    ) -> HostWalk<'a, 'w> {
        HostWalk {
            encoder,
            header_bytes: u64::from(header_words) * WORD,
            string_bytes: (string_bytes as usize).min(MAX_STRING),
            segment: None,
            block: None,
            has_outside: false,
            fault: None,
        }
    }

    /// Carries out a call, unless one was refused before.
    pub(crate) fn call(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<(), HostFault>,
    ) -> Result<(), HostFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let result = run(self);
        self.fault = result.err();
        result
    }

    /// The result of the walk, after the host's function has returned.
    pub(crate) fn finish(mut self, has_succeeded: bool) -> Result<(), WalkError> {
        let finished = self.call(|walk| {
            walk.needs_no_open_block()?;
            if walk.has_outside {
                walk.encoder.custom_kind(OUTSIDE_OPERATIONS, b"memory outside the heap")?;
            }
            Ok(())
        });
        match finished {
            Ok(()) if has_succeeded => Ok(()),
            Ok(()) => Err(WalkError::Host("it returned an error")),
            Err(HostFault::Null) => Err(WalkError::Host("a pointer is NULL or misaligned")),
            Err(HostFault::Order(text) | HostFault::Argument(text)) => Err(WalkError::Host(text)),
            Err(HostFault::Write(errno)) => Err(WalkError::Write(errno)),
        }
    }

    fn needs_no_open_block(&self) -> Result<(), HostFault> {
        match self.block {
            None => Ok(()),
            Some(_) => Err(HostFault::Order("a block was begun and not ended")),
        }
    }

    fn open_block(&mut self) -> Result<&mut OpenBlock, HostFault> {
        self.block.as_mut().ok_or(HostFault::Order("no block was begun"))
    }

    /// Begins a range of addresses in which the next blocks lie.
    pub(crate) fn segment(&mut self, segment: Segment) -> Result<(), HostFault> {
        self.needs_no_open_block()?;
        let end =
            segment.words.checked_mul(WORD).and_then(|bytes| segment.start.checked_add(bytes));
        let Some(end) = end.filter(|_| is_block_address(segment.start)) else {
            return Err(HostFault::Argument("a segment is no range of aligned words"));
        };
        self.encoder.segment(segment)?;
        self.segment = Some(SegmentRest { next: segment.start, end });
        Ok(())
    }

    pub(crate) fn begin_block(&mut self, block: HostBlock) -> Result<(), HostFault> {
        self.needs_no_open_block()?;
        let HostBlock { address, words, tag } = block;
        let Some(segment) = &mut self.segment else {
            return Err(HostFault::Order("a block comes before any segment"));
        };
        if !is_block_address(address) {
            return Err(HostFault::Argument("a block's address is 0 or not a multiple of 8"));
        }
        let first = segment.next.checked_add(self.header_bytes);
        if first.is_none_or(|first| address < first) {
            return Err(HostFault::Argument(
                "a block begins before its segment or before the end of the block before it",
            ));
        }
        let end = words.checked_mul(WORD).and_then(|bytes| address.checked_add(bytes));
        let Some(end) = end.filter(|&end| end <= segment.end) else {
            return Err(HostFault::Argument("a block ends behind its segment"));
        };
        self.encoder.begin_block(address, words, tag)?;
        segment.next = end;
        self.block =
            Some(OpenBlock { words, next_field: 0, has_contents: false, has_outside: false });
        Ok(())
    }

    pub(crate) fn pointer(&mut self, pointer: Pointer) -> Result<(), HostFault> {
        let Pointer { field, target } = pointer;
        let block = self.open_block()?;
        if field < block.next_field || field >= block.words {
            return Err(HostFault::Argument(
                "a pointer's field is outside its block, or not above the field before",
            ));
        }
        block.next_field = field + 1;
        check_target(target)?;
        Ok(self.encoder.pointer(field, target)?)
    }

    /// The beginning of the contents of the block, of which as much is kept as was asked for.
    pub(crate) fn contents(&mut self, contents: &[u8]) -> Result<(), HostFault> {
        let kept = self.string_bytes;
        let block = self.open_block()?;
        if std::mem::replace(&mut block.has_contents, true) {
            return Err(HostFault::Order("a block has contents twice"));
        }
        if kept == 0 {
            return Ok(());
        }
        Ok(self.encoder.string(contents.get(..kept).unwrap_or(contents))?)
    }

    /// Memory outside the heap that the block owns.
    pub(crate) fn outside(&mut self, bytes: u64) -> Result<(), HostFault> {
        let block = self.open_block()?;
        if std::mem::replace(&mut block.has_outside, true) {
            return Err(HostFault::Order("a block's memory outside the heap is reported twice"));
        }
        self.has_outside = true;
        Ok(self.encoder.custom(OUTSIDE_OPERATIONS, bytes)?)
    }

    pub(crate) fn end_block(&mut self) -> Result<(), HostFault> {
        self.open_block()?;
        self.block = None;
        Ok(self.encoder.end_block()?)
    }

    pub(crate) fn root(&mut self, kind: u32, index: u64, target: u64) -> Result<(), HostFault> {
        self.needs_no_open_block()?;
        check_target(target)?;
        Ok(self.encoder.root(Root { owner: RootOwner::Host { kind, index }, target })?)
    }

    pub(crate) fn finaliser(&mut self, finaliser: Finaliser) -> Result<(), HostFault> {
        self.needs_no_open_block()?;
        if !(finaliser.value | finaliser.function).is_multiple_of(WORD) {
            return Err(HostFault::Argument("an address of a finaliser is not a multiple of 8"));
        }
        Ok(self.encoder.finaliser(finaliser)?)
    }

    /// A weak reference: the block's keys do not keep what they point to, and the data is kept
    /// only while the block and all keys are alive.
    pub(crate) fn weak(
        &mut self,
        address: u64,
        keys: impl Iterator<Item = EphemeronKey>,
        data: Option<u64>,
    ) -> Result<(), HostFault> {
        self.needs_no_open_block()?;
        check_target(address)?;
        self.encoder.begin_ephemeron(address)?;
        let mut next = 0;
        for key in keys {
            if key.index < next || key.index >= 1 << 60 {
                return Err(HostFault::Argument("the keys of a weak block do not ascend"));
            }
            next = key.index + 1;
            check_target(key.target)?;
            self.encoder.ephemeron_key(key.index, key.target)?;
        }
        if let Some(data) = data {
            check_target(data)?;
            self.encoder.ephemeron_data(data)?;
        }
        Ok(self.encoder.end_ephemeron()?)
    }

    pub(crate) fn kind_name(
        &mut self,
        namespace: KindNamespace,
        kind: u32,
        name: &[u8],
    ) -> Result<(), HostFault> {
        self.needs_no_open_block()?;
        Ok(self.encoder.kind_name(namespace, kind, name)?)
    }
}

/// Blocks with memory outside the heap need operations: hosts have none.
const OUTSIDE_OPERATIONS: u64 = 0;

fn is_block_address(address: u64) -> bool {
    address != 0 && address.is_multiple_of(WORD)
}

fn check_target(target: u64) -> Result<(), HostFault> {
    if is_block_address(target) {
        Ok(())
    } else {
        Err(HostFault::Argument("a pointer or a root is 0 or not a multiple of 8"))
    }
}
