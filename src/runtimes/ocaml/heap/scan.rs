//! The roots that functions of the runtime report.
//!
//! The collector's functions that go over roots take a `scanning_action`
//! (`runtime/caml/roots.h`): a C function without a context. So what it has to call is in a
//! static. There is one walk at a time.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// `scanning_action`: a value, and where it is.
pub(crate) type Action = extern "C" fn(usize, *mut usize);

/// What is called for each root: with its value and its address.
type Visitor<'a> = &'a mut dyn FnMut(usize, usize);

/// Points to the visitor while a scan is under way.
static VISITOR: AtomicPtr<Visitor<'static>> = AtomicPtr::new(ptr::null_mut());

/// Calls `visit` for each root that `scan` reports to the action that it is passed.
pub(crate) fn scan(scan: impl FnOnce(Action), visit: &mut dyn FnMut(usize, usize)) {
    let mut visitor: Visitor<'_> = visit;
    let before = VISITOR.swap((&raw mut visitor).cast(), Ordering::Relaxed);
    scan(action);
    VISITOR.store(before, Ordering::Relaxed);
}

extern "C" fn action(value: usize, slot: *mut usize) {
    let visitor = VISITOR.load(Ordering::Relaxed);
    // SAFETY: NULL, or stored by `scan`, whose visitor lives until the scan has returned; the
    // runtime calls an action only during the scan, on its thread.
    if let Some(visitor) = unsafe { visitor.as_mut() } {
        visitor(value, slot as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reported_root_is_visited() {
        let mut words = [3usize, 5, 8];
        let mut visited = Vec::new();
        let report = |action: Action| words.iter_mut().for_each(|word| action(*word, word));
        scan(report, &mut |value, slot| visited.push((value, slot)));
        let expected: Vec<_> =
            words.iter().map(|word| (*word, ptr::from_ref(word) as usize)).collect();
        assert_eq!(visited, expected);
        action(1, ptr::null_mut());
    }
}
