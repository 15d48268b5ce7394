//! The roots that functions of the runtime report.
//!
//! The collector's functions that go over roots take a `scanning_action`
//! (`runtime/caml/roots.h`): a C function without a context. So what it has to call is in a
//! static. There is one walk at a time.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::snapshot::WalkError;

/// `scanning_action`: a value, and where it is.
pub(crate) type Action = extern "C" fn(usize, *mut usize);

/// What is called for each root, with its value and its address, until it fails.
pub(crate) type RootVisitor<'a> = &'a mut dyn FnMut(usize, usize) -> Result<(), WalkError>;

/// The same as a C function calls it, which goes on whatever happens.
type Visitor<'a> = &'a mut dyn FnMut(usize, usize);

/// Points to the visitor while a scan is under way.
static VISITOR: AtomicPtr<Visitor<'static>> = AtomicPtr::new(ptr::null_mut());

/// Calls `visit` for each root that `scan` reports to the action that it is passed.
pub(crate) fn scan(scan: impl FnOnce(Action), visit: RootVisitor<'_>) -> Result<(), WalkError> {
    until_error(visit, |mut visitor| {
        let before = VISITOR.swap((&raw mut visitor).cast(), Ordering::Relaxed);
        scan(action);
        VISITOR.store(before, Ordering::Relaxed);
    })
}

/// How many roots `scan` reports.
pub(crate) fn count(report: impl FnOnce(Action)) -> u64 {
    let mut count = 0;
    let visit = &mut |_, _| {
        count += 1;
        Ok(())
    };
    _ = scan(report, visit);
    count
}

/// Has `scan` call `visit`, but no more once that has failed.
pub(crate) fn until_error(
    visit: RootVisitor<'_>,
    scan: impl FnOnce(Visitor<'_>),
) -> Result<(), WalkError> {
    let mut result = Ok(());
    scan(&mut |value, slot| {
        if result.is_ok() {
            result = visit(value, slot);
        }
    });
    result
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
    fn each_reported_root_is_visited_until_an_error() {
        let mut words = [3usize, 5, 8];
        let mut visited = Vec::new();
        let report = |action: Action| words.iter_mut().for_each(|word| action(*word, word));
        let visit = &mut |value, slot| {
            visited.push((value, slot));
            if value == 5 { Err(WalkError::Heap("the end")) } else { Ok(()) }
        };
        assert!(scan(report, visit).is_err());
        let expected: Vec<_> =
            words.iter().take(2).map(|word| (*word, ptr::from_ref(word) as usize)).collect();
        assert_eq!(visited, expected);
        action(1, ptr::null_mut());
    }
}
