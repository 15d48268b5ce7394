//! What the codes of frames mean.
//!
//! Lives on the writer thread, where it may allocate, read files and call the
//! host's locator.

use std::ops::Range;
use std::sync::Arc;

use heaptap_symbols::{Process, SourceLocation, Symbols};
use heaptap_trace::{
    KIND_FILE, Locate, Location, LocationList, code_of_kind, kind_of, without_kind,
};

use crate::queue::{Code, Part};
use crate::stack::FrameTables;
use crate::stack::formats::Explained;
use crate::sys::process_memory::ProcessMemory;
use crate::tracer::host_names::HostNames;
use crate::tracer::labels::Labels;
use crate::tracer::options::{Locator, Namer, Options};
use crate::tracer::part_code_cache::PartCodeCache;

/// Where code can be on amd64.
const USER_ADDRESSES: Range<u64> = 4_096..1 << 47;

/// Finds the source locations of frames.
pub(crate) struct FrameLocator {
    tables: Arc<FrameTables>,
    labels: Arc<Labels>,
    names: Arc<HostNames>,
    /// The host's own function, for codes that no frame table explains.
    locator: Option<Locator>,
    namer: Option<Namer>,
    /// The program's own debug information; `None` until it is first needed.
    symbols: Option<Symbols>,
    memory: ProcessMemory,
    max_frames: usize,
    parts_have_places: bool,
    part_codes: PartCodeCache,
}

impl FrameLocator {
    pub(crate) fn new(
        options: &Options,
        tables: &Arc<FrameTables>,
        labels: &Arc<Labels>,
        names: &Arc<HostNames>,
    ) -> FrameLocator {
        FrameLocator {
            tables: Arc::clone(tables),
            labels: Arc::clone(labels),
            names: Arc::clone(names),
            locator: options.locate.clone(),
            namer: options.name.clone(),
            symbols: None,
            memory: ProcessMemory::new(),
            max_frames: options.max_frames,
            parts_have_places: options.parts_have_places,
            part_codes: PartCodeCache::new(),
        }
    }

    /// See [`Context::part_code`](crate::writer::Context::part_code).
    #[inline]
    pub(crate) fn part_code(&mut self, return_address: u64, part: Part) -> u64 {
        if !self.parts_have_places {
            return code_of_kind(return_address, part.kind()).unwrap_or(return_address);
        }
        let FrameLocator { tables, part_codes, .. } = self;
        part_codes
            .code(return_address, part, |index| tables.source(return_address)?.part_key(index))
    }

    /// A frame of the runtime or of C code: as its frame table explains it, else as
    /// the host does, else by the program's own debug information and symbols.
    fn locate_host(&mut self, code: u64, list: &mut LocationList) {
        let (code, part) = if self.parts_have_places { Part::of_code(code) } else { (code, None) };
        let source = self.tables.source(code);
        let explained = source.map(|source| source.locate(part, &self.memory, list));
        if explained == Some(Explained::Fully) {
            return;
        }
        if self.names.locate(code, list) {
            return;
        }
        if let Some(locator) = &self.locator {
            locator(code, list);
            // A host's walker may return C functions too, of which its own function knows nothing.
            if !list.is_empty() || !USER_ADDRESSES.contains(&code) {
                return;
            }
        }
        let only_named = explained == Some(Explained::WithoutDebugInfo);
        if only_named && self.namer.as_ref().is_some_and(|namer| namer(code, list)) {
            return;
        }
        let symbols = self.symbols.get_or_insert_with(own_symbols);
        let mut add = |found: SourceLocation<'_>| add(&found, list);
        if only_named {
            symbols.name(code, &mut add);
        } else {
            symbols.locate(code, &mut add);
        }
    }
}

/// Adds what the program's own debug information says.
fn add(found: &SourceLocation<'_>, list: &mut LocationList) {
    list.add(Location {
        file: found.file,
        line: found.line,
        start_char: found.start_char,
        end_char: found.end_char,
        definition: found.function,
    });
}

/// The program's own debug information.
fn own_symbols() -> Symbols {
    /// The most bytes of it that are kept in the host's memory.
    const LIMIT: u64 = 128 << 20;
    Symbols::of_process(Process::This, LIMIT)
}

/// Adds a frame of heaptap's own, which has only a name.
fn add_own(definition: &[u8], list: &mut LocationList) {
    list.add(Location { file: b"heaptap", line: 0, start_char: 0, end_char: 0, definition });
}

impl Locate for FrameLocator {
    fn locate(&mut self, code: u64, list: &mut LocationList) {
        let kind = kind_of(code);
        let code = without_kind(code);
        if let (Some(kind), 0) = (kind, code) {
            if let Some(definition) = self.names.kind(kind) {
                let (file, definition) = (KIND_FILE, &definition[..]);
                list.add(Location { file, line: 0, start_char: 0, end_char: 0, definition });
            }
            return;
        }
        match Code::from_bits(code) {
            Code::Host(code) => self.locate_host(code, list),
            Code::Label(number) => {
                let name = self.labels.name(number);
                let definition = name.as_deref().unwrap_or(b"(unknown label)");
                let file = b"label";
                list.add(Location { file, line: 0, start_char: 0, end_char: 0, definition });
            }
            Code::LeftOut(count) => {
                add_own(format!("({count} frames left out)").as_bytes(), list);
            }
            Code::BeyondLimit => {
                add_own(format!("(beyond {} frames)", self.max_frames).as_bytes(), list);
            }
            Code::Unknown => add_own(b"(unknown frames)", list),
        }
    }
}
