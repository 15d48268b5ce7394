//! Reads a snapshot into a graph.
//!
//! The file is read twice: for the starts of blocks, and for the rest. Blocks come in the order of their
//! addresses, so that rows are written one behind the other; what comes later is put in between at
//! the end.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{Read, Seek};

use heaptap_heap::{
    Block, Completion, Defect, Ephemeron, Finaliser, FinaliserKind, Item, MetaKey, ReadError,
    Reader, Root, RootOwner,
};

use super::areas::{AreaRange, AreaTable, CustomNode};
use super::facts::HeapFacts;
use super::given_names::GivenNames;
use super::heap_graph::{
    CodeNode, EphemeronNode, FinaliserNode, HeapGraph, HeapRoot, LostPointer, RootHolder,
};
use super::shapes::{BlockShape, ShapeTable};
use super::starts::{BlockStarts, StartsBuilder};

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

/// What is loaded.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions {
    /// About the most bytes: a small file can describe very many blocks.
    pub memory: u64,
    /// Whether the fields of pointers are kept, 4 bytes each.
    pub fields: bool,
}

/// Shape and offset, for each block.
const BLOCK_BYTES: u64 = 8;

impl HeapGraph {
    /// Reads a complete snapshot from its beginning.
    pub fn load(
        mut input: impl Read + Seek,
        options: LoadOptions,
    ) -> Result<HeapGraph, GraphError> {
        let LoadOptions { memory, fields } = options;
        let (starts, pointers) = read_starts(&mut input, memory)?;
        let count = usize::try_from(starts.count()).map_err(|_| GraphError::TooBig)?;
        // Further nodes stand for what holds the roots.
        if starts.count() >= u64::from(u32::MAX) {
            return Err(GraphError::TooBig);
        }
        if starts.count().saturating_mul(BLOCK_BYTES) > memory {
            return Err(GraphError::Memory(memory));
        }
        let graph = HeapGraph {
            starts,
            shapes: ShapeTable::default(),
            shape_ids: vec![0; count],
            offsets: Vec::with_capacity(count + 1),
            edges: Vec::new(),
            fields: fields.then(Vec::new),
            roots: Vec::new(),
            finalisers: Vec::new(),
            ephemerons: Vec::new(),
            ephemeron_keys: Vec::new(),
            customs: Vec::new(),
            areas: AreaTable::default(),
            codes: Vec::new(),
            tracked: Vec::new(),
            strings: Vec::new(),
            facts: HeapFacts::default(),
            given_names: GivenNames::default(),
            header_words: 0,
            lost_pointers: Vec::new(),
            lost_by_garbage: 0,
            dangling: 0,
        };
        let mut loader = Loader { graph, late: Vec::new(), ranges: Vec::new(), memory };
        loader.expect_pointers(pointers);
        loader.read_items(&mut input)?;
        loader.finish_rows()?;
        Ok(loader.finish())
    }
}

/// A pointer that belongs into a row before the last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LateEdge {
    block: u32,
    /// Where it came in the file, since the order of a row is kept.
    order: u32,
    target: u32,
    field: u32,
}

/// A graph that is being read.
struct Loader {
    /// Its `offsets` have an entry for each row that has begun.
    graph: HeapGraph,
    /// Pointers of rows that have ended.
    late: Vec<LateEdge>,
    /// Memory outside the heap, by the block that keeps it.
    ranges: Vec<AreaRange<u32>>,
    /// The limit in bytes, of each of the growing tables.
    memory: u64,
}

impl Loader {
    /// The number of a target; counts those that lead nowhere.
    fn resolve(&mut self, target: u64) -> Option<u32> {
        let number = self.graph.number(target);
        self.graph.dangling += u64::from(number.is_none());
        number
    }

    /// Reserves room for as many pointers as the file says it has, if it can be had: a table that
    /// grows takes twice its size for a while.
    fn expect_pointers(&mut self, count: u64) {
        let count = count.min(self.memory / size_of::<u32>() as u64) as usize;
        let fields = self.graph.fields.as_mut();
        for table in [Some(&mut self.graph.edges), fields].into_iter().flatten() {
            // Without it the table grows.
            let _ = table.try_reserve_exact(count);
        }
    }

    fn read_items(&mut self, input: &mut (impl Read + Seek)) -> Result<(), GraphError> {
        let mut reader = reopen(input)?;
        while let Some(item) = reader.next_item()? {
            self.check_memory()?;
            match item {
                Item::Block(block) => self.add_block(&block)?,
                Item::Root(root) => self.add_root(root)?,
                Item::Finaliser(finaliser) => self.add_finaliser(finaliser),
                Item::Ephemeron(part) => self.add_ephemeron(&part),
                Item::Tracked(tracked) => {
                    // A block that was freed since is no defect.
                    let block = self.graph.number(tracked.address);
                    self.graph.tracked.extend(block.map(|block| (block, tracked.id)));
                }
                Item::OutsideArea(area) => {
                    let block = self.resolve(area.block);
                    self.ranges.extend(block.and_then(|block| AreaRange::new(&area, block)));
                }
                other => self.graph.facts.add(&other),
            }
        }
        Ok(())
    }

    fn check_memory(&self) -> Result<(), GraphError> {
        let graph = &self.graph;
        let entries = graph.roots.len()
            + graph.ephemeron_keys.len()
            + graph.ephemerons.len()
            + graph.finalisers.len()
            + graph.customs.len()
            + graph.codes.len()
            + graph.tracked.len()
            + graph.strings.len()
            + graph.lost_pointers.len()
            + self.late.len()
            + self.ranges.len();
        let tables = entries as u64 * size_of::<HeapRoot>() as u64;
        let columns = 1 + u64::from(graph.fields.is_some());
        let edges = graph.edges.len() as u64 * columns * size_of::<u32>() as u64;
        let used = tables.max(edges) + graph.shapes.memory() + graph.facts.memory();
        if used > self.memory { Err(GraphError::Memory(self.memory)) } else { Ok(()) }
    }

    fn add_block(&mut self, block: &Block<'_>) -> Result<(), GraphError> {
        let Some(number) = self.graph.number(block.address) else { return Ok(()) };
        let shape = self.graph.shapes.id(BlockShape { tag: block.tag, words: block.words });
        if let Some(place) = self.graph.shape_ids.get_mut(number as usize) {
            *place = shape;
        }
        for pointer in block.pointers {
            self.add_pointer(number, Some(pointer.field), pointer.target)?;
        }
        if let Some(custom) = block.custom {
            let (operations, outside_bytes) = (custom.operations, custom.outside_bytes);
            self.graph.customs.push(CustomNode { block: number, operations, outside_bytes });
        }
        if let Some(code) = block.codes.first()
            && block.is_first
        {
            let second = block.codes.get(1).map_or(0, |code| code.address);
            self.graph.codes.push(CodeNode { block: number, first: code.address, second });
        }
        if let Some(contents) = block.string {
            self.add_string(number, contents);
        }
        Ok(())
    }

    /// Adds a string, unless its contents were cut off.
    fn add_string(&mut self, block: u32, contents: &[u8]) {
        let most = self.graph.facts.number(MetaKey::STRINGS).unwrap_or(0);
        if (contents.len() as u64) < most {
            let mut hasher = DefaultHasher::new();
            contents.hash(&mut hasher);
            self.graph.strings.push((block, hasher.finish()));
        }
    }

    /// Adds a pointer to the row of a block, or without a field a slot of a suspended stack to that of its
    /// continuation.
    fn add_pointer(
        &mut self,
        block: u32,
        field: Option<u64>,
        target: u64,
    ) -> Result<(), GraphError> {
        let Some(number) = self.graph.number(target) else {
            self.graph.lost_pointers.push(LostPointer { block, field, target });
            return Ok(());
        };
        let field = field.and_then(|field| field.try_into().ok()).unwrap_or(HeapGraph::NO_FIELD);
        self.put_edge(block, number, field)
    }

    fn add_root(&mut self, root: Root) -> Result<(), GraphError> {
        let Root { owner, target } = root;
        if let Some(continuation) = self.continuation(owner) {
            return self.add_pointer(continuation, None, target);
        }
        if let Some(target) = self.resolve(target) {
            self.graph.roots.push(HeapRoot { holder: RootHolder::Owner(owner), target });
        }
        Ok(())
    }

    fn add_finaliser(&mut self, finaliser: Finaliser) {
        let Finaliser { kind, value, function } = finaliser;
        let mut block = |address| if address == 0 { None } else { self.resolve(address) };
        // The value of one that runs last may be gone.
        let is_held = kind != FinaliserKind::Last;
        let held = if is_held { block(value) } else { None };
        let function = block(function);
        let value = if is_held { held } else { self.graph.number(value) };
        self.graph.finalisers.push(FinaliserNode { kind, value, function });
        for target in [held, function].into_iter().flatten() {
            self.graph.roots.push(HeapRoot { holder: RootHolder::Finaliser(kind), target });
        }
    }

    fn add_ephemeron(&mut self, part: &Ephemeron<'_>) {
        if part.is_first {
            let Some(block) = self.resolve(part.address) else { return };
            let at = self.graph.ephemeron_keys.len();
            let node = EphemeronNode { block, data: None, keys_from: at, keys_to: at };
            self.graph.ephemerons.push(node);
        }
        let data = part.data.and_then(|data| self.resolve(data));
        for key in part.keys {
            if let Some(key) = self.resolve(key.target) {
                self.graph.ephemeron_keys.push(key);
            }
        }
        let block = self.graph.number(part.address);
        let keys_to = self.graph.ephemeron_keys.len();
        if let Some(node) = self.graph.ephemerons.last_mut()
            && Some(node.block) == block
        {
            node.data = node.data.or(data);
            node.keys_to = keys_to;
        }
    }

    /// The block whose row has what a suspended stack holds.
    fn continuation(&self, owner: RootOwner) -> Option<u32> {
        match owner {
            RootOwner::Continuation { block, .. } => self.graph.number(block),
            _ => None,
        }
    }

    /// Puts a pointer at the end of its block's row, or aside if that row has ended.
    fn put_edge(&mut self, block: u32, target: u32, field: u32) -> Result<(), GraphError> {
        let end = u32::try_from(self.graph.edges.len()).map_err(|_| GraphError::TooBig)?;
        if (block as usize) < self.graph.offsets.len().saturating_sub(1) {
            let order = u32::try_from(self.late.len()).map_err(|_| GraphError::TooBig)?;
            self.late.push(LateEdge { block, order, target, field });
            return Ok(());
        }
        self.begin_rows(block as usize + 1, end);
        self.graph.edges.push(target);
        if let Some(fields) = &mut self.graph.fields {
            fields.push(field);
        }
        Ok(())
    }

    /// Begins rows at this end, so that `count` have begun.
    fn begin_rows(&mut self, count: usize, end: u32) {
        if self.graph.offsets.len() < count {
            self.graph.offsets.resize(count, end);
        }
    }

    /// Begins the rows that have no pointers, and puts late pointers into theirs.
    fn finish_rows(&mut self) -> Result<(), GraphError> {
        let all = self.graph.edges.len() + self.late.len();
        let end =
            u32::try_from(all).ok().filter(|end| *end != u32::MAX).ok_or(GraphError::TooBig)?;
        let in_order = end - self.late.len() as u32;
        self.begin_rows(self.graph.blocks() + 1, in_order);
        if self.late.is_empty() {
            return Ok(());
        }
        let mut late = std::mem::take(&mut self.late);
        late.sort_unstable();
        let graph = &mut self.graph;
        let (mut edges, mut fields) = (Vec::with_capacity(all), Vec::new());
        let mut late = late.into_iter().peekable();
        let mut from = 0;
        for block in 0..graph.shape_ids.len() as u32 {
            let Some(offset) = graph.offsets.get_mut(block as usize + 1) else { break };
            let row = from as usize..*offset as usize;
            from = *offset;
            edges.extend_from_slice(graph.edges.get(row.clone()).unwrap_or_default());
            let old_fields = graph.fields.as_ref().and_then(|fields| fields.get(row));
            fields.extend_from_slice(old_fields.unwrap_or_default());
            while let Some(edge) = late.next_if(|edge| edge.block == block) {
                edges.push(edge.target);
                if graph.fields.is_some() {
                    fields.push(edge.field);
                }
            }
            *offset = edges.len() as u32;
        }
        graph.edges = edges;
        graph.fields = graph.fields.as_ref().map(|_| fields);
        Ok(())
    }

    fn finish(self) -> HeapGraph {
        let mut graph = self.graph;
        graph.shapes.seal();
        graph.header_words = graph.facts.number(MetaKey::HEADER_WORDS).unwrap_or(0).min(16);
        graph.customs.sort_unstable_by_key(|custom| custom.block);
        graph.customs.dedup_by_key(|custom| custom.block);
        graph.areas = AreaTable::new(self.ranges, &graph.customs);
        graph.codes.sort_unstable_by_key(|code| code.block);
        graph.codes.dedup_by_key(|code| code.block);
        graph.tracked.sort_unstable();
        graph.forget_what_garbage_lost();
        graph.dangling += graph.lost_pointers.len() as u64;
        graph
    }
}

/// The starts of blocks, and how many pointers the file says it has.
fn read_starts(
    input: &mut (impl Read + Seek),
    memory: u64,
) -> Result<(BlockStarts, u64), GraphError> {
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
        Completion::Complete => {
            let pointers = reader.totals().map_or(0, |totals| totals.pointers);
            Ok((starts.finish(), pointers))
        }
        Completion::CutShort { .. } | Completion::Unknown => Err(GraphError::CutShort),
    }
}

fn reopen<R: Read + Seek>(input: &mut R) -> Result<Reader<&mut R>, ReadError> {
    let failed = |error| ReadError { defect: Defect::Io(error), chunk: 0, offset: 0 };
    input.rewind().map_err(failed)?;
    Reader::new(input)
}
