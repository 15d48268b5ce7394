//! Pointers from the host: checks, strings and results.
//!
//! NULL and misaligned pointers are refused. Nothing more can be found out about a
//! pointer: the header says what each must point to.

use std::ffi::{CStr, c_char};

use crate::abi::status::{HEAPTAP_STATUS_NULL, Refused};

/// Refuses NULL and misaligned pointers.
pub(crate) fn check<T>(pointer: *const T) -> Result<(), Refused> {
    if pointer.is_null() || !pointer.is_aligned() {
        Err(Refused(HEAPTAP_STATUS_NULL))
    } else {
        Ok(())
    }
}

/// Writes a result to the host.
///
/// # Safety
/// If not NULL and aligned, it points to room for a `T`.
pub(crate) unsafe fn write<T>(to: *mut T, value: T) -> Result<(), Refused> {
    check(to)?;
    // SAFETY: not NULL, aligned, and this function requires room for a `T` there.
    unsafe { to.write(value) };
    Ok(())
}

/// The bytes of a C string. NULL counts as empty.
///
/// # Safety
/// If not NULL, it points to a string that ends with a NUL.
pub(crate) unsafe fn optional_bytes(string: *const c_char) -> Vec<u8> {
    if string.is_null() {
        return Vec::new();
    }
    // SAFETY: this function requires a string that ends with a NUL.
    unsafe { CStr::from_ptr(string) }.to_bytes().to_vec()
}

/// The bytes of a C string that is required.
///
/// # Safety
/// If not NULL, it points to a string that ends with a NUL.
pub(crate) unsafe fn bytes(string: *const c_char) -> Result<Vec<u8>, Refused> {
    check(string)?;
    // SAFETY: this function requires a string that ends with a NUL.
    Ok(unsafe { optional_bytes(string) })
}
