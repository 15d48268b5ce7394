//! What hosts hand in, checked.
//!
//! A pointer that is neither NULL nor misaligned is believed: nothing more can
//! be known about it. The header says for each what it must point to.

use std::ffi::{CStr, c_char};

use crate::abi::status::{
    HEAPTAP_STATUS_NULL, HEAPTAP_STATUS_RESERVED, HEAPTAP_STATUS_SIZE, Refused,
};

/// A struct that begins with its size and ends with reserved bytes.
///
/// # Safety
/// It is `repr(C)`, begins with a `usize`, and any bytes are a valid value.
pub(crate) unsafe trait VersionedStruct: Copy {
    /// The smallest size there ever was.
    const FIRST_SIZE: usize;

    /// What a host that knows less leaves out.
    const ZERO: Self;

    /// Whether the reserved bytes are zero.
    fn reserved_is_zero(&self) -> bool;
}

/// The struct at `from`, of which an older host may have only the beginning.
///
/// # Safety
/// If not NULL and aligned, it points to as many bytes as its first field says.
pub(crate) unsafe fn read_versioned<T: VersionedStruct>(from: *const T) -> Result<T, Refused> {
    check(from)?;
    // SAFETY: it begins with its size, as the caller promises.
    let size = unsafe { from.cast::<usize>().read() };
    if !(T::FIRST_SIZE..=4096).contains(&size) {
        return Err(Refused(HEAPTAP_STATUS_SIZE));
    }
    let mut value = T::ZERO;
    let known = size.min(size_of::<T>());
    // SAFETY: both have that many bytes, and any bytes are a valid value.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut value).cast(), known) };
    // A newer host may use what we do not know of.
    for at in known..size {
        // SAFETY: within the struct, whose size the host gave.
        let place = unsafe { from.cast::<u8>().add(at) };
        // SAFETY: as above.
        if unsafe { place.read() } != 0 {
            return Err(Refused(HEAPTAP_STATUS_RESERVED));
        }
    }
    if value.reserved_is_zero() { Ok(value) } else { Err(Refused(HEAPTAP_STATUS_RESERVED)) }
}

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
