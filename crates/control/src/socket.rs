//! The control socket of a process: where it is, and its limits.
//!
//! The plugin listens on one socket in each process, `PID.sock`, in a directory that
//! only its user can enter. Clients find it by the process id.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The variable of the user's runtime directory (XDG Base Directory Specification).
pub const RUNTIME_DIRECTORY: &str = "XDG_RUNTIME_DIR";

/// The most bytes of a line in either direction, without the newline at its end.
pub const MAX_LINE: usize = 16_384;

/// The longest that the plugin waits for a client's line, or for a client that does not
/// read its answer.
pub const CLIENT_SECONDS: u64 = 5;

/// How often a client that waits gets a line, in seconds.
pub const PROGRESS_SECONDS: u64 = 1;

/// Below the user's runtime directory.
pub fn in_runtime_directory(directory: &Path) -> PathBuf {
    directory.join("heaptap")
}

/// For a user without a runtime directory.
pub fn in_tmp(uid: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/heaptap-{uid}"))
}

/// The socket's name in its directory.
pub fn name(pid: u32) -> String {
    format!("{pid}.sock")
}

/// The process whose socket has this name.
pub fn pid_of(name: &OsStr) -> Option<u32> {
    let pid: u32 = name.to_str()?.strip_suffix(".sock")?.parse().ok()?;
    (name == OsStr::new(&self::name(pid))).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_named_after_its_process() {
        assert_eq!(pid_of(OsStr::new(&name(4711))), Some(4711));
        for name in ["sock", ".sock", "x.sock", "+1.sock", "01.sock", "1.sock.new", "1"] {
            assert_eq!(pid_of(OsStr::new(name)), None, "{name}");
        }
        assert_eq!(in_tmp(1000), Path::new("/tmp/heaptap-1000"));
        assert_eq!(
            in_runtime_directory(Path::new("/run/user/0")),
            Path::new("/run/user/0/heaptap")
        );
    }
}
