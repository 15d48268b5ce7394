//! Heap snapshots of OCaml 4.
//!
//! - `variables`: what is used of the runtime; `safe_point`: the moments at which the heap
//!   can be walked; `bound_errors`: programs in which no collection may be requested; `blocking`:
//!   programs that are blocked in the kernel.
//! - `chunks`: the major heap and the young heap; `roots`: what holds their blocks;
//!   `stack`: frames and their slots; `finalisers`: these and ephemerons.
//!
//! Nothing of the runtime is replaced for this, only hooks that it offers are set, but for the
//! function that native code polls by (`four/polls.rs`).

mod blocking;
mod bound_errors;
mod chunks;
mod finalisers;
mod roots;
mod safe_point;
mod stack;
mod variables;

use std::sync::OnceLock;

use heaptap_heap::{Name, Suspended};

use super::host::host;
use super::proof::Proved;
use crate::runtimes::attach::attached;
use crate::runtimes::attach::own_stack::OwnStack;
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
use crate::tracer::Session;

use bound_errors::BoundErrors;
use variables::{CodeKind, Variables};

/// The heap of the runtime in this program.
struct Heap {
    variables: Variables,
    /// The modules of native code, made for the first snapshot. By one that wins the race, not under
    /// a lock: a thread of ours reads it while the program may fork.
    modules: RaceOnce<Vec<OcamlModule>>,
    /// The compilation units of bytecode, made like `modules`; `None` if they cannot be found.
    units: RaceOnce<Option<GlobalUnits>>,
    bound_errors: BoundErrors,
    /// Where snapshots are taken: OCaml leaves the C code that it calls little stack.
    stack: OwnStack,
}

static HEAP: OnceLock<Heap> = OnceLock::new();

/// Makes snapshots possible. Before `main`, or when the runtime starts.
pub(super) fn prepare(proved: Proved) -> Result<(), Refusal> {
    let variables = Variables::find(proved)?;
    let stack = OwnStack::new().ok_or(Refusal::Layout("there is no memory for a stack"))?;
    let heap = HEAP.get_or_init(|| Heap {
        variables,
        modules: RaceOnce::new(),
        units: RaceOnce::new(),
        bound_errors: BoundErrors::new(),
        stack,
    });
    safe_point::install(heap);
    blocking::install(heap);
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

/// Takes the snapshot that is wanted, if one is. Under the master lock, where the program polls.
pub(super) fn at_poll() {
    if snapshot::is_wanted()
        && let Some(heap) = HEAP.get()
    {
        safe_point::take_on_own_stack(heap);
    }
}

impl HeapWalker for Heap {
    fn runtime(&self) -> String {
        let kind = if self.variables.is_native() { "native" } else { "bytecode" };
        format!("OCaml {} {kind}", self.release().as_deref().unwrap_or("4"))
    }

    fn header_words(&self) -> u32 {
        1
    }

    fn refusal(&self) -> Option<&'static str> {
        if let Some(other) = release::refusal(self.variables.known.releases, self.release()) {
            return Some(other);
        }
        // SAFETY: `uintnat caml_cleanup_on_exit` (`runtime/startup_aux.c`), which the runtime
        // sets when it starts.
        let cleans_up = unsafe { (self.variables.cleans_up as *const usize).read_volatile() };
        (cleans_up != 0).then_some(CLEANS_UP)
    }

    fn prepare(&self) {
        if let Some(globals) = self.variables.native_globals() {
            self.modules.get_or_init(|| modules::of_program(globals));
            self.bound_errors.look();
        }
        self.find_units();
    }

    fn poke(&self) {
        let variables = &self.variables;
        let is_harmless = self.bound_errors.are_framed() && safe_point::may_poke(variables);
        if !variables.is_native() || is_harmless {
            safe_point::poke(variables);
        }
    }

    fn at_rest(&self, work: &mut dyn FnMut()) -> bool {
        blocking::at_rest(work)
    }

    fn come_to_safe_point(&self) {
        safe_point::take_on_own_stack(self);
    }

    fn walk(&self, encoder: &mut HeapEncoder<'_>, string_bytes: u32) -> Result<(), WalkError> {
        // SAFETY: walks take place at a safe point, while no thread runs OCaml code, or in a
        // copy of the process made there (`HeapWalker::walk`). The parts of the walk go along
        // the runtime's own lists, whose layout is proved or checked on the way.
        let words = unsafe { Words::at_rest() };
        let units = self.units.get().and_then(Option::as_ref);
        let globals = match self.variables.code {
            CodeKind::Native { .. } => None,
            CodeKind::Bytecode { global_data, .. } => {
                GlobalBlocks::find(words, words.word(global_data), units)?
            }
        };
        let mut writer = BlockWriter::new(words, encoder, string_bytes)?.with_globals(globals);
        chunks::write(&self.variables, &mut writer)?;
        let modules = self.modules.get().map_or(&[][..], Vec::as_slice);
        roots::write(&self.variables, modules, units, &mut writer)?;
        finalisers::write(&self.variables, &mut writer)
    }

    fn tracked(&self, found: &mut dyn FnMut(usize, u64)) {
        // SAFETY: walks take place under the master lock, or while no thread runs OCaml code;
        // no hook is under way.
        let Some(host) = (unsafe { host() }) else { return };
        host.mutator.tracked().for_each(|(address, number)| found(address, number));
    }

    fn session(&self) -> Option<&'static Session> {
        Some(&attached()?.session)
    }

    fn name_code(&self, codes: &Suspended, found: &mut dyn FnMut(Name<'_>)) {
        match self.variables.code {
            CodeKind::Native { .. } => code_names::of_native(MajorVersion::Four, codes, found),
            CodeKind::Bytecode { code, .. } => code_names::of_bytecode(code, codes, found),
        }
    }

    fn collect(&self) -> Option<(u64, u64)> {
        self.variables.collect();
        // SAFETY: the copy of the process has one thread, which has just collected.
        let words = unsafe { Words::at_rest() };
        chunks::count(&self.variables, words)
    }
}
