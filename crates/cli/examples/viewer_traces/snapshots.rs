//! Heap snapshots of the service, taken while its trace was being written, and one with hostile names.

use std::path::Path;

use heaptap_heap::{
    Encoder, Finaliser, FinaliserKind, MetaKey, Name, Root, RootOwner, Segment, SegmentKind,
    Tracked, Workspace,
};

use crate::Outcome;

const CLOSURE: u32 = 247;
const STRING: u32 = 252;
const CUSTOM: u32 = 255;
const HEAP_START: u64 = 0x10_0000;
/// The operations of custom blocks.
const OPERATIONS: u64 = 0x700;
/// A session takes 13 words with its header, and a sample stands for 1000.
const SESSIONS_OF_A_SAMPLE: usize = 77;
pub(crate) const SESSION_WORDS: u64 = 12;

/// A session that the trace follows: its id in the trace and when it was allocated.
pub(crate) struct KeptSession {
    pub(crate) id: u64,
    pub(crate) time: u64,
}

/// The facts at the beginning of a snapshot.
struct SnapshotFacts<'a> {
    program: &'a [u8],
    /// Microseconds since the Unix epoch.
    time: u64,
    trace: Option<&'a Path>,
    trace_start: u64,
}

#[derive(Default)]
struct HeapBlock {
    address: u64,
    words: u64,
    tag: u32,
    /// Fields, ascending, and the blocks they point to.
    pointers: Vec<(u64, usize)>,
    code: Option<u64>,
    outside: Option<u64>,
}

/// A heap under construction.
struct MadeHeap {
    blocks: Vec<HeapBlock>,
    free: u64,
    roots: Vec<(RootOwner, usize)>,
    finalisers: Vec<(usize, usize)>,
    followed: Vec<(usize, u64)>,
    modules: Vec<Vec<u8>>,
    functions: Vec<(u64, Vec<u8>, u32)>,
    thread: Vec<u8>,
    custom: Vec<u8>,
}

impl MadeHeap {
    fn new(thread: &[u8], custom: &[u8]) -> MadeHeap {
        MadeHeap {
            blocks: Vec::new(),
            free: HEAP_START,
            roots: Vec::new(),
            finalisers: Vec::new(),
            followed: Vec::new(),
            modules: Vec::new(),
            functions: Vec::new(),
            thread: thread.to_vec(),
            custom: custom.to_vec(),
        }
    }

    fn block(&mut self, words: u64, tag: u32, pointers: &[(u64, usize)]) -> usize {
        let address = self.free + 8;
        self.free = address + words * 8;
        let pointers = pointers.to_vec();
        self.blocks.push(HeapBlock { address, words, tag, pointers, ..HeapBlock::default() });
        self.blocks.len() - 1
    }

    fn custom(&mut self, outside: u64) -> usize {
        let block = self.block(3, CUSTOM, &[]);
        self.blocks[block].outside = Some(outside);
        block
    }

    fn closure(&mut self, code: u64, captured: &[(u64, usize)]) -> usize {
        let block = self.block(4, CLOSURE, captured);
        self.blocks[block].code = Some(code);
        block
    }

    /// A field of a module's static data holds the block.
    fn global(&mut self, module: &[u8], field: u32, block: usize) {
        let known = self.modules.iter().position(|name| name == module);
        let module = known.unwrap_or_else(|| {
            self.modules.push(module.to_vec());
            self.modules.len() - 1
        });
        self.roots.push((RootOwner::Global { module: module as u32, field }, block));
    }

    /// A frame of the thread holds the block.
    fn frame(&mut self, depth: u32, function: &[u8], line: u32, block: usize) {
        let known = self.functions.iter().find(|(_, name, at)| name == function && *at == line);
        let next = 0x900 + 0x10 * self.functions.len() as u64;
        let return_address = known.map_or(next, |(address, ..)| *address);
        if return_address == next {
            self.functions.push((next, function.to_vec(), line));
        }
        self.roots.push((RootOwner::Stack { thread: 0, depth, return_address, slot: 1 }, block));
    }

    fn write(&self, path: &Path, facts: &SnapshotFacts<'_>) -> Outcome {
        let mut workspace = Box::new(Workspace::new());
        let mut encoder = Encoder::new(Vec::new(), &mut workspace, 1);
        let written = self.encode(&mut encoder, facts).and_then(|()| encoder.finish());
        let (_, bytes) = written.map_err(|error| format!("the snapshot is refused: {error}"))?;
        Ok(std::fs::write(path, bytes)?)
    }

    fn encode(
        &self,
        encoder: &mut Encoder<'_, Vec<u8>>,
        facts: &SnapshotFacts<'_>,
    ) -> Result<(), i32> {
        encoder.meta(MetaKey::RUNTIME, b"OCaml 4.14.1 native")?;
        encoder.meta(MetaKey::PROGRAM, facts.program)?;
        encoder.meta(MetaKey::REASON, b"timer")?;
        encoder.meta_number(MetaKey::PID, 1)?;
        encoder.meta_number(MetaKey::TIME, facts.time * 1000)?;
        if let Some(trace) = facts.trace {
            encoder.meta(MetaKey::TRACE_FILE, trace.as_os_str().as_encoded_bytes())?;
            encoder.meta_number(MetaKey::TRACE_START, facts.trace_start)?;
        }
        let words = (self.free - HEAP_START) / 8;
        encoder.segment(Segment { kind: SegmentKind::Major, start: HEAP_START, words })?;
        let address = |block: usize| self.blocks[block].address;
        for block in &self.blocks {
            encoder.begin_block(block.address, block.words, block.tag)?;
            if let Some(outside) = block.outside {
                encoder.custom(OPERATIONS, outside)?;
            }
            if let Some(code) = block.code {
                encoder.code(0, code)?;
            }
            for &(field, target) in &block.pointers {
                encoder.pointer(field, address(target))?;
            }
            encoder.end_block()?;
        }
        encoder.custom_kind(OPERATIONS, &self.custom)?;
        for (id, name) in (0..).zip(&self.modules) {
            encoder.module(id, name)?;
        }
        encoder.thread(0, 0, &self.thread)?;
        for (code, function, line) in &self.functions {
            encoder.name(Name { address: *code, function, file: b"src/server.ml", line: *line })?;
        }
        for &(owner, target) in &self.roots {
            encoder.root(Root { owner, target: address(target) })?;
        }
        for &(value, function) in &self.finalisers {
            let kind = FinaliserKind::First;
            encoder.finaliser(Finaliser {
                kind,
                value: address(value),
                function: address(function),
            })?;
        }
        for &(block, id) in &self.followed {
            encoder.tracked(Tracked { address: address(block), id })?;
        }
        Ok(())
    }
}

/// `service-1.heap` to `service-3.heap`, after 5, 10 and 19 seconds.
pub(crate) fn write_service(directory: &Path, start: u64, kept: &[KeptSession]) -> Outcome {
    for (number, seconds) in [(1, 5), (2, 10), (3, 19)] {
        let time = start + seconds * 1_000_000;
        let kept: Vec<u64> = kept.iter().filter(|one| one.time < time).map(|one| one.id).collect();
        let heap = service(&kept, number);
        let trace = directory.join("service.ctf");
        let facts = SnapshotFacts {
            program: b"/opt/service/service.exe",
            time,
            trace: Some(&trace),
            trace_start: start,
        };
        heap.write(&directory.join(format!("service-{number}.heap")), &facts)?;
    }
    Ok(())
}

/// The heap of the service: sessions that are linked and never removed, a cache, buffers outside the
/// heap, a finaliser that holds its value, and the stack of a recursion.
fn service(kept: &[u64], number: u64) -> MadeHeap {
    let mut heap = MadeHeap::new(b"main", b"_bigarr02");
    let mut next: Option<usize> = None;
    for &id in kept {
        for copy in 0..SESSIONS_OF_A_SAMPLE {
            let link: Vec<(u64, usize)> = next.map(|next| (1, next)).into_iter().collect();
            let session = heap.block(SESSION_WORDS, 0, &link);
            if copy == 0 {
                heap.followed.push((session, id));
            }
            next = Some(session);
        }
    }
    let table = heap.block(1, 0, &next.map(|next| (0, next)).into_iter().collect::<Vec<_>>());
    heap.global(b"Session", 4, table);
    // It fills until the second snapshot.
    let entries: Vec<(u64, usize)> = (0..2000 * number.min(2))
        .map(|field| {
            let text = heap.block(16, STRING, &[]);
            (field, heap.block(3, 0, &[(0, text)]))
        })
        .collect();
    let array = heap.block(entries.len() as u64, 0, &entries);
    let cache = heap.block(4, 0, &[(1, array)]);
    heap.global(b"Cache", 3, cache);
    let buffers: Vec<(u64, usize)> =
        (0..8 * number).map(|field| (field, heap.custom(1 << 20))).collect();
    let pool = heap.block(buffers.len() as u64, 0, &buffers);
    heap.global(b"Pool", 0, pool);
    let value = heap.block(500, 0, &[]);
    let function = heap.closure(0x900, &[(2, value)]);
    heap.finalisers.push((value, function));
    for depth in 0..3 {
        let row = heap.block(300 + u64::from(depth), 0, &[]);
        heap.frame(depth, b"Render.cell", 33, row);
    }
    let request = heap.closure(0x900, &[(2, array)]);
    heap.frame(3, b"Server.serve", 22, request);
    if number > 1 {
        let metrics = heap.block(900, 0, &[]);
        heap.global(b"Metrics", 1, metrics);
    }
    // Two modules hold it, so neither alone; more modules than a table of the page has rows hold more alone.
    let shared = heap.block(20_000, 0, &[]);
    for module in [&b"Shared"[..], b"Store"] {
        let reference = heap.block(1, 0, &[(0, shared)]);
        heap.global(module, 1, reference);
    }
    for plugin in 0..40 {
        let settings = heap.block(30, 0, &[]);
        heap.global(format!("Plugin{plugin}").as_bytes(), 0, settings);
    }
    // Garbage.
    for _ in 0..5000 {
        heap.block(2, 0, &[]);
    }
    heap
}

/// Every name is hostile.
pub(crate) fn write_hostile(directory: &Path, start: u64, names: &[&[u8]]) -> Outcome {
    let mut heap = MadeHeap::new(names[0], names[1]);
    for (at, name) in names.iter().enumerate() {
        let outside = heap.custom(2 << 20);
        let list = heap.block(2, 0, &[(0, outside)]);
        heap.global(name, at as u32, list);
        let on_stack = heap.block(7 + at as u64, 0, &[]);
        heap.frame(at as u32, name, 3, on_stack);
        let closure = heap.closure(0x900 + 0x10 * at as u64, &[]);
        heap.global(name, 100, closure);
    }
    let facts = SnapshotFacts { program: names[0], time: start, trace: None, trace_start: 0 };
    heap.write(&directory.join("hostile.heap"), &facts)
}
