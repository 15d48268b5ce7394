//! Labels for programs that the library attached itself to: they have no tracer
//! and no mutator.

use std::ffi::{c_char, c_int};

use crate::abi::pointer::optional_bytes;
use crate::abi::snapshot::write_text;
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

/// Makes a program that runs take commands on a control socket. Called by `heaptap attach`, and of no
/// use to others.
///
/// Returns 0 if the program takes commands from now on, and otherwise writes the reason to `answer`, cut to
/// `answer_size` bytes with a NUL at its end; then nothing in the program has changed. `argument` is the
/// version of heaptap that asks, which must be this one.
///
/// A thread of the runtime that holds its lock, at the beginning of a minor collection, with 256 KiB of
/// stack. Allocates and takes locks.
///
/// # Safety
/// `argument` is NULL or a string that ends with a NUL, `answer` NULL or room for `answer_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_attached_listen(
    argument: *const c_char,
    answer: *mut c_char,
    answer_size: usize,
) -> c_int {
    // SAFETY: this function requires a string that ends with a NUL, or NULL.
    let version = unsafe { optional_bytes(argument) };
    let listen = || {
        if version != crate::VERSION.as_bytes() {
            return Err(format!("the library is of heaptap {}", crate::VERSION));
        }
        runtimes::attach_while_running()
    };
    let listens = tracer::guard(listen)
        .unwrap_or_else(|| Err("a defect in heaptap, please report it".into()));
    let Err(reason) = listens else { return 0 };
    // SAFETY: this function requires `answer` to be NULL or room for `answer_size` bytes.
    unsafe { write_text(reason.as_bytes(), answer, answer_size) };
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::{CStr, CString};

    #[test]
    fn a_program_that_is_not_traced_has_no_labels() {
        for name in [c"task".as_ptr(), std::ptr::null()] {
            // SAFETY: four bytes, or NULL.
            assert_eq!(unsafe { heaptap_attached_label(name, 4) }, 0);
        }
        assert_eq!(heaptap_attached_set_label(3), 0);
    }

    #[test]
    fn a_program_without_a_runtime_takes_no_commands_and_says_why() {
        let listen = |version: &CStr| {
            let mut text = [1; 100];
            // SAFETY: a C string, and room for the text.
            let status =
                unsafe { heaptap_attached_listen(version.as_ptr(), text.as_mut_ptr(), text.len()) };
            assert_eq!(status, 1);
            // SAFETY: the function has written a NUL.
            unsafe { CStr::from_ptr(text.as_ptr()) }.to_str().unwrap().to_owned()
        };
        let own = CString::new(crate::VERSION).unwrap();
        assert!(listen(&own).starts_with("no runtime that heaptap knows"));
        assert!(listen(c"0.0.0").contains("the library is of heaptap"));
    }
}
