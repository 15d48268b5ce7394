//! The graph in memory.
//!
//! Blocks have numbers of 32 bits in the order of their addresses. Pointers are in
//! compressed rows: those of block `n` are `edges[offsets[n]..offsets[n + 1]]`. The file is
//! read three times: for the starts of blocks, for the lengths of rows, and for
//! the pointers. About 20 bytes a block and 4 a pointer.

use std::fmt;
use std::io::{Read, Seek};

use super::starts::{BlockStarts, StartsBuilder};
use crate::format::{
    Completion, Defect, FinaliserKind, Item, ReadError, Reader, RootKind, RootOwner,
};

/// Why a snapshot cannot be loaded.
#[derive(Debug)]
#[non_exhaustive]
pub enum GraphError {
    /// It cannot be read.
    Read(ReadError),
    /// Its end is missing, so what is reachable is not known.
    CutShort,
    /// It has more than 2^32 - 2 blocks or pointers.
    TooBig,
    /// It takes more memory than this number of bytes.
    Memory(u64),
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GraphError::Read(error) => error.fmt(f),
            GraphError::CutShort => {
                f.write_str("the snapshot is cut short, so what is reachable is not known")
            }
            GraphError::TooBig => f.write_str("more than 4,294,967,294 blocks or pointers"),
            GraphError::Memory(limit) => {
                write!(f, "the graph of its blocks takes more than {limit} bytes of memory")
            }
        }
    }
}

impl std::error::Error for GraphError {}

impl From<ReadError> for GraphError {
    fn from(error: ReadError) -> GraphError {
        GraphError::Read(error)
    }
}

/// An ephemeron. Its keys are a row of [`HeapGraph::ephemeron_keys`].
#[derive(Clone, Copy, Debug)]
pub(super) struct EphemeronNode {
    pub(super) block: u32,
    pub(super) data: Option<u32>,
    pub(super) keys_from: usize,
    pub(super) keys_to: usize,
}

/// The blocks of a snapshot and the pointers between them.
#[derive(Debug)]
pub struct HeapGraph {
    starts: BlockStarts,
    /// Words by block, without headers.
    words: Vec<u64>,
    /// One more than there are blocks.
    offsets: Vec<u32>,
    /// Targets, row by row. What a suspended stack holds is in the row of its continuation.
    edges: Vec<u32>,
    /// Roots, and what finalisers hold.
    pub(super) roots: Vec<(RootKind, u32)>,
    pub(super) ephemerons: Vec<EphemeronNode>,
    pub(super) ephemeron_keys: Vec<u32>,
    dangling: u64,
    /// The limit in bytes, of each of the growing tables.
    memory: u64,
}

/// Words, offset and position of a block.
const BLOCK_BYTES: u64 = 16;

impl HeapGraph {
    /// Reads a complete snapshot from its beginning, unless it takes more than about `memory`
    /// bytes: a small file can describe very many blocks.
    pub fn load(mut input: impl Read + Seek, memory: u64) -> Result<HeapGraph, GraphError> {
        let starts = read_starts(&mut input, memory)?;
        let count = usize::try_from(starts.count()).map_err(|_| GraphError::TooBig)?;
        if starts.count() >= u64::from(u32::MAX) {
            return Err(GraphError::TooBig);
        }
        if starts.count().saturating_mul(BLOCK_BYTES) > memory {
            return Err(GraphError::Memory(memory));
        }
        let mut graph = HeapGraph {
            memory,
            starts,
            words: vec![0; count],
            offsets: vec![0; count + 1],
            edges: Vec::new(),
            roots: Vec::new(),
            ephemerons: Vec::new(),
            ephemeron_keys: Vec::new(),
            dangling: 0,
        };
        graph.read_nodes(&mut input)?;
        graph.read_edges(&mut input)?;
        Ok(graph)
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.words.len()
    }

    /// How many pointers there are, with those of suspended stacks.
    pub fn pointers(&self) -> usize {
        self.edges.len()
    }

    /// How many pointers and roots lead to no block, and are left out.
    pub fn dangling(&self) -> u64 {
        self.dangling
    }

    /// The number of the block at an address.
    pub fn number(&self, address: u64) -> Option<u32> {
        self.starts.number(address).and_then(|number| number.try_into().ok())
    }

    /// The address of a block.
    pub fn address(&self, block: u32) -> Option<u64> {
        self.starts.address(block.into())
    }

    /// The words of a block, without its header.
    pub fn words(&self, block: u32) -> u64 {
        self.words.get(block as usize).copied().unwrap_or_default()
    }

    /// The blocks that a block points to.
    pub fn targets(&self, block: u32) -> &[u32] {
        let index = block as usize;
        let range = self.offsets.get(index).zip(self.offsets.get(index + 1));
        range
            .and_then(|(&from, &to)| self.edges.get(from as usize..to as usize))
            .unwrap_or_default()
    }

    /// The number of a target; counts those that lead nowhere.
    fn resolve(&mut self, target: u64) -> Option<u32> {
        let number = self.number(target);
        self.dangling += u64::from(number.is_none());
        number
    }

    /// Words, the lengths of rows (in `offsets`, one place further), roots and ephemerons.
    fn read_nodes(&mut self, input: &mut (impl Read + Seek)) -> Result<(), GraphError> {
        let mut reader = reopen(input)?;
        while let Some(item) = reader.next_item()? {
            let tables = self.roots.len() + self.ephemeron_keys.len() + self.ephemerons.len();
            if tables as u64 * size_of::<EphemeronNode>() as u64 > self.memory {
                return Err(GraphError::Memory(self.memory));
            }
            match item {
                Item::Block(block) => {
                    let Some(number) = self.number(block.address) else { continue };
                    if let Some(words) = self.words.get_mut(number as usize) {
                        *words = block.words;
                    }
                    for pointer in block.pointers {
                        if self.resolve(pointer.target).is_some() {
                            self.lengthen(number)?;
                        }
                    }
                }
                Item::Root(root) => {
                    let Some(target) = self.resolve(root.target) else { continue };
                    match self.continuation(root.owner) {
                        Some(block) => self.lengthen(block)?,
                        None => self.roots.push((root.owner.kind(), target)),
                    }
                }
                Item::Finaliser(finaliser) => {
                    let is_held = finaliser.kind != FinaliserKind::Last;
                    let value = is_held.then_some(finaliser.value);
                    for target in [value, Some(finaliser.function)].into_iter().flatten() {
                        if target != 0
                            && let Some(target) = self.resolve(target)
                        {
                            self.roots.push((RootKind::Finaliser, target));
                        }
                    }
                }
                Item::Ephemeron(part) => {
                    if part.is_first {
                        let Some(block) = self.resolve(part.address) else { continue };
                        let at = self.ephemeron_keys.len();
                        let node = EphemeronNode { block, data: None, keys_from: at, keys_to: at };
                        self.ephemerons.push(node);
                    }
                    let data = part.data.and_then(|data| self.resolve(data));
                    for key in part.keys {
                        if let Some(key) = self.resolve(key.target) {
                            self.ephemeron_keys.push(key);
                        }
                    }
                    let block = self.number(part.address);
                    let keys_to = self.ephemeron_keys.len();
                    if let Some(node) = self.ephemerons.last_mut()
                        && Some(node.block) == block
                    {
                        node.data = node.data.or(data);
                        node.keys_to = keys_to;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The block whose row has what a suspended stack holds.
    fn continuation(&self, owner: RootOwner) -> Option<u32> {
        match owner {
            RootOwner::Continuation { block, .. } => self.number(block),
            _ => None,
        }
    }

    fn lengthen(&mut self, block: u32) -> Result<(), GraphError> {
        let length = self.offsets.get_mut(block as usize + 1);
        if let Some(length) = length {
            *length = length.checked_add(1).ok_or(GraphError::TooBig)?;
        }
        Ok(())
    }

    /// Makes offsets of lengths and fills the rows.
    fn read_edges(&mut self, input: &mut (impl Read + Seek)) -> Result<(), GraphError> {
        let mut end = 0u32;
        for offset in &mut self.offsets {
            end = end.checked_add(*offset).ok_or(GraphError::TooBig)?;
            *offset = end;
        }
        if u64::from(end) * size_of::<u32>() as u64 > self.memory {
            return Err(GraphError::Memory(self.memory));
        }
        self.edges = vec![0; end as usize];
        // Where the next target of each row goes.
        let mut next = self.offsets.clone();
        let mut reader = reopen(input)?;
        while let Some(item) = reader.next_item()? {
            match item {
                Item::Block(block) => {
                    let Some(number) = self.number(block.address) else { continue };
                    for pointer in block.pointers {
                        self.put_edge(&mut next, number, pointer.target);
                    }
                }
                Item::Root(root) => {
                    if let Some(block) = self.continuation(root.owner) {
                        self.put_edge(&mut next, block, root.target);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn put_edge(&mut self, next: &mut [u32], block: u32, target: u64) {
        let Some(target) = self.number(target) else { return };
        if let Some(at) = next.get_mut(block as usize)
            && let Some(edge) = self.edges.get_mut(*at as usize)
        {
            *edge = target;
            *at += 1;
        }
    }
}

fn read_starts(input: &mut (impl Read + Seek), memory: u64) -> Result<BlockStarts, GraphError> {
    let mut starts = StartsBuilder::default();
    let mut reader = reopen(input)?;
    while let Some(item) = reader.next_item()? {
        if let Item::Block(block) = item
            && block.is_first
        {
            starts.add(block.address);
        }
        if starts.memory() > memory {
            return Err(GraphError::Memory(memory));
        }
    }
    match reader.completion() {
        Completion::Complete => Ok(starts.finish()),
        Completion::CutShort { .. } | Completion::Unknown => Err(GraphError::CutShort),
    }
}

fn reopen<R: Read + Seek>(input: &mut R) -> Result<Reader<&mut R>, ReadError> {
    let failed = |error| ReadError { defect: Defect::Io(error), chunk: 0, offset: 0 };
    input.rewind().map_err(failed)?;
    Reader::new(input)
}
