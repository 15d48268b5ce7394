//! For programs whose runtime was attached to: they have no tracer and no mutator.

use std::ffi::c_char;

use crate::{runtimes, tracer};

/// The label of this name: the same name gives the same label.
///
/// For a program that does not use the rest of this header, and may not be traced
/// at all: then there are no labels, and this returns 0. Any thread, not inside a
/// hook. Names are cut after 1,024 bytes.
///
/// # Safety
/// `name` is NULL or so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_attached_label(name: *const c_char, length: usize) -> u32 {
    if name.is_null() || length > isize::MAX as usize {
        return 0;
    }
    // SAFETY: the program's promise.
    let name = unsafe { std::slice::from_raw_parts(name.cast::<u8>(), length) };
    tracer::guard(|| runtimes::label(name)).unwrap_or(0)
}

/// Sets what the calling thread is doing from now on: a label from
/// `heaptap_attached_label`, or 0 for nothing. Returns what it was before.
///
/// Each of the runtime's threads has its own. The caller is one of them, and runs
/// the runtime's code or is called from it. Costs a few instructions.
#[unsafe(no_mangle)]
pub extern "C" fn heaptap_attached_set_label(label: u32) -> u32 {
    tracer::guard(|| runtimes::set_label(label)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_traced_has_no_labels() {
        for name in [c"task".as_ptr(), std::ptr::null()] {
            // SAFETY: so many bytes, or NULL.
            assert_eq!(unsafe { heaptap_attached_label(name, 4) }, 0);
        }
        assert_eq!(heaptap_attached_set_label(3), 0);
    }
}
