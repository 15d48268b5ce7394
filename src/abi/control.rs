//! Commands from the program itself: for hosts that have an endpoint of their own for such things.

use std::ffi::c_char;

use crate::abi::guard::guard;
use crate::abi::pointer::bytes;
use crate::abi::snapshot::write_text;
use crate::abi::snapshot_source::at_safe_point;
use crate::abi::status::{HEAPTAP_STATUS_COMMAND, Refused, heaptap_status};
use crate::control;

/// Carries out a command of the control socket, such as `status`, `start /tmp/a.ctf 1e-4`, `stop`,
/// `mark TEXT` or `flush` (docs/control.md), and returns when it is done.
///
/// `answer` is NULL or room for `answer_size` bytes: it receives what the socket would answer behind
/// `ok`, or with `HEAPTAP_STATUS_COMMAND` the reason why the command failed, cut to its size and with
/// a NUL at its end.
///
/// For programs that the library attached itself to, traced or not, whether they listen on a socket
/// or not. A host that links the library starts and stops its traces by `heaptap_tracer_start`
/// and `heaptap_tracer_stop`; the other commands are for it too. The calling thread was called from the
/// runtime's code and holds its lock if it has one; of a host, the heap can be walked until this returns. Not
/// inside a hook or a collection. Allocates and takes locks.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_control_command(
    command: *const c_char,
    answer: *mut c_char,
    answer_size: usize,
) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `command` to be NULL or to end with a NUL.
        let command = unsafe { bytes(command) }?;
        let (text, result) = match at_safe_point(|| control::command_from_program(&command)) {
            Ok(text) => (text, Ok(())),
            Err(reason) => (reason, Err(Refused(HEAPTAP_STATUS_COMMAND))),
        };
        // SAFETY: this function requires `answer` to be NULL or room for `answer_size` bytes.
        unsafe { write_text(text.as_bytes(), answer, answer_size) };
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn a_program_that_is_not_traced_gets_the_reason() {
        let mut text = [1; 300];
        for command in [c"status", c"unheard of", c""] {
            // SAFETY: a C string, and room for the text.
            let status =
                unsafe { heaptap_control_command(command.as_ptr(), text.as_mut_ptr(), text.len()) };
            assert_eq!(status, HEAPTAP_STATUS_COMMAND);
            // SAFETY: the function has written a NUL.
            assert!(!unsafe { CStr::from_ptr(text.as_ptr()) }.is_empty());
        }
    }
}
