//! A made-up machine: a stack of chunks of frames in words of memory, in several
//! formats. What is popped stays behind in memory, as on a real stack.

use std::ptr::null;
use std::sync::Arc;

use super::super::super::formats::neutral::{BOUNDARY, NO_PLACE, NeutralFrame, NeutralPlace};
use super::super::super::memory::Words;
use super::super::super::table::FrameTables;
use super::super::Start;
use super::test_formats::{CHUNK, CONTEXT, PARENT, TestTable};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Neutral,
    NeutralHidden,
    /// Where C code calls back, a link to the caller lies some way up.
    Contexts,
    /// C code runs on another stack, so the caller's frames come next where it calls
    /// back; or the stack ends and has a parent.
    Fibers,
}

/// Codes of plain frames, and their sizes; equal sizes can stand in for each
/// other.
pub(super) const CODES: [(u64, u16); 6] =
    [(0x5001, 16), (0x5002, 16), (0x5013, 16), (0x5024, 32), (0x5035, 32), (0x5046, 8)];
/// Of boundaries; in [`Format::Fibers`] that of callbacks and that of fibers.
const BOUNDARIES: [u64; 2] = [0x6001, 0x6002];
/// In no table until it is added.
pub(super) const LATE: (u64, u16) = (0x7001, 24);

const BASE: u64 = 0x10_0000;
const REGION: u64 = 0x8000;
const REGIONS: u64 = 5;

#[derive(Clone, Copy, Debug)]
struct Frame {
    code: u64,
    size: u64,
    sp: u64,
}

#[derive(Debug)]
struct Chunk {
    /// First a boundary, of size 0.
    frames: Vec<Frame>,
    region: u64,
}

pub(super) struct Machine {
    pub(super) memory: Words,
    pub(super) tables: FrameTables,
    format: Format,
    chunks: Vec<Chunk>,
    /// Stacks that do not run, each in regions that nothing else uses.
    suspended: Vec<Vec<Chunk>>,
    /// The tables point into these.
    _frames: Vec<Vec<NeutralFrame>>,
}

impl Machine {
    pub(super) fn new(format: Format) -> Self {
        let words = vec![0xDEAD_DEAD; usize::try_from(REGION * REGIONS / 8).expect("small")];
        let mut machine = Self {
            memory: Words { base: BASE, words },
            tables: FrameTables::new(),
            format,
            chunks: Vec::new(),
            suspended: Vec::new(),
            _frames: Vec::new(),
        };
        machine.add_table(&CODES, &BOUNDARIES);
        machine.enter(0, 0);
        machine
    }

    pub(super) fn add_late(&mut self) {
        if self.tables.step(LATE.0) == 0 {
            self.add_table(&[LATE], &[]);
        }
    }

    fn add_table(&mut self, codes: &[(u64, u16)], boundaries: &[u64]) {
        match self.format {
            Format::Neutral => self.add_neutral(codes, boundaries, 0),
            Format::NeutralHidden => self.add_neutral(codes, boundaries, NO_PLACE),
            Format::Contexts => self.add(TestTable::new(codes, boundaries, [&CONTEXT; 2])),
            Format::Fibers => self.add(TestTable::new(codes, boundaries, [&CHUNK, &PARENT])),
        }
    }

    fn add_neutral(&mut self, codes: &[(u64, u16)], boundaries: &[u64], place: u32) {
        let frame = |code: u64, size: u32, place| NeutralFrame {
            return_address: usize::try_from(code).expect("64 bits"),
            size,
            place,
        };
        let plain = codes.iter().map(|&(code, size)| frame(code, size.into(), NO_PLACE));
        let bounds = boundaries.iter().map(|&code| frame(code, BOUNDARY, place));
        let frames: Vec<_> = plain.chain(bounds).collect();
        let places = [NeutralPlace {
            file: null(),
            function: null(),
            line: 1,
            start_char: 0,
            end_char: 0,
            inlined_into: NO_PLACE,
        }];
        // SAFETY: both are as long as said. The walk does not look at places.
        unsafe { self.tables.add_neutral(frames.as_ptr(), frames.len(), places.as_ptr(), 1) }
            .expect("sound");
        self._frames.push(frames);
    }

    fn add(&mut self, table: TestTable) {
        self.tables.add(Arc::new(table)).expect("sound");
    }

    fn set(&mut self, address: u64, value: u64) {
        let index = usize::try_from((address - BASE) / 8).expect("in memory");
        self.memory.words[index] = value;
    }

    fn innermost(&self) -> Option<Frame> {
        self.chunks.last().and_then(|chunk| chunk.frames.last()).copied()
    }

    pub(super) fn start(&self) -> Start {
        let frame = self.innermost().expect("never empty");
        Start { return_address: frame.code, sp: frame.sp }
    }

    /// What a walk must find, outermost first, or what is inside the outermost
    /// frame that is in no table.
    pub(super) fn codes(&self) -> Vec<u64> {
        let shown = |frame: &&Frame| frame.size > 0 || self.format == Format::Neutral;
        let frames = self.chunks.iter().flat_map(|chunk| chunk.frames.iter().filter(shown));
        let codes: Vec<_> = frames.map(|frame| frame.code).collect();
        let unknown = codes.iter().rposition(|&code| self.tables.step(code) == 0);
        codes[unknown.map_or(0, |index| index + 1)..].to_vec()
    }

    pub(super) fn is_known(&self) -> bool {
        let mut frames = self.chunks.iter().flat_map(|chunk| &chunk.frames);
        frames.all(|frame| self.tables.step(frame.code) != 0)
    }

    fn has_room(&self) -> bool {
        let chunk = self.chunks.last().expect("never empty");
        chunk.frames.last().is_some_and(|f| f.sp > BASE + chunk.region * REGION + 0x400)
    }

    pub(super) fn push(&mut self, (code, size): (u64, u16)) {
        let outer = self.innermost().expect("never empty");
        if !self.has_room() {
            return;
        }
        let sp = outer.sp - u64::from(size);
        self.set(sp - 8, code);
        let frame = Frame { code, size: size.into(), sp };
        self.chunks.last_mut().expect("never empty").frames.push(frame);
    }

    /// Pops frames, and chunks that become empty, but never the outermost.
    pub(super) fn pop(&mut self, count: usize) {
        for _ in 0..count {
            let last = self.chunks.len() - 1;
            self.chunks[last].frames.pop();
            if self.chunks[last].frames.is_empty() {
                if last == 0 {
                    self.chunks.clear();
                    self.enter(0, 0);
                } else {
                    self.chunks.pop();
                    // A frame that was calling C runs again: its callee's return
                    // address is the one thing that is surely written anew.
                    let frame = self.innermost().expect("a caller");
                    self.set(frame.sp - 8, frame.code);
                }
            }
        }
    }

    /// Puts another code of the same size in a frame's place.
    pub(super) fn swap(&mut self, depth: usize, code: (u64, u16)) {
        let frames = self.chunks.iter_mut().flat_map(|chunk| chunk.frames.iter_mut());
        let mut same: Vec<_> = frames.filter(|f| f.size == u64::from(code.1)).collect();
        let count = same.len();
        if count == 0 {
            return;
        }
        let frame = &mut same[depth % count];
        frame.code = code.0;
        let frame = **frame;
        self.set(frame.sp - 8, frame.code);
        self.relink();
    }

    /// Lets another frame be the one that called C, which called back to the same
    /// place: as if the caller had returned, and its caller called again. All
    /// return addresses stay where they were; only the link tells.
    pub(super) fn recall(&mut self, depth: usize) {
        if self.chunks.len() < 2 {
            return;
        }
        let inner = 1 + depth % (self.chunks.len() - 1);
        let same_region = self.chunks[inner].region == self.chunks[inner - 1].region;
        if self.format == Format::Fibers && same_region {
            // There the link is no more than the return address.
            return;
        }
        let frames = &mut self.chunks[inner - 1].frames;
        if frames.len() > 1 {
            frames.pop();
            let caller = frames[frames.len() - 1];
            self.set(caller.sp - 8, caller.code);
            self.relink();
        }
    }

    /// Writes the words that lead from chunk to chunk.
    fn relink(&mut self) {
        for inner in 1..self.chunks.len() {
            let caller = *self.chunks[inner - 1].frames.last().expect("not empty");
            let region = self.chunks[inner - 1].region;
            let changes_region = self.chunks[inner].region != region;
            let boundary = self.chunks[inner].frames[0].sp;
            self.link(boundary, Some((caller, region)), changes_region);
        }
    }

    fn link(&mut self, sp: u64, caller: Option<(Frame, u64)>, changes_region: bool) {
        let (next, code) = caller.map_or((0, 0), |(frame, _)| (frame.sp, frame.code));
        match self.format {
            Format::Neutral | Format::NeutralHidden => {
                self.set(sp, next);
                self.set(sp + 8, code);
            }
            Format::Contexts => {
                self.set(sp + 16, next);
                self.set(sp + 24, code);
            }
            Format::Fibers if caller.is_none() || changes_region => {
                self.set(sp + 32, if caller.is_none() { 1 } else { 0xC105 });
                let parent = caller.map_or(0, |(_, region)| BASE + region * REGION);
                self.set(sp + 56, parent);
                if parent != 0 {
                    self.set(parent, next - 8);
                }
            }
            Format::Fibers => self.set(next - 8, code),
        }
    }

    /// Calls C, which calls back: on the same stack `gap` words further, or in
    /// another region.
    pub(super) fn callback(&mut self, boundary: usize, gap: u64, region: Option<u64>) {
        let chunks = || self.chunks.iter().chain(self.suspended.iter().flatten());
        let in_use = |region| chunks().any(|chunk| chunk.region == region);
        match region {
            Some(region) if !in_use(region % REGIONS) => self.enter(boundary, region % REGIONS),
            _ if self.has_room() => self.call_back(boundary, gap),
            _ => {}
        }
    }

    /// Leaves the innermost stack, whose frames stay where they are, for its caller.
    pub(super) fn suspend(&mut self) {
        let changes = |pair: &[Chunk]| pair[0].region != pair[1].region;
        let Some(outside) = self.chunks.windows(2).rposition(changes) else { return };
        self.suspended.push(self.chunks.split_off(outside + 1));
        let frame = self.innermost().expect("a caller");
        self.set(frame.sp - 8, frame.code);
    }

    /// Goes on with a stack that was suspended.
    pub(super) fn resume(&mut self, stack: usize) {
        if !self.suspended.is_empty() {
            let chunks = self.suspended.remove(stack % self.suspended.len());
            self.chunks.extend(chunks);
            self.relink();
        }
    }

    fn call_back(&mut self, boundary: usize, gap: u64) {
        let caller = self.innermost().expect("never empty");
        let region = self.chunks.last().expect("never empty").region;
        let sp = match self.format {
            Format::Fibers => caller.sp - 40,
            _ => caller.sp - 48 - 8 * gap,
        };
        self.begin(boundary, sp, region, Some((caller, region)));
    }

    fn enter(&mut self, boundary: usize, region: u64) {
        let caller = self.innermost().zip(self.chunks.last().map(|chunk| chunk.region));
        let sp = BASE + (region + 1) * REGION - 64;
        self.begin(boundary, sp, region, caller);
    }

    fn begin(&mut self, boundary: usize, sp: u64, region: u64, caller: Option<(Frame, u64)>) {
        let changes_region = caller.is_some_and(|(_, from)| from != region);
        let code = match self.format {
            Format::Fibers => BOUNDARIES[usize::from(changes_region)],
            _ => BOUNDARIES[boundary % BOUNDARIES.len()],
        };
        self.link(sp, caller, changes_region);
        self.set(sp - 8, code);
        self.chunks.push(Chunk { frames: vec![Frame { code, size: 0, sp }], region });
    }

    /// Overwrites the place where the return address of a frame that calls C
    /// would be, as a runtime may that keeps it in the link alone.
    pub(super) fn dirty(&mut self, depth: usize) {
        if self.format == Format::Fibers || self.chunks.len() < 2 {
            return;
        }
        let chunk = &self.chunks[depth % (self.chunks.len() - 1)];
        let sp = chunk.frames.last().expect("not empty").sp;
        self.set(sp - 8, 0xBAD0);
    }
}
