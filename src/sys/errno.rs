//! `errno` belongs to the host: a hook that makes a system call gives it back as
//! it was.
#![allow(unsafe_code, reason = "reads and writes the C library's errno")]

/// Restores this thread's `errno` when dropped.
pub(crate) struct KeepErrno {
    value: i32,
}

impl KeepErrno {
    /// Notes `errno` as it is now.
    pub(crate) fn new() -> Self {
        Self { value: get() }
    }
}

impl Drop for KeepErrno {
    fn drop(&mut self) {
        // SAFETY: takes nothing; the C library gives every thread its place.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: the place is this thread's own and lives as long as it does.
        unsafe { *place = self.value };
    }
}

/// This thread's `errno`.
pub(crate) fn get() -> i32 {
    // SAFETY: takes nothing; the C library gives every thread its place.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the place is this thread's own and lives as long as it does.
    unsafe { *place }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_call_in_between_leaves_no_mark() {
        // SAFETY: closing a descriptor that cannot exist does nothing.
        unsafe { libc::close(-1) };
        assert_eq!(get(), libc::EBADF);
        {
            let _keep = KeepErrno::new();
            // SAFETY: asks about an impossible process group; changes nothing.
            unsafe { libc::getpgid(-1) };
            assert_ne!(get(), libc::EBADF);
        }
        assert_eq!(get(), libc::EBADF);
    }
}
