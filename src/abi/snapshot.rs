//! Snapshots of the heap that the program itself asks for.

use std::ffi::{OsString, c_char};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::abi::guard::guard;
use crate::abi::pointer::optional_bytes;
use crate::abi::status::{HEAPTAP_STATUS_SNAPSHOT, Refused, heaptap_status};
use crate::control;

/// Takes a snapshot of the heap, and returns when its file is complete.
///
/// `file` is the file's name, in which nothing is replaced; NULL for the name that
/// `HEAPTAP_SNAPSHOT_FILE` gives, by default `%e-%p-%n.heap` beside the trace. A file of
/// that name is replaced only if it is a snapshot. `text` is NULL or room for `text_size`
/// bytes: it receives the file's name, or with `HEAPTAP_STATUS_SNAPSHOT` the reason why
/// there is none, cut to its size and with a NUL at its end.
///
/// For programs that the library attached itself to, traced or not, and for hosts whose heap
/// it can walk. A thread of the runtime that has been called from the runtime's code, and
/// holds its lock if it has one; not inside a hook or a collection. The program stands still
/// while the kernel copies its page tables, and this thread until the file is written.
///
/// # Safety
/// `file` is NULL or ends with a NUL; `text` is NULL or has room for `text_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_snapshot_take(
    file: *const c_char,
    text: *mut c_char,
    text_size: usize,
) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `file` to be NULL or to end with a NUL.
        let file = unsafe { optional_bytes(file) };
        let file = Some(file).filter(|file| !file.is_empty());
        let taken = control::take_from_program(file.map(|file| OsString::from_vec(file).into()));
        let (line, result) = match taken {
            Ok(path) => (path, Ok(())),
            Err(reason) => (PathBuf::from(reason), Err(Refused(HEAPTAP_STATUS_SNAPSHOT))),
        };
        // SAFETY: this function requires `text` to be NULL or room for `text_size` bytes.
        unsafe { write_text(line.as_os_str().as_bytes(), text, text_size) };
        result
    })
}

/// Writes a text and a NUL, cut to the size.
///
/// # Safety
/// `to` is NULL or has room for `size` bytes.
unsafe fn write_text(text: &[u8], to: *mut c_char, size: usize) {
    let Some(room) = size.checked_sub(1).filter(|_| !to.is_null()) else { return };
    let length = text.len().min(room);
    // SAFETY: `length` bytes are in `text`, and fewer than `size`, for which there is room.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), to.cast::<u8>(), length) };
    // SAFETY: `length` is below `size`.
    let end = unsafe { to.add(length) };
    // SAFETY: `end` is inside the room.
    unsafe { end.write(0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn a_program_that_is_not_traced_gets_the_reason() {
        let mut text = [1; 200];
        // SAFETY: a C string, and room for 200 bytes.
        let status = unsafe { heaptap_snapshot_take(c"x".as_ptr(), text.as_mut_ptr(), text.len()) };
        assert_eq!(status, HEAPTAP_STATUS_SNAPSHOT);
        // SAFETY: the function has written a NUL.
        let reason = unsafe { CStr::from_ptr(text.as_ptr()) }.to_str().unwrap();
        assert!(reason.contains("heaptap run"), "{reason}");
        // SAFETY: NULL is allowed.
        let status = unsafe { heaptap_snapshot_take(std::ptr::null(), std::ptr::null_mut(), 9) };
        assert_eq!(status, HEAPTAP_STATUS_SNAPSHOT);
    }

    #[test]
    fn a_text_is_cut_to_its_room() {
        for (size, expected) in
            [(0, &b"\x07\x07\x07\x07"[..]), (1, b"\0\x07\x07\x07"), (3, b"ab\0\x07"), (4, b"abc\0")]
        {
            let mut room = [7u8; 4];
            // SAFETY: `size` is at most the room.
            unsafe { write_text(b"abcdef", room.as_mut_ptr().cast(), size) };
            assert_eq!(room, expected);
        }
    }
}
