//! Blocks, by their tags (`runtime/caml/mlvalues.h`).

use heaptap_heap::{Finaliser, FinaliserKind, MAX_STRING, Root, RootOwner, Segment, SegmentKind};

use super::NO_MEMORY;
use super::bigarray::Bigarray;
use super::global_blocks::GlobalBlocks;
use super::regions::{Region, Regions};
use super::seen::SeenSet;
use super::words::Words;
use crate::runtimes::ocaml::values::{
    CLOSURE, CONTINUATION, CUSTOM, Header, NO_SCAN, STRING, environment,
};
use crate::snapshot::{HeapEncoder, WalkError};
use crate::sys::memory::MappedVec;
use crate::tracer::WORD;

/// Writes blocks and roots, and remembers what has to be explained at the end.
pub(crate) struct BlockWriter<'a, 'w> {
    pub(crate) words: Words,
    pub(crate) encoder: &'a mut HeapEncoder<'w>,
    pub(crate) regions: Regions,
    customs: SeenSet,
    string_bytes: usize,
    /// Continuations, in a runtime that has them.
    continuations: Option<MappedVec<usize>>,
    /// The blocks that hold variables, in bytecode.
    globals: Option<GlobalBlocks>,
}

impl<'a, 'w> BlockWriter<'a, 'w> {
    /// `globals`: in bytecode, blocks whose fields are roots, and not written with the blocks.
    pub(crate) fn new(
        words: Words,
        encoder: &'a mut HeapEncoder<'w>,
        string_bytes: u32,
        globals: Option<GlobalBlocks>,
    ) -> Result<BlockWriter<'a, 'w>, WalkError> {
        Ok(BlockWriter {
            words,
            encoder,
            regions: Regions::new().ok_or(NO_MEMORY)?,
            customs: SeenSet::new(10).ok_or(NO_MEMORY)?,
            string_bytes: (string_bytes as usize).min(MAX_STRING),
            continuations: None,
            globals,
        })
    }

    /// Takes back the blocks that hold variables, when all blocks are written.
    pub(crate) fn take_globals(&mut self) -> Option<GlobalBlocks> {
        self.globals.take()
    }

    /// In a runtime with continuations: remembers them.
    pub(crate) fn remember_continuations(&mut self) -> Result<(), WalkError> {
        self.continuations = Some(MappedVec::new(256).ok_or(NO_MEMORY)?);
        Ok(())
    }

    /// The continuation that was written after `index` others.
    pub(crate) fn continuation(&self, index: usize) -> Option<usize> {
        self.continuations.as_ref()?.get(index).copied()
    }

    /// Writes a part of the heap, to be followed by its blocks.
    pub(crate) fn segment(&mut self, kind: SegmentKind, region: Region) -> Result<(), WalkError> {
        let words = ((region.end - region.start) / WORD) as u64;
        Ok(self.encoder.segment(Segment { kind, start: region.start as u64, words })?)
    }

    /// Writes the blocks of a region without gaps that `is_block` accepts, by the address of their
    /// header. `beyond` is the error if one of them is too long.
    pub(crate) fn blocks(
        &mut self,
        region: Region,
        beyond: WalkError,
        is_block: impl Fn(usize, Header) -> bool,
    ) -> Result<(), WalkError> {
        let mut at = region.start;
        while at < region.end {
            let block = at + WORD;
            let header = Header(self.words.word(at));
            let next = header.size().checked_mul(WORD).and_then(|bytes| block.checked_add(bytes));
            let Some(next) = next.filter(|&next| next <= region.end) else { return Err(beyond) };
            if is_block(at, header) {
                self.block(block, header)?;
            }
            at = next;
        }
        Ok(())
    }

    /// Writes the block at an address.
    #[inline]
    pub(crate) fn block(&mut self, block: usize, header: Header) -> Result<(), WalkError> {
        let (size, tag) = (header.size(), header.tag());
        self.encoder.begin_block(block as u64, size as u64, u32::from(tag))?;
        match tag {
            CLOSURE => self.closure(block, size)?,
            CUSTOM => self.custom(block, size)?,
            STRING if self.string_bytes > 0 => self.string(block, size)?,
            CONTINUATION => {
                if let Some(continuations) = &mut self.continuations {
                    if !continuations.push(block) {
                        return Err(NO_MEMORY);
                    }
                } else {
                    self.pointers(block, 0, size)?;
                }
            }
            NO_SCAN.. => {}
            _ => {
                let own = |globals: &GlobalBlocks| globals.own_fields(block, size);
                self.pointers(block, 0, self.globals.as_ref().map_or(size, own))?;
            }
        }
        self.encoder.end_block()?;
        Ok(())
    }

    #[inline]
    fn pointers(&mut self, block: usize, first: usize, size: usize) -> Result<(), WalkError> {
        for index in first..size {
            if let Some(target) = self.target(self.words.field(block, index)) {
                self.encoder.pointer(index as u64, target as u64)?;
            }
        }
        Ok(())
    }

    /// The block that a value points to, if that is in the heap.
    #[inline]
    pub(crate) fn target(&mut self, value: usize) -> Option<usize> {
        self.regions.block(self.words, value)
    }

    /// A closure begins with code addresses and numbers. `Closinfo_val` says where its
    /// environment begins, and how many arguments it takes.
    fn closure(&mut self, block: usize, size: usize) -> Result<(), WalkError> {
        if size < 2 {
            return Err(WalkError::Heap("a closure of one word"));
        }
        let info = self.words.field(block, 1);
        let arity = info as isize >> 56;
        // Of several arguments, the first word is code that collects them.
        let at = if arity == 0 || arity == 1 || size < 3 { 0 } else { 2 };
        let code = self.words.field(block, at) as u64;
        self.encoder.code(at as u64, code)?;
        self.pointers(block, environment(info).min(size), size)
    }

    /// A custom block begins with the address of its operations, and these with the address of
    /// its identifier (`struct custom_operations`, `runtime/caml/custom.h`).
    fn custom(&mut self, block: usize, size: usize) -> Result<(), WalkError> {
        const LONGEST: usize = 128;
        let operations = self.words.field(block, 0);
        if operations == 0 {
            return Ok(());
        }
        let identifier = match self.words.word(operations) {
            0 => &[],
            identifier => self.words.c_string(identifier, LONGEST),
        };
        let array = Bigarray::read(self.words, block, size, identifier);
        self.encoder.custom(operations as u64, array.map_or(0, |array| array.bytes))?;
        if self.customs.insert(operations as u64) {
            self.encoder.custom_kind(operations as u64, identifier)?;
        }
        if let Some(array) = array {
            self.encoder.outside_area(array.area(self.words, block, operations))?;
        }
        Ok(())
    }

    /// The last byte of a string is the distance to its end.
    fn string(&mut self, block: usize, size: usize) -> Result<(), WalkError> {
        let all = size * WORD;
        let last = self.words.bytes(block, all).last().map_or(0, |&byte| usize::from(byte));
        let length = all.saturating_sub(last + 1).min(self.string_bytes);
        self.encoder.string(self.words.bytes(block, length))?;
        Ok(())
    }

    /// Writes a root, if the value is a block of the heap.
    pub(crate) fn root(&mut self, owner: RootOwner, value: usize) -> Result<(), WalkError> {
        if let Some(target) = self.target(value) {
            self.encoder.root(Root { owner, target: target as u64 })?;
        }
        Ok(())
    }
}

/// Words of a `struct final` (`runtime/finalise.c`): function, value, and an int.
pub(crate) const FINALISER_WORDS: usize = 3;

impl BlockWriter<'_, '_> {
    /// Writes a finaliser. Function and value are 0 if they are not in the heap.
    pub(crate) fn finaliser(
        &mut self,
        kind: FinaliserKind,
        function: usize,
        value: usize,
    ) -> Result<(), WalkError> {
        let [function, value] = [function, value].map(|part| self.target(part).unwrap_or(0) as u64);
        Ok(self.encoder.finaliser(Finaliser { kind, value, function })?)
    }
}

/// An ephemeron is a block of link, data and keys (`runtime/caml/weak.h`).
const DATA: usize = 1;
const FIRST_KEY: usize = 2;

impl BlockWriter<'_, '_> {
    /// Writes a list of ephemerons. `none` is `caml_ephe_none`, which stands for nothing.
    pub(crate) fn ephemerons(&mut self, first: usize, none: usize) -> Result<(), WalkError> {
        let mut ephemeron = first;
        while ephemeron != 0 {
            self.ephemeron(ephemeron, none)?;
            ephemeron = self.words.field(ephemeron, 0);
        }
        Ok(())
    }

    fn ephemeron(&mut self, ephemeron: usize, none: usize) -> Result<(), WalkError> {
        let words = self.words;
        self.encoder.begin_ephemeron(ephemeron as u64)?;
        let data = words.field(ephemeron, DATA);
        if data != none
            && let Some(target) = self.target(data)
        {
            self.encoder.ephemeron_data(target as u64)?;
        }
        for index in FIRST_KEY..words.header(ephemeron).size() {
            let key = words.field(ephemeron, index);
            if key != none
                && let Some(target) = self.target(key)
            {
                self.encoder.ephemeron_key((index - FIRST_KEY) as u64, target as u64)?;
            }
        }
        self.encoder.end_ephemeron()?;
        Ok(())
    }
}
