//! Structs that grow: they start with their size and end with reserved bytes.
//!
//! A host passes the size it was compiled with, so that host and library may be of
//! different versions. A struct grows by turning reserved bytes into fields, or by
//! appending fields; zero must mean what the library did before. The offsets of
//! fields that were released never change (`layout`).
//!
//! | | host older than the library | host newer than the library |
//! |---|---|---|
//! | the library reads | the missing tail is zero | the unknown tail must be zero |
//! | the library writes | no more than the host's size | what it knows; `size` says how much |

use std::mem::MaybeUninit;

use crate::abi::pointer::check;
use crate::abi::status::{HEAPTAP_STATUS_RESERVED, HEAPTAP_STATUS_SIZE, Refused};

/// A struct that starts with its size and ends with reserved bytes.
///
/// # Safety
/// It is `repr(C)`, starts with a `usize`, has no padding, and any bytes that the
/// header allows, all zeros among them, are a valid value.
pub(crate) unsafe trait VersionedStruct: Copy {
    /// The size of its first version: a literal, which never changes.
    const FIRST_SIZE: usize;

    /// The value in which all bytes are zero.
    // SAFETY: whoever implements the trait guarantees that zeros are a valid value.
    const ZERO: Self = unsafe { MaybeUninit::zeroed().assume_init() };

    /// Whether the reserved bytes are zero.
    fn reserved_is_zero(&self) -> bool;
}

/// No version of any struct is larger: a larger size was never set.
const LARGEST: usize = 4096;

/// The size that the host has put at the start of the struct.
///
/// # Safety
/// If `pointer` is not NULL and aligned, it points to the struct's size.
unsafe fn size_of_host<T: VersionedStruct>(pointer: *const T) -> Result<usize, Refused> {
    check(pointer)?;
    // SAFETY: not NULL, aligned, and the caller guarantees that the size is there.
    let size = unsafe { pointer.cast::<usize>().read() };
    if (T::FIRST_SIZE..=LARGEST).contains(&size) {
        Ok(size)
    } else {
        Err(Refused(HEAPTAP_STATUS_SIZE))
    }
}

/// Reads a struct, of which an older host may have only the beginning.
///
/// # Safety
/// If `from` is not NULL and aligned, it points to as many bytes as its first field
/// says.
pub(crate) unsafe fn read_versioned<T: VersionedStruct>(from: *const T) -> Result<T, Refused> {
    // SAFETY: `from` is NULL, misaligned or points to a struct, whose size is first.
    let size = unsafe { size_of_host(from) }?;
    // SAFETY: the caller guarantees `size` bytes.
    let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), size) };
    let (known, unknown) = bytes.split_at(size.min(size_of::<T>()));
    if unknown.iter().any(|&byte| byte != 0) {
        return Err(Refused(HEAPTAP_STATUS_RESERVED));
    }
    let mut value = T::ZERO;
    // SAFETY: `known` is no longer than a `T`, and holds the bytes of one as
    // `VersionedStruct` requires; the rest of `value` stays zero.
    unsafe {
        std::ptr::copy_nonoverlapping(known.as_ptr(), (&raw mut value).cast(), known.len());
    }
    if value.reserved_is_zero() { Ok(value) } else { Err(Refused(HEAPTAP_STATUS_RESERVED)) }
}

/// Writes as much of `value` as the host's struct holds. The host's size becomes the
/// number of bytes that were written.
///
/// # Safety
/// If `to` is not NULL and aligned, it points to as many bytes as its first field
/// says, which the library may write.
pub(crate) unsafe fn write_versioned<T: VersionedStruct>(
    to: *mut T,
    value: &T,
) -> Result<(), Refused> {
    // SAFETY: `to` is NULL, misaligned or points to a struct, whose size is first.
    let written = unsafe { size_of_host(to) }?.min(size_of::<T>());
    // SAFETY: both structs have that many bytes; `value` is not the host's.
    unsafe {
        std::ptr::copy_nonoverlapping(std::ptr::from_ref(value).cast(), to.cast::<u8>(), written);
    }
    // SAFETY: the size is the first field of a struct that the library may write.
    unsafe { to.cast::<usize>().write(written) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A struct whose first version ended with `reserved`.
    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Grown {
        size: usize,
        first: u64,
        reserved: [u8; 8],
        /// In the second version only.
        added: u64,
    }

    // SAFETY: `repr(C)`, starts with its size, numbers only, no padding.
    unsafe impl VersionedStruct for Grown {
        const FIRST_SIZE: usize = 24;

        fn reserved_is_zero(&self) -> bool {
            self.reserved == [0; 8]
        }
    }

    /// What a host has in memory: its struct, and behind it something else.
    fn host(size: u64, first: u64, rest: [u64; 4]) -> [u64; 6] {
        [size, first, rest[0], rest[1], rest[2], rest[3]]
    }

    fn read(memory: &[u64; 6]) -> Result<Grown, Refused> {
        // SAFETY: the sizes used here are at most those of the array.
        unsafe { read_versioned(memory.as_ptr().cast()) }
    }

    fn write(memory: &mut [u64; 6], value: &Grown) -> Result<(), Refused> {
        // SAFETY: the sizes used here are at most those of the array.
        unsafe { write_versioned(memory.as_mut_ptr().cast(), value) }
    }

    #[test]
    fn what_an_older_host_does_not_have_is_read_as_zero() {
        let old = host(24, 7, [0, u64::MAX, u64::MAX, u64::MAX]);
        assert_eq!(read(&old), Ok(Grown { size: 24, first: 7, reserved: [0; 8], added: 0 }));
        let same = host(32, 7, [0, 9, u64::MAX, u64::MAX]);
        assert_eq!(read(&same), Ok(Grown { size: 32, first: 7, reserved: [0; 8], added: 9 }));
    }

    #[test]
    fn what_only_a_newer_host_knows_must_be_zero() {
        let unused = host(48, 7, [0, 9, 0, 0]);
        assert_eq!(read(&unused).map(|grown| grown.added), Ok(9));
        for used in [host(48, 7, [0, 9, 1, 0]), host(48, 7, [0, 9, 0, 1 << 63])] {
            assert_eq!(read(&used), Err(Refused(HEAPTAP_STATUS_RESERVED)));
        }
        assert_eq!(read(&host(32, 7, [1, 9, 0, 0])), Err(Refused(HEAPTAP_STATUS_RESERVED)));
    }

    #[test]
    fn an_older_host_is_written_no_more_than_it_has() {
        let value = Grown { size: 0, first: 7, reserved: [0; 8], added: 9 };
        let mut old = host(24, 1, [1, 2, 3, 4]);
        assert_eq!(write(&mut old, &value), Ok(()));
        assert_eq!(old, host(24, 7, [0, 2, 3, 4]));
        let mut same = host(32, 1, [1, 2, 3, 4]);
        assert_eq!(write(&mut same, &value), Ok(()));
        assert_eq!(same, host(32, 7, [0, 9, 3, 4]));
    }

    #[test]
    fn a_newer_host_learns_how_much_was_written() {
        let value = Grown { size: 0, first: 7, reserved: [0; 8], added: 9 };
        let mut newer = host(48, 1, [1, 2, 3, 4]);
        assert_eq!(write(&mut newer, &value), Ok(()));
        assert_eq!(newer, host(32, 7, [0, 9, 3, 4]));
    }

    #[test]
    fn sizes_of_no_version_are_refused() {
        for size in [0, 1, 8, 23, 4097, u64::MAX] {
            let mut memory = host(size, 1, [0; 4]);
            let before = memory;
            assert_eq!(read(&memory), Err(Refused(HEAPTAP_STATUS_SIZE)), "{size}");
            let written = write(&mut memory, &Grown::ZERO);
            assert_eq!(written, Err(Refused(HEAPTAP_STATUS_SIZE)), "{size}");
            assert_eq!(memory, before);
        }
    }
}
