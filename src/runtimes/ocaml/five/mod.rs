//! OCaml 5.3 and later: domains, each with a young heap of its own.
//!
//! - `symbols`: what is used of the runtime, and the table of the functions that are
//!   replaced; `layout`: what is known about each release; `proof`: the
//!   live proof of a layout, before anything is changed.
//! - `hooks`: the replacements; `small_alloc`: that of an allocation's slow path.
//! - `domain`: the state behind them, for each domain; `domain_table`: finds it.
//! - `sessions`: how a session begins and ends.
//! - `heap`: heap snapshots; `fiber_stacks`: the memory of suspended fibers, for the time line.
//! - `walkers`: how the stack is walked, through all fibers; `parameters`: what the trace
//!   info says about the runtime.
//!
//! Facts about the runtime are from the source of OCaml 5.3.0, and hold for 5.4.1,
//! whose states of domains are longer. A later one is traced if it has all the
//! symbols, passes the proof, and goes on to behave as these do; each domain has a
//! mutator, so that no domain waits for another.
//!
//! # When a young block is dead
//!
//! In 5.3.0 `caml_memprof_after_minor_gc` is called before the barrier at the end
//! of a minor collection (`caml_empty_minor_heap_promote`,
//! `runtime/minor_gc.c`): other domains may still be promoting what this one
//! has allocated (ocaml/ocaml#14057). `caml_final_empty_young`, which is not part
//! of the profiler, is called next behind the barrier, while nothing has been
//! allocated yet; so it is replaced too, and young blocks are settled there. That
//! holds for every kind of minor collection, also for those in which the young
//! heaps are then given another size. In 5.4.1 both come behind the barrier, in the
//! same order.
//!
//! # Domains that end
//!
//! A domain leaves the set of those that stop together before it tells the
//! profiler (`domain_terminate`, `runtime/domain.c`), so a major collection of
//! the others may end in between, and would not see its blocks. Hence a domain
//! that is ending hands its blocks over in its last minor collection, when all
//! domains stand still. Whoever is first in the next major collection takes them.

mod counters;
mod domain;
mod domain_table;
mod fiber_stacks;
mod heap;
mod hooks;
mod layout;
mod parameters;
mod proof;
mod sessions;
mod small_alloc;
mod symbols;
mod walkers;

use crate::runtimes::attach::{Attachment, Refusal};
use crate::runtimes::ocaml::runtime::Ocaml;
use crate::runtimes::ocaml::{MajorVersion, attachment, bytecode};
use crate::tracer::{Options, Rate};

/// OCaml 5.3 and later.
pub(in crate::runtimes) static OCAML5: Ocaml = Ocaml {
    version: MajorVersion::Five,
    attachment,
    // There is no moment at which one that runs could be attached to.
    is_running: || false,
    prepare_snapshots,
    // The runtime collects at polls.
    hook_polls: || Ok(()),
    set_label: domain::set_label,
    tag: domain::tag,
};

/// Proves that the runtime is as known, and prepares for snapshots. Before `attachment` has
/// replaced anything.
fn prepare_snapshots() -> Result<(), Refusal> {
    let runtime = symbols::find()?;
    heap::prepare(&runtime, proof::prove(&runtime)?)
}

/// Proves that the runtime is as known, and returns how to trace it.
fn attachment() -> Result<Attachment, Refusal> {
    let runtime = symbols::find()?;
    let known = proof::prove(&runtime)?;
    let options = Options {
        parts_have_places: runtime.is_native,
        locate: if runtime.is_native { None } else { Some(bytecode::locator()) },
        late_params: parameters::reader(&runtime, known),
        read_heap: Some(counters::reader()),
        ..Options::new(Vec::new(), Rate::DEFAULT)
    };
    let replacements = hooks::replacements(&runtime);
    Ok(attachment::attachment(options, replacements, sessions::FiveSessions::new(runtime, known)))
}
