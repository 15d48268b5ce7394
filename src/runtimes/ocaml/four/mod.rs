//! OCaml 4.12 to 4.14.
//!
//! - `symbols`: what is used of the runtime; `layout`: where things are in its
//!   state; `probe`: the proof, live, before anything is changed.
//! - `hooks`: what its profiler's functions are replaced by; `gc_entry`: the way
//!   there from native code, shortened; `host`: the state behind them.
//! - `walkers`: how the stack is walked.
//!
//! Facts about the runtime are from the source of OCaml 4.14.1 and hold in
//! 4.13.1 and 4.12.1 too unless said otherwise.
//!
//! Hooks run under the runtime's master lock, one at a time, whatever thread
//! they are on, so that one mutator is enough.

mod gc_entry;
mod hooks;
mod host;
mod layout;
mod probe;
mod symbols;
mod walkers;

use super::version::MajorVersion;
use super::{attachment, bytecode};
use crate::runtimes::attach::Attachment;
use crate::runtimes::attach::refusal::Refusal;
use crate::sampling::Rate;
use crate::tracer::Options;

pub(super) use host::set_label;

/// Checks such a runtime, and returns how to trace it.
pub(super) fn attach() -> Result<Attachment, Refusal> {
    let runtime = symbols::find()?;
    let layout = probe::layout(&runtime)?;
    let options = Options {
        one_mutator: true,
        parts_have_places: layout.native,
        locate: if layout.native { None } else { Some(bytecode::locator()) },
        ..Options::new(Vec::new(), Rate::DEFAULT)
    };
    let gc_entry = gc_entry::NoRoom::find(&runtime, layout);
    let replacements = hooks::replacements(&runtime, gc_entry.as_ref());
    Ok(attachment(MajorVersion::Four, options, replacements, move |session| {
        host::start(&runtime, layout, gc_entry, session)
    }))
}
