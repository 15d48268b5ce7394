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

use std::ffi::c_void;
use std::sync::OnceLock;

use super::host::host;
use super::proof::Proved;
use crate::runtimes::attach::{OwnStack, Refusal};
use crate::runtimes::ocaml::heap::{BlockWriter, CodeKind, Globals, OcamlHeap, VersionHeap, Words};
use crate::runtimes::ocaml::{MajorVersion, Releases, frames};
use crate::safe_point as exchange;
use crate::snapshot::{self, WalkError};

use bound_errors::BoundErrors;
use variables::Variables;

/// What snapshots need of the runtime in this program.
struct Heap {
    variables: Variables,
    bound_errors: BoundErrors,
    /// Where snapshots are taken: OCaml leaves the C code that it calls little stack.
    stack: OwnStack,
}

static HEAP: OnceLock<OcamlHeap<Heap>> = OnceLock::new();

/// Makes snapshots possible. Before `main`, or when the runtime starts, or under the lock of one that
/// runs.
pub(super) fn prepare(proved: Proved) -> Result<(), Refusal> {
    let variables = Variables::find(proved)?;
    let stack = OwnStack::new().ok_or(Refusal::Layout("there is no memory for a stack"))?;
    let heap = Heap { variables, bound_errors: BoundErrors::new(), stack };
    let walker = HEAP.get_or_init(|| OcamlHeap::new(heap));
    let heap = &walker.of_version;
    let is_alone = safe_point::is_alone(heap);
    safe_point::install(heap);
    blocking::install(heap, is_alone);
    frames::watch_plugins();
    snapshot::register(walker);
    Ok(())
}

/// The heap, once snapshots are possible.
fn heap() -> Option<&'static Heap> {
    HEAP.get().map(|walker| &walker.of_version)
}

/// Carries out the task that is wanted, if one is. Under the master lock, where the program polls.
pub(super) fn at_poll() {
    if exchange::is_wanted()
        && let Some(heap) = heap()
    {
        heap.on_own_stack(exchange::at_safe_point);
    }
}

impl Heap {
    /// Carries out the task that is wanted, by `work`. Under the master lock, on any thread, with
    /// little stack.
    fn on_own_stack(&self, work: fn()) {
        let mut work = work;
        // SAFETY: tasks are carried out under the master lock, one at a time; `carry_out` does
        // not unwind.
        unsafe { self.stack.run(carry_out, (&raw mut work).cast()) };
    }
}

extern "C" fn carry_out(work: *mut c_void) {
    // SAFETY: `on_own_stack` passes the address of a function, and waits.
    let work = unsafe { work.cast::<fn()>().read() };
    crate::tracer::guard(work);
}

impl VersionHeap for Heap {
    const VERSION: MajorVersion = MajorVersion::Four;
    const RELEASE: &'static str = "4";

    fn code(&self) -> &CodeKind {
        &self.variables.code
    }

    fn releases(&self) -> Releases {
        self.variables.known.releases
    }

    fn cleans_up(&self) -> bool {
        // SAFETY: `uintnat caml_cleanup_on_exit` (`runtime/startup_aux.c`), which the runtime
        // sets when it starts.
        unsafe { (self.variables.cleans_up as *const usize).read_volatile() != 0 }
    }

    fn prepare(&self) {
        if self.variables.code.is_native() {
            self.bound_errors.look();
        }
    }

    fn poke(&self) {
        let variables = &self.variables;
        if !variables.code.is_native() || self.bound_errors.are_framed() {
            safe_point::poke(variables);
        }
    }

    fn at_rest(&self, work: &mut dyn FnMut()) -> bool {
        blocking::at_rest(work)
    }

    fn come_to_safe_point(&self) {
        self.on_own_stack(exchange::at_safe_point);
    }

    fn write(
        &self,
        globals: Globals<'_>,
        writer: &mut BlockWriter<'_, '_>,
    ) -> Result<(), WalkError> {
        chunks::write(&self.variables, writer)?;
        roots::write(&self.variables, globals, writer)?;
        finalisers::write(&self.variables, writer)
    }

    fn tracked(&self, found: &mut dyn FnMut(usize, u64)) {
        // SAFETY: walks take place under the master lock, or while no thread runs OCaml code;
        // no hook is under way.
        let Some(host) = (unsafe { host() }) else { return };
        host.mutator.tracked().for_each(|(address, number)| found(address, number));
    }

    fn collect(&self) -> Option<(u64, u64)> {
        self.variables.collect();
        // SAFETY: the copy of the process has one thread, which has just collected.
        let words = unsafe { Words::at_rest() };
        chunks::count(&self.variables, words)
    }
}
