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

use super::domain::domain;
use super::layout::{self, KnownRelease};
use super::symbols::Runtime;
use crate::runtimes::attach::Refusal;
use crate::runtimes::ocaml::heap::{BlockWriter, CodeKind, Globals, OcamlHeap, VersionHeap};
use crate::runtimes::ocaml::{MajorVersion, Releases, frames};
use crate::snapshot::{self, WalkError};
use crate::tracer::Mutator;

use domains::Domains;
use responses::Responses;
use variables::Variables;

/// What snapshots need of the runtime in this program.
struct Heap {
    variables: Variables,
    responses: Responses,
}

static HEAP: OnceLock<OcamlHeap<Heap>> = OnceLock::new();

/// Makes snapshots possible. Before `main`.
pub(super) fn prepare(runtime: &Runtime, known: &'static KnownRelease) -> Result<(), Refusal> {
    let heap = Heap { variables: Variables::find(runtime, known)?, responses: Responses::new() };
    let walker = HEAP.get_or_init(|| OcamlHeap::new(heap));
    rendezvous::install(&walker.of_version);
    frames::watch_plugins();
    snapshot::register(walker);
    Ok(())
}

/// The heap, once snapshots are possible.
fn heap() -> Option<&'static Heap> {
    HEAP.get().map(|walker| &walker.of_version)
}

/// Calls `visit` with the state of each domain, while all wait at a safe point. None before the
/// runtime starts.
pub(super) fn for_each_waiting(visit: impl FnMut(usize)) {
    domains::for_each_waiting(visit);
}

impl VersionHeap for Heap {
    const VERSION: MajorVersion = MajorVersion::Five;
    const RELEASE: &'static str = layout::WALKABLE;

    fn code(&self) -> &CodeKind {
        &self.variables.code
    }

    fn releases(&self) -> Releases {
        self.variables.releases
    }

    fn cleans_up(&self) -> bool {
        self.variables.param(|params| params.cleanup_on_exit) != 0
    }

    fn prepare(&self) {
        self.responses.reset();
    }

    fn poke(&self) {
        if let Some(heap) = heap() {
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

    fn write(
        &self,
        globals: Globals<'_>,
        writer: &mut BlockWriter<'_, '_>,
    ) -> Result<(), WalkError> {
        let domains = Domains::find(&self.variables, writer.words)?;
        writer.remember_continuations()?;
        pools::write(&self.variables, &domains, writer)?;
        roots::write(&self.variables, &domains, globals, writer)?;
        finalisers::write(&self.variables, &domains, writer)
    }

    fn tracked(&self, found: &mut dyn FnMut(usize, u64)) {
        domains::for_each_waiting(|state| {
            // SAFETY: a domain that waits in `rendezvous`, where no hook is under way.
            let mutator = unsafe { domain(state) }.and_then(|domain| domain.mutator.as_ref());
            let tracked = mutator.into_iter().flat_map(Mutator::tracked);
            tracked.for_each(|(address, number)| found(address, number));
        });
    }
}
