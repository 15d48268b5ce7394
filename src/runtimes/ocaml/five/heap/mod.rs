//! Heap snapshots of OCaml 5.3.
//!
//! All domains stop together for each minor collection, and each of them then calls
//! `caml_minor_gc_begin_hook`. There they wait for each other if a snapshot is wanted
//! (`rendezvous`), and the last one carries it out. Nothing of the runtime is replaced.
//!
//! - `variables`: what is used of the runtime; `rendezvous`: the safe point; `responses`: whether
//!   all domains would come to it soon; `watcher`: programs that are blocked in the kernel.
//! - `domains`: the states of all domains, also of those that are ending.
//! - `pools`: the blocks of the major heap and of the young heaps.
//! - `roots`: what holds them; `scan`: how the runtime reports them; `stack`: frames and
//!   their slots, of fibers too; `fiber_frames`: the same of bytecode; `systhreads` and
//!   `thread_structure`: the threads of a domain; `stack_memory`: what stacks take; `stack_slot`: where their slots are; `finalisers`: these and ephemerons.

mod domains;
mod fiber_frames;
mod finalisers;
mod pools;
mod rendezvous;
mod responses;
mod roots;
mod scan;
mod stack;
mod stack_memory;
mod stack_slot;
mod systhreads;
mod thread_structure;
mod variables;
mod watcher;

use std::sync::OnceLock;

use heaptap_heap::{Name, Suspended};

use super::domain::domain;
use super::layout::KnownRelease;
use super::symbols::Runtime;
use crate::runtimes::attach::attached;
use crate::runtimes::attach::refusal::Refusal;
use crate::runtimes::ocaml::bytecode::GlobalUnits;
use crate::runtimes::ocaml::frames;
use crate::runtimes::ocaml::heap::CLEANS_UP;
use crate::runtimes::ocaml::heap::blocks::BlockWriter;
use crate::runtimes::ocaml::heap::global_blocks::GlobalBlocks;
use crate::runtimes::ocaml::heap::modules::{self, OcamlModule};
use crate::runtimes::ocaml::heap::words::Words;
use crate::runtimes::ocaml::heap::{code_names, release};
use crate::runtimes::ocaml::version::MajorVersion;
use crate::snapshot::{self, HeapEncoder, HeapWalker, WalkError};
use crate::sys::race_once::RaceOnce;
use crate::tracer::{Mutator, Session};

use domains::Domains;
use responses::Responses;
use roots::Globals;
use variables::{CodeKind, Variables};

/// The heap of the runtime in this program.
struct Heap {
    variables: Variables,
    /// The modules of native code, made for the first snapshot. By one that wins the race, not under
    /// a lock: a thread of ours reads it while the program may fork.
    modules: RaceOnce<Vec<OcamlModule>>,
    /// The compilation units of bytecode, made like `modules`; `None` if they cannot be found.
    units: RaceOnce<Option<GlobalUnits>>,
    responses: Responses,
}

static HEAP: OnceLock<Heap> = OnceLock::new();

/// Makes snapshots possible. Before `main`.
pub(super) fn prepare(runtime: &Runtime, known: &'static KnownRelease) -> Result<(), Refusal> {
    let variables = Variables::find(runtime, known)?;
    let heap = HEAP.get_or_init(|| Heap {
        variables,
        modules: RaceOnce::new(),
        units: RaceOnce::new(),
        responses: Responses::new(),
    });
    rendezvous::install(heap);
    frames::watch_plugins();
    snapshot::register(heap);
    Ok(())
}

impl Heap {
    /// The units of a bytecode program that has begun, if they can be found. Allocates.
    fn find_units(&self) -> Option<&GlobalUnits> {
        let CodeKind::Bytecode { code: Some(code), .. } = self.variables.code else { return None };
        if code.size_now() == 0 {
            return None;
        }
        self.units.get_or_init(|| GlobalUnits::read(code)).as_ref()
    }

    /// The release that the program's standard library states, if it has a module that does.
    fn release(&self) -> Option<String> {
        match self.variables.code {
            CodeKind::Native { .. } => release::of_native(),
            CodeKind::Bytecode { global_data, .. } => {
                release::of_bytecode(global_data, self.find_units())
            }
        }
    }
}

impl HeapWalker for Heap {
    fn runtime(&self) -> String {
        let kind = match self.variables.code {
            CodeKind::Native { .. } => "native",
            CodeKind::Bytecode { .. } => "bytecode",
        };
        format!("OCaml {} {kind}", self.release().as_deref().unwrap_or("5.3"))
    }

    fn header_words(&self) -> u32 {
        1
    }

    fn refusal(&self) -> Option<&'static str> {
        if let Some(other) = release::refusal(self.variables.releases, self.release()) {
            return Some(other);
        }
        let cleans_up = self.variables.param(|params| params.cleanup_on_exit) != 0;
        cleans_up.then_some(CLEANS_UP)
    }

    fn prepare(&self) {
        self.responses.reset();
        if let CodeKind::Native { globals, .. } = self.variables.code {
            self.modules.get_or_init(|| modules::of_program(globals));
        }
        self.find_units();
    }

    fn poke(&self) {
        if let Some(heap) = HEAP.get() {
            rendezvous::poke(heap);
        }
    }

    fn come_to_safe_point(&self) {
        // Without the lock of its domain a thread has no state (`caml_release_domain_lock`,
        // `runtime/domain.c`).
        if self.variables.current_state() != 0 {
            (self.variables.collect_young)();
        }
    }

    fn walk(&self, encoder: &mut HeapEncoder<'_>, string_bytes: u32) -> Result<(), WalkError> {
        // SAFETY: walks take place while all domains wait in `rendezvous`, or in a copy of the
        // process made there. The parts of the walk go along the runtime's own lists, whose
        // layout is checked on the way.
        let words = unsafe { Words::at_rest() };
        let domains = Domains::find(&self.variables, words)?;
        let globals = Globals {
            modules: self.modules.get().map_or(&[][..], Vec::as_slice),
            units: self.units.get().and_then(Option::as_ref),
        };
        let blocks = match self.variables.code {
            CodeKind::Native { .. } => None,
            CodeKind::Bytecode { global_data, .. } => {
                GlobalBlocks::find(words, words.word(global_data), globals.units)?
            }
        };
        let mut writer = BlockWriter::new(words, encoder, string_bytes)?
            .with_continuations()?
            .with_globals(blocks);
        pools::write(&self.variables, &domains, &mut writer)?;
        roots::write(&self.variables, &domains, globals, &mut writer)?;
        finalisers::write(&self.variables, &domains, &mut writer)
    }

    fn tracked(&self, found: &mut dyn FnMut(usize, u64)) {
        domains::for_each_waiting(|state| {
            // SAFETY: a domain that waits in `rendezvous`, where no hook is under way.
            let mutator = unsafe { domain(state) }.and_then(|domain| domain.mutator.as_ref());
            let tracked = mutator.into_iter().flat_map(Mutator::tracked);
            tracked.for_each(|(address, number)| found(address, number));
        });
    }

    fn session(&self) -> Option<&'static Session> {
        Some(&attached()?.session)
    }

    fn name_code(&self, codes: &Suspended, found: &mut dyn FnMut(Name<'_>)) {
        match self.variables.code {
            CodeKind::Native { .. } => code_names::of_native(MajorVersion::Five, codes, found),
            CodeKind::Bytecode { code, .. } => code_names::of_bytecode(code, codes, found),
        }
    }
}
