//! What hosts hand in, checked.
//!
//! A pointer that is neither NULL nor misaligned is believed: nothing more can
//! be known about it. The header says for each what it must point to.

use std::ffi::{CStr, c_char};

use crate::abi::status::{HEAPTAP_STATUS_NULL, Refused};

/// Refuses NULL and what is misaligned.
pub(crate) fn check<T>(pointer: *const T) -> Result<(), Refused> {
    if pointer.is_null() || !pointer.is_aligned() {
        Err(Refused(HEAPTAP_STATUS_NULL))
    } else {
        Ok(())
    }
}

/// Writes a result.
///
/// # Safety
/// If not NULL and aligned, it points to room for a `T`.
pub(crate) unsafe fn write<T>(to: *mut T, value: T) -> Result<(), Refused> {
    check(to)?;
    // SAFETY: not NULL, aligned, and by the caller's promise room for it.
    unsafe { to.write(value) };
    Ok(())
}

/// The bytes of a C string; none for NULL.
///
/// # Safety
/// If not NULL, it points to a string that ends with a NUL.
pub(crate) unsafe fn optional_bytes(string: *const c_char) -> Vec<u8> {
    if string.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(string) }.to_bytes().to_vec()
}

/// The bytes of a C string that must be there.
///
/// # Safety
/// As for [`optional_bytes`].
pub(crate) unsafe fn bytes(string: *const c_char) -> Result<Vec<u8>, Refused> {
    check(string)?;
    // SAFETY: the caller's promise.
    Ok(unsafe { optional_bytes(string) })
}
