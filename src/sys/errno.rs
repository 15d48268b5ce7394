//! `errno` belongs to the host: a hook that makes a system call restores it.
#![allow(unsafe_code, reason = "reads and writes the C library's errno")]

/// Restores this thread's `errno` when dropped.
pub(crate) struct KeepErrno {
    value: i32,
}

impl KeepErrno {
    /// Saves the current `errno`.
    pub(crate) fn new() -> Self {
        Self { value: get() }
    }
}

impl Drop for KeepErrno {
    fn drop(&mut self) {
        // SAFETY: `location` is this thread's `errno`, valid to write.
        unsafe { location().write(self.value) };
    }
}

/// This thread's `errno`.
pub(crate) fn get() -> i32 {
    // SAFETY: `location` is this thread's `errno`, valid to read.
    unsafe { location().read() }
}

/// Where the C library keeps this thread's `errno`: valid to read and write on this
/// thread for as long as the thread lives (errno(3)).
fn location() -> *mut i32 {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::__errno_location() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errno_survives_a_failed_call() {
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
