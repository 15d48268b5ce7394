//! OCaml 4.12 to 4.14.
//!
//! - `symbols`: what is used of the runtime, and the table of the functions that are
//!   replaced; `layout`: what is known about each release; `proof`: the live
//!   proof of a layout, before anything is changed.
//! - `sessions`: how a session begins and ends; `profile_in_use`: whether the program takes a
//!   profile of its own.
//! - `hooks`: the replacements; `gc_entry`: a shortcut to them from native code;
//!   `host`: what is behind them; `state`: that of the runtime.
//! - `heap`: heap snapshots; `polls`: points at which native code can be interrupted.
//! - `counters`: the collector's counters.
//! - `walkers`: how the stack is walked; `parameters`: what the trace info says about
//!   the runtime.
//!
//! Facts about the runtime are from the source of OCaml 4.14.1 and hold in
//! 4.13.1 and 4.12.1 too unless said otherwise.
//!
//! Hooks run under the runtime's master lock, one at a time, on any thread. So there
//! is one mutator.

mod counters;
mod gc_entry;
mod heap;
mod hooks;
mod host;
mod layout;
mod parameters;
mod polls;
mod profile_in_use;
mod proof;
mod sessions;
mod state;
mod symbols;
mod walkers;

use crate::runtimes::attach::{Attachment, Refusal};
use crate::runtimes::ocaml::runtime::Ocaml;
use crate::runtimes::ocaml::{MajorVersion, attachment, bytecode, frames};
use crate::tracer::{Options, Rate};

use gc_entry::GcEntry;

/// OCaml 4.12 to 4.14.
pub(in crate::runtimes) static OCAML4: Ocaml = Ocaml {
    version: MajorVersion::Four,
    attachment,
    is_running: || symbols::find().is_ok_and(|runtime| proof::is_running(&runtime)),
    prepare_snapshots,
    hook_polls: polls::hook,
    set_label: host::set_label,
    tag: host::tag,
};

/// Proves that the runtime is as known, and returns how to trace it.
fn attachment() -> Result<Attachment, Refusal> {
    let runtime = symbols::find()?;
    let proved = proof::prove(&runtime)?;
    let options = Options {
        one_mutator: true,
        parts_have_places: proved.is_native,
        locate: if proved.is_native { None } else { Some(bytecode::locator()) },
        late_params: parameters::reader(&runtime, proved),
        read_heap: Some(counters::reader(&runtime, &proved.known.state)),
        ..Options::new(Vec::new(), Rate::DEFAULT)
    };
    let gc_entry = if proved.is_native { GcEntry::find(&runtime) } else { None };
    let replacements = hooks::replacements(&runtime, gc_entry.is_some());
    let is_running = proof::is_running(&runtime);
    let sessions = sessions::FourSessions::new(runtime, proved, gc_entry)?;
    let attachment = attachment::attachment(options, replacements, sessions);
    if is_running {
        frames::find_loaded_plugins();
    }
    Ok(attachment)
}

/// Proves that the runtime is as known, and prepares for snapshots. Before `attachment` has
/// replaced anything.
fn prepare_snapshots() -> Result<(), Refusal> {
    heap::prepare(proof::prove(&symbols::find()?)?)
}
