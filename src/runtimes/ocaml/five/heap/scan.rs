//! The roots that functions of the runtime report.

use std::ffi::c_void;

use crate::runtimes::ocaml::five::symbols::ScanningAction;
use crate::sys::memory::MappedVec;

/// A root that the runtime has reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reported {
    pub(super) value: usize,
    pub(super) slot: usize,
}

/// Calls a function of the runtime that reports roots, with `visit` for what it reports.
pub(super) fn scan(
    report: impl FnOnce(ScanningAction, *mut c_void),
    mut visit: &mut dyn FnMut(usize, usize),
) {
    extern "C" fn action(data: *mut c_void, value: usize, slot: *mut usize) {
        // SAFETY: `scan` passes its `visit`, which lives until the function has returned.
        let visit = unsafe { &mut *data.cast::<&mut dyn FnMut(usize, usize)>() };
        visit(value, slot as usize);
    }
    report(action, (&raw mut visit).cast());
}

/// Appends what a function of the runtime reports to `roots`. False if there is no memory.
#[must_use]
pub(super) fn collect(
    report: impl FnOnce(ScanningAction, *mut c_void),
    roots: &mut MappedVec<Reported>,
) -> bool {
    let mut is_complete = true;
    scan(report, &mut |value, slot| is_complete &= roots.push(Reported { value, slot }));
    is_complete
}
