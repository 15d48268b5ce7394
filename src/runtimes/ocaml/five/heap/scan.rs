//! The roots that functions of the runtime report.

use std::ffi::c_void;

use crate::runtimes::ocaml::five::symbols::ScanningAction;

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
