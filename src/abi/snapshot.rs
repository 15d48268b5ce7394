//! Snapshots of the heap that the program itself asks for.

use std::ffi::{OsString, c_char};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use crate::abi::guard::guard;
use crate::abi::pointer::optional_bytes;
use crate::abi::snapshot_source::at_safe_point;
use crate::abi::status::{HEAPTAP_STATUS_OPTION, HEAPTAP_STATUS_SNAPSHOT, Refused, heaptap_status};
use crate::abi::versioned::{VersionedStruct, read_versioned};
use crate::control::{self, Moment, ProgramOrder};
use crate::snapshot::{Method, Order};

/// `method`: the heap is walked in a copy of the process, while the program goes on. If the
/// process cannot be copied, in the program.
pub const HEAPTAP_SNAPSHOT_COPY: u32 = 0;
/// `method`: the heap is walked in the program, which stands still meanwhile. No memory is needed
/// for pages that the program changes.
pub const HEAPTAP_SNAPSHOT_SYNCHRONOUS: u32 = 1;

/// `moment`: the calling thread is at a safe point, where the heap can be walked.
pub const HEAPTAP_SNAPSHOT_HERE: u32 = 0;
/// `moment`: the calling thread is not, and waits until another one is.
pub const HEAPTAP_SNAPSHOT_AT_POINT: u32 = 1;

/// How a snapshot is taken. Zero means the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct heaptap_snapshot_options {
    /// `sizeof(heaptap_snapshot_options)`.
    pub size: usize,
    /// One of `HEAPTAP_SNAPSHOT_COPY` and `HEAPTAP_SNAPSHOT_SYNCHRONOUS`.
    pub method: u32,
    /// One of `HEAPTAP_SNAPSHOT_HERE` and `HEAPTAP_SNAPSHOT_AT_POINT`.
    pub moment: u32,
    /// How many bytes of the contents of each string are included. Default: none; at most
    /// 4,096.
    pub string_bytes: u32,
    /// The longest wait for a safe point and for a snapshot that is being taken, in
    /// milliseconds. Default: 10,000.
    pub wait_ms: u32,
    /// Must be zero.
    pub reserved: [u8; 40],
}

// SAFETY: `repr(C)`, starts with its size, no padding; numbers only.
unsafe impl VersionedStruct for heaptap_snapshot_options {
    const FIRST_SIZE: usize = 64;

    fn reserved_is_zero(&self) -> bool {
        self.reserved == [0; 40]
    }
}

impl heaptap_snapshot_options {
    fn checked(&self, file: Option<PathBuf>) -> Result<ProgramOrder, Refused> {
        let is_in_range = self.string_bytes <= 4096;
        Ok(ProgramOrder {
            file,
            method: match self.method {
                HEAPTAP_SNAPSHOT_COPY if is_in_range => Method::CopyOnWrite,
                HEAPTAP_SNAPSHOT_SYNCHRONOUS if is_in_range => Method::Synchronous,
                _ => return Err(Refused(HEAPTAP_STATUS_OPTION)),
            },
            moment: match self.moment {
                HEAPTAP_SNAPSHOT_HERE => Moment::Here,
                HEAPTAP_SNAPSHOT_AT_POINT => Moment::NextSafePoint,
                _ => return Err(Refused(HEAPTAP_STATUS_OPTION)),
            },
            string_bytes: self.string_bytes,
            patience: match self.wait_ms {
                0 => Order::PATIENCE,
                wait_ms => Duration::from_millis(u64::from(wait_ms)),
            },
        })
    }
}

/// Takes a snapshot of the heap, and returns when its file is complete.
///
/// `file` is the file's name, in which nothing is replaced; NULL for the name that
/// `HEAPTAP_SNAPSHOT_FILE` gives, by default `%e-%p-%n.heap` beside the trace. A file of
/// that name is replaced only if it is a snapshot; until the new one is complete it has a
/// temporary name. `options` is NULL for the defaults. `text` is NULL or room for `text_size`
/// bytes: it receives the file's name, or with `HEAPTAP_STATUS_SNAPSHOT` the reason why
/// there is none, cut to its size and with a NUL at its end.
///
/// For hosts that have registered a source, and for programs that the library attached itself
/// to, traced or not. With `HEAPTAP_SNAPSHOT_HERE` the heap can be walked until this returns: of
/// a host, as for `heaptap_snapshot_point`; of an attached program, the calling thread was called
/// from the runtime's code and holds its lock if it has one. With `HEAPTAP_SNAPSHOT_AT_POINT`
/// it is a thread that no safe point waits for. Not inside a hook or a collection.
///
/// Allocates and takes locks. The calling thread waits until the file is written; other
/// threads are stopped only if the host has stopped them.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_snapshot_take(
    file: *const c_char,
    options: *const heaptap_snapshot_options,
    text: *mut c_char,
    text_size: usize,
) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `file` to be NULL or to end with a NUL.
        let file = unsafe { optional_bytes(file) };
        let file = Some(file).filter(|file| !file.is_empty());
        let options = if options.is_null() {
            heaptap_snapshot_options::ZERO
        } else {
            // SAFETY: this function requires a struct of the size that it starts with.
            unsafe { read_versioned(options) }?
        };
        let order = options.checked(file.map(|file| OsString::from_vec(file).into()))?;
        let taken = match order.moment {
            Moment::Here => at_safe_point(|| control::take_from_program(order)),
            Moment::NextSafePoint => control::take_from_program(order),
        };
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
pub(super) unsafe fn write_text(text: &[u8], to: *mut c_char, size: usize) {
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
        let take = |options, text: &mut [c_char]| {
            // SAFETY: a C string, options or NULL, and room for the text.
            unsafe { heaptap_snapshot_take(c"x".as_ptr(), options, text.as_mut_ptr(), text.len()) }
        };
        assert_eq!(take(std::ptr::null(), &mut text), HEAPTAP_STATUS_SNAPSHOT);
        // SAFETY: the function has written a NUL.
        let reason = unsafe { CStr::from_ptr(text.as_ptr()) }.to_str().unwrap();
        assert!(reason.contains("heaptap run"), "{reason}");
        assert_eq!(take(std::ptr::null(), &mut []), HEAPTAP_STATUS_SNAPSHOT);
        let sized = heaptap_snapshot_options { size: 64, ..heaptap_snapshot_options::ZERO };
        assert_eq!(take(&sized, &mut text), HEAPTAP_STATUS_SNAPSHOT);
        for wrong in [
            heaptap_snapshot_options { method: 2, ..sized },
            heaptap_snapshot_options { moment: 2, ..sized },
            heaptap_snapshot_options { string_bytes: 4097, ..sized },
        ] {
            assert_eq!(take(&wrong, &mut text), HEAPTAP_STATUS_OPTION);
        }
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
