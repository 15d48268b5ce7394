//! Waits until the runtime has a heap.
//!
//! The library is loaded before `main`, when there is nothing to prove a layout with. `ruby_setup` makes
//! the heap and the classes; whoever starts Ruby calls it, `ruby_init` too, once or more often. It is the only
//! function of the runtime whose code is changed.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::symbols;
use crate::runtimes::attach::patch::{Jumps, Original};
use crate::runtimes::attach::{Refusal, Replacement};
use crate::tracer;

/// `int ruby_setup(void)` (`eval.c`)
type Setup = extern "C" fn() -> c_int;

static ORIGINAL: Original<Setup> = Original::new();

/// What is done once the heap is there.
static STARTED: OnceLock<fn()> = OnceLock::new();

/// It was done.
static IS_DONE: AtomicBool = AtomicBool::new(false);

/// Calls `started` once the runtime has a heap, before the program runs. Before `main`.
pub(super) fn wait(started: fn()) -> Result<(), Refusal> {
    let setup = symbols::setup()?;
    let replacement = Replacement {
        name: c"ruby_setup",
        address: setup.address,
        size: setup.size,
        with: setup_hook as *const () as usize,
        original: Some(ORIGINAL.place()),
    };
    let jumps = Jumps::prepare(&[replacement])?;
    let _ = STARTED.set(started);
    jumps.write()
}

/// `ruby_setup`: 0 if all went well.
extern "C" fn setup_hook() -> c_int {
    // SAFETY: `int ruby_setup(void)`.
    let original = unsafe { ORIGINAL.get() };
    // It is there before the jump to this hook is.
    let status = original.map_or(1, |original| original());
    if status == 0
        && !IS_DONE.swap(true, Ordering::Relaxed)
        && let Some(started) = STARTED.get()
    {
        tracer::guard(started);
    }
    status
}
