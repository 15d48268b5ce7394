//! Programs whose domains are all blocked in the kernel.
//!
//! Nobody collects then. A thread of ours takes the lock of the first domain, which is free
//! while the domain's threads are in blocking sections, and collects in its name. The other
//! domains take part through their backup threads.

use std::sync::atomic::{AtomicU32, Ordering};

use super::Heap;
use crate::safe_point;
use crate::sys::thread;

/// The process that has a watcher, which a forked child has not; 0 if none has.
static RUNS_IN: AtomicU32 = AtomicU32::new(0);

/// Starts a watcher unless there is one. It ends when the snapshot was taken, at the latest
/// when the first domain next blocks.
pub(super) fn start(heap: &'static Heap) {
    let process = std::process::id();
    if RUNS_IN.swap(process, Ordering::AcqRel) == process {
        return;
    }
    let watch = move |_| {
        let variables = &heap.variables;
        if variables.enter_domain(0) != 0 && safe_point::is_wanted() {
            (variables.acquire_domain_lock)();
            let is_harmless = variables.running_domains() == 1 || heap.responses.is_permitted();
            if is_harmless && safe_point::is_wanted() {
                (variables.collect_young)();
            }
            (variables.release_domain_lock)();
        }
        RUNS_IN.store(0, Ordering::Release);
    };
    match thread::start("heaptap-watcher", watch) {
        // It may wait for as long as the program runs.
        Ok(worker) => worker.forget(),
        Err(_) => RUNS_IN.store(0, Ordering::Release),
    }
}
