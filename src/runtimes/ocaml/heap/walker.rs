//! OCaml's heap as a [`HeapWalker`]: what both major versions have in common.

use std::sync::Arc;

use heaptap_heap::{Name, Suspended};

use super::blocks::BlockWriter;
use super::code_kind::CodeKind;
use super::global_blocks::GlobalBlocks;
use super::modules::{self, OcamlModule};
use super::words::Words;
use super::{code_names, release};
use crate::runtimes::attach::attached;
use crate::runtimes::ocaml::bytecode::GlobalUnits;
use crate::runtimes::ocaml::{MajorVersion, Releases};
use crate::safe_point::SafePoints;
use crate::snapshot::{HeapEncoder, HeapWalker, WalkError};
use crate::sys::race_once::RaceOnce;
use crate::tracer::Session;

/// With `c` in `OCAMLRUNPARAM` the runtime frees its heap while the program exits, where exit
/// handlers and threads of ours could still want to walk it.
const CLEANS_UP: &str = "OCAMLRUNPARAM has c: the runtime frees its heap at exit, \
                         and heaptap takes no snapshots of such a program; remove the c";

/// The heap of one major version. [`SafePoints`] and [`HeapWalker`] say when each function is called.
pub(crate) trait VersionHeap: Sync {
    const VERSION: MajorVersion;
    /// Names the release of a program that does not state it.
    const RELEASE: &'static str;

    fn code(&self) -> &CodeKind;

    /// The releases whose layout the runtime has.
    fn releases(&self) -> Releases;

    /// Whether the runtime frees its heap while the program exits.
    fn cleans_up(&self) -> bool;

    fn prepare(&self);
    fn poke(&self);
    fn at_rest(&self, _work: &mut dyn FnMut()) -> bool {
        false
    }
    fn come_to_safe_point(&self);

    /// Writes all blocks, roots, finalisers and ephemerons.
    fn write(
        &self,
        globals: Globals<'_>,
        writer: &mut BlockWriter<'_, '_>,
    ) -> Result<(), WalkError>;

    fn tracked(&self, found: &mut dyn FnMut(usize, u64));

    fn collect(&self) -> Option<(u64, u64)> {
        None
    }
}

/// What is known of the program's modules.
#[derive(Clone, Copy)]
pub(crate) struct Globals<'a> {
    /// Of native code.
    pub(crate) modules: &'a [OcamlModule],
    /// Of bytecode.
    pub(crate) units: Option<&'a GlobalUnits>,
}

/// The heap of the runtime in this program.
pub(crate) struct OcamlHeap<H> {
    pub(crate) of_version: H,
    /// The modules of native code, made for the first snapshot. By one that wins the race, not under
    /// a lock: a thread of ours reads it while the program may fork.
    modules: RaceOnce<Vec<OcamlModule>>,
    /// The compilation units of bytecode, made like `modules`; `None` if they cannot be found.
    units: RaceOnce<Option<GlobalUnits>>,
}

impl<H: VersionHeap> OcamlHeap<H> {
    pub(crate) fn new(of_version: H) -> OcamlHeap<H> {
        OcamlHeap { of_version, modules: RaceOnce::new(), units: RaceOnce::new() }
    }

    /// The units of a bytecode program that has begun, if they can be found. Allocates.
    fn find_units(&self) -> Option<&GlobalUnits> {
        let CodeKind::Bytecode { code: Some(code), .. } = *self.of_version.code() else {
            return None;
        };
        if code.size_now() == 0 {
            return None;
        }
        self.units.get_or_init(|| GlobalUnits::read(code)).as_ref()
    }

    /// The release that the program's standard library states, if it has a module that does.
    fn release(&self) -> Option<String> {
        match *self.of_version.code() {
            CodeKind::Native { .. } => release::of_native(),
            CodeKind::Bytecode { global_data, .. } => {
                release::of_bytecode(global_data, self.find_units())
            }
        }
    }
}

impl<H: VersionHeap> SafePoints for OcamlHeap<H> {
    fn prepare(&self) {
        self.of_version.prepare();
    }

    fn poke(&self) {
        self.of_version.poke();
    }

    fn at_rest(&self, work: &mut dyn FnMut()) -> bool {
        self.of_version.at_rest(work)
    }

    fn come_to_safe_point(&self) {
        self.of_version.come_to_safe_point();
    }
}

impl<H: VersionHeap> HeapWalker for OcamlHeap<H> {
    fn runtime(&self) -> String {
        let kind = if self.of_version.code().is_native() { "native" } else { "bytecode" };
        format!("OCaml {} {kind}", self.release().as_deref().unwrap_or(H::RELEASE))
    }

    fn header_words(&self) -> u32 {
        1
    }

    fn refusal(&self) -> Option<&'static str> {
        let other = release::refusal(self.of_version.releases(), self.release());
        other.or_else(|| self.of_version.cleans_up().then_some(CLEANS_UP))
    }

    fn prepare_walk(&self) {
        if let CodeKind::Native { globals, .. } = *self.of_version.code() {
            self.modules.get_or_init(|| modules::of_program(globals));
        }
        self.find_units();
    }

    fn walk(&self, encoder: &mut HeapEncoder<'_>, string_bytes: u32) -> Result<(), WalkError> {
        // SAFETY: walks take place at a safe point of the version, while no thread runs OCaml
        // code, or in a copy of the process made there (`HeapWalker::walk`). The parts of the
        // walk follow the runtime's own lists, whose layout is proved or checked on the way.
        let words = unsafe { Words::at_rest() };
        let globals = Globals {
            modules: self.modules.get().map_or(&[][..], Vec::as_slice),
            units: self.units.get().and_then(Option::as_ref),
        };
        let blocks = match *self.of_version.code() {
            CodeKind::Native { .. } => None,
            CodeKind::Bytecode { global_data, .. } => {
                GlobalBlocks::find(words, words.word(global_data), globals.units)?
            }
        };
        let mut writer = BlockWriter::new(words, encoder, string_bytes, blocks)?;
        self.of_version.write(globals, &mut writer)
    }

    fn tracked(&self, found: &mut dyn FnMut(usize, u64)) {
        self.of_version.tracked(found);
    }

    fn session(&self) -> Option<Arc<Session>> {
        attached()?.session()
    }

    fn name_code(&self, codes: &Suspended, found: &mut dyn FnMut(Name<'_>)) {
        match *self.of_version.code() {
            CodeKind::Native { .. } => code_names::of_native(H::VERSION, codes, found),
            CodeKind::Bytecode { code, .. } => code_names::of_bytecode(code, codes, found),
        }
    }

    fn collect(&self) -> Option<(u64, u64)> {
        self.of_version.collect()
    }
}
