//! What `/proc` says of a process.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// A process, and not another that has its number later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub(crate) pid: u32,
    /// When it began, in clock ticks since the machine did.
    pub(crate) began: u64,
}

/// What system calls a process may make (seccomp(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFilter {
    /// All of them.
    None,
    /// A filter decides.
    Some,
    /// Reading, writing and ending only.
    Strict,
}

impl Process {
    /// The running process with this number.
    pub fn of(pid: u32) -> Option<Process> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The second field, in parentheses, may contain anything: proc(5).
        let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
        let mut fields = std::str::from_utf8(stat.get(after_name..)?).ok()?.split_whitespace();
        // One that has ended, but whose parent has not asked for its status, does not run.
        let is_running = !matches!(fields.next()?, "Z" | "X");
        let began = fields.nth(22 - 4)?.parse().ok()?;
        is_running.then_some(Process { pid, began })
    }

    /// Its number.
    pub fn pid(self) -> u32 {
        self.pid
    }

    /// What the kernel calls it: the first bytes of its program's name, unless it has chosen
    /// another.
    pub fn name(self) -> OsString {
        let name = fs::read(self.file("comm")).unwrap_or_default();
        OsString::from_vec(name.trim_ascii_end().to_vec())
    }

    /// The name of its program's file.
    pub fn program(self) -> Option<String> {
        let path = fs::read_link(self.file("exe")).ok()?;
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some(name.strip_suffix(" (deleted)").map(str::to_owned).unwrap_or(name))
    }

    /// Its effective user.
    pub fn user(self) -> Option<u32> {
        fs::metadata(self.file("")).ok().map(|found| found.uid())
    }

    /// Whether it has not ended.
    pub fn is_running(self) -> bool {
        Process::of(self.pid) == Some(self)
    }

    /// When it began, in microseconds since the epoch.
    pub fn began_us(self) -> Option<u64> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let booted = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
        let seconds: u64 = booted.trim().parse().ok()?;
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        Some(seconds.checked_mul(1_000_000)? + self.began.checked_mul(1_000_000)? / ticks)
    }

    /// The files that it has open for writing; `None` if they cannot be seen.
    pub(crate) fn written_files(self) -> Option<impl Iterator<Item = Metadata>> {
        let links = fs::read_dir(self.file("fd")).ok()?.flatten().map(|entry| entry.path());
        // The mode of the link is that in which the file is open: proc(5).
        let written = links
            .filter(|link| fs::symlink_metadata(link).is_ok_and(|found| found.mode() & 0o200 != 0));
        Some(written.filter_map(|link| fs::metadata(link).ok()))
    }

    /// A variable of its environment, if that can be read.
    pub(crate) fn variable(self, name: &str) -> Option<OsString> {
        let environment = fs::read(self.file("environ")).ok()?;
        let mut entries = environment.split(|byte| *byte == 0);
        let value =
            entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        Some(OsString::from_vec(value.to_vec()))
    }

    /// Its root directory, as seen from here, if its file names do not mean what ours do: it runs in a
    /// container, or has changed its root.
    pub fn other_root(self) -> Option<PathBuf> {
        let place = |process: &str| {
            let root = fs::metadata(format!("/proc/{process}/root/.")).ok()?;
            let namespace = fs::metadata(format!("/proc/{process}/ns/mnt")).ok()?;
            Some((namespace.dev(), namespace.ino(), root.dev(), root.ino()))
        };
        let theirs = place(&self.pid.to_string())?;
        (place("self") != Some(theirs)).then(|| self.file("root"))
    }

    /// Whether a file of such a name is mapped into it; false if that cannot be seen.
    pub fn has_mapped(self, name: &str) -> bool {
        let maps = fs::read(self.file("maps")).unwrap_or_default();
        let mut names = maps.split(|&byte| byte == b'\n').filter_map(|line| {
            let path = line.splitn(2, |&byte| byte == b'/').nth(1)?;
            path.rsplit(|&byte| byte == b'/').next()
        });
        names.any(|file| file.starts_with(name.as_bytes()))
    }

    /// Whether a thread of it has a filter of system calls (seccomp), and whether one may make almost none.
    pub fn call_filter(self) -> CallFilter {
        let threads = fs::read_dir(self.file("task")).into_iter().flatten().flatten();
        let mode = |thread: fs::DirEntry| {
            let status = fs::read_to_string(thread.path().join("status")).ok()?;
            let line = status.lines().find_map(|line| line.strip_prefix("Seccomp:"))?;
            line.trim().parse().ok()
        };
        let modes: Vec<u32> = threads.filter_map(mode).collect();
        match (modes.contains(&1), modes.contains(&2)) {
            (true, _) => CallFilter::Strict,
            (false, true) => CallFilter::Some,
            (false, false) => CallFilter::None,
        }
    }

    /// Its number in its own namespace: the last one of `NSpid` (proc(5)).
    pub(crate) fn innermost_pid(self) -> u32 {
        let status = fs::read_to_string(self.file("status")).unwrap_or_default();
        let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        ids.and_then(|ids| ids.split_whitespace().last()?.parse().ok()).unwrap_or(self.pid)
    }

    /// A file of its folder in `/proc`.
    pub(crate) fn file(self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}", self.pid)).join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::tests::now_us;

    #[test]
    fn a_process_began_before_now_and_after_the_machine() {
        let process = Process::of(std::process::id()).unwrap();
        let began = process.began_us().unwrap();
        assert!(began <= now_us() + 2_000_000 && began + 86_400_000_000 > now_us(), "{began}");
        assert_eq!(Process::of(u32::MAX), None);
        assert_ne!(process.call_filter(), CallFilter::Strict);
        assert_eq!(process.other_root(), None);
        assert!(process.has_mapped("libc") && !process.has_mapped("no such library"));
    }
}
