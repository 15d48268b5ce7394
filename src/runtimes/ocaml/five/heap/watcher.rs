//! Programs whose domains are all blocked in the kernel.
//!
//! Nobody collects then. A thread of ours takes the lock of the first domain, which is free
//! while the domain's threads are in blocking sections, and collects in its name. The other
//! domains take part through their backup threads.

use std::sync::atomic::{AtomicBool, Ordering};

use super::Heap;
use crate::snapshot;
use crate::sys::thread;

/// There is a watcher.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// Starts a watcher unless there is one. It ends when the snapshot was taken, at the latest
/// when the first domain next blocks.
pub(super) fn start(heap: &'static Heap) {
    if IS_RUNNING.swap(true, Ordering::AcqRel) {
        return;
    }
    let watch = move |_| {
        let variables = &heap.variables;
        (variables.init_domain_self)(0);
        if variables.current_state() != 0 && snapshot::is_wanted() {
            (variables.acquire_domain_lock)();
            if snapshot::is_wanted() {
                (variables.collect_young)();
            }
            (variables.release_domain_lock)();
        }
        IS_RUNNING.store(false, Ordering::Release);
    };
    match thread::start("heaptap-watcher", watch) {
        // It may wait for as long as the program runs.
        Ok(worker) => worker.forget(),
        Err(_) => IS_RUNNING.store(false, Ordering::Release),
    }
}
