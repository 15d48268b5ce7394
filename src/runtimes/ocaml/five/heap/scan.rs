//! The roots that functions of the runtime report.

use std::ffi::c_void;

use crate::runtimes::ocaml::five::symbols::ScanningAction;
use crate::runtimes::ocaml::heap::NO_MEMORY;
use crate::runtimes::ocaml::heap::scan::{RootVisitor, until_error};
use crate::snapshot::WalkError;
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
    visit: RootVisitor<'_>,
) -> Result<(), WalkError> {
    extern "C" fn action(data: *mut c_void, value: usize, slot: *mut usize) {
        // SAFETY: `scan` passes its visitor, which lives until the function has returned.
        let visit = unsafe { &mut *data.cast::<&mut dyn FnMut(usize, usize)>() };
        visit(value, slot as usize);
    }
    until_error(visit, |mut visitor| report(action, (&raw mut visitor).cast()))
}

/// Appends what a function of the runtime reports to `roots`.
pub(super) fn collect(
    report: impl FnOnce(ScanningAction, *mut c_void),
    roots: &mut MappedVec<Reported>,
) -> Result<(), WalkError> {
    scan(report, &mut |value, slot| {
        if roots.push(Reported { value, slot }) { Ok(()) } else { Err(NO_MEMORY) }
    })
}
