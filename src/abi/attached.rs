//! Labels for programs that the library attached itself to: they have no tracer
//! and no mutator.

use std::ffi::c_char;

use crate::{runtimes, tracer};

/// Returns the label with this name, for a program that the library attached itself
/// to. The same name gives the same label, also in a later trace. Returns 0 if the program is neither
/// traced nor waits to be.
///
/// `name` has `length` bytes and need not end with a NUL; bytes after the first
/// 1,024 are ignored. For code that runs traced and untraced, and does not call
/// `heaptap_tracer_start`.
///
/// Any thread, not inside a hook. Takes a lock. There are at most 65,536 labels.
///
/// # Safety
/// `name` is NULL or points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_attached_label(name: *const c_char, length: usize) -> u32 {
    if name.is_null() || length > isize::MAX as usize {
        return 0;
    }
    // SAFETY: this function requires `name` to point to `length` bytes.
    let name = unsafe { std::slice::from_raw_parts(name.cast::<u8>(), length) };
    let label = || runtimes::attached().map(|attached| attached.labels.intern(name));
    tracer::guard(label).flatten().unwrap_or(0)
}

/// Sets the label of the calling thread and returns the one it had before.
///
/// `label` is from `heaptap_attached_label`, or 0 for none. The label is the
/// outermost frame of the backtraces of this thread's samples, also of a trace that begins
/// later. Does nothing and returns 0 if the program is neither traced nor waits to be.
///
/// A thread of the runtime, while it runs the runtime's code or is called from it.
/// Costs a few instructions.
#[unsafe(no_mangle)]
pub extern "C" fn heaptap_attached_set_label(label: u32) -> u32 {
    let set = || runtimes::attached().map(|attached| attached.runtime.set_label(label));
    tracer::guard(set).flatten().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_traced_has_no_labels() {
        for name in [c"task".as_ptr(), std::ptr::null()] {
            // SAFETY: four bytes, or NULL.
            assert_eq!(unsafe { heaptap_attached_label(name, 4) }, 0);
        }
        assert_eq!(heaptap_attached_set_label(3), 0);
    }
}
