//! What `/proc/PID` says about a process.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::maps::number;

/// `PF_KTHREAD` (`include/linux/sched.h`): a thread of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// `/proc/PID/stat` and `/proc/PID/status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) state: u8,
    pub(crate) is_kernel_thread: bool,
    /// In clock ticks since boot: with the number, this names a process for ever.
    pub(crate) start: u64,
    /// Who traces it, in our namespace; 0 for nobody.
    pub(crate) tracer: u64,
    /// Its number in its own namespace.
    pub(crate) own_pid: u64,
    /// The process it is a thread of.
    pub(crate) group: u64,
    /// Real, effective, saved user.
    pub(crate) users: [u64; 3],
}

impl Process {
    /// `None` if there is no such process.
    pub(crate) fn read(pid: libc::pid_t) -> Option<Process> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let status = fs::read(format!("/proc/{pid}/status")).ok()?;
        Process::parse(&stat, &status)
    }

    fn parse(stat: &[u8], status: &[u8]) -> Option<Process> {
        // The second field is a name in parentheses, which may hold anything.
        let after = stat.iter().rposition(|&byte| byte == b')')? + 2;
        let fields: Vec<&[u8]> = stat.get(after..)?.split(|&byte| byte == b' ').collect();
        let field = |number: usize| fields.get(number - 3).copied();
        let line = |name: &[u8]| {
            let value = status
                .split(|&byte| byte == b'\n')
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(b":"));
            value.map(<[u8]>::trim_ascii)
        };
        let numbers = |name: &[u8]| -> Option<Vec<u64>> {
            let words = line(name)?.split(u8::is_ascii_whitespace);
            words.filter(|word| !word.is_empty()).map(|word| number(word, 10)).collect()
        };
        let users = numbers(b"Uid")?;
        Some(Process {
            state: *field(3)?.first()?,
            is_kernel_thread: number(field(9)?, 10)? & KERNEL_THREAD != 0,
            start: number(field(22)?, 10)?,
            tracer: *numbers(b"TracerPid")?.first()?,
            own_pid: *numbers(b"NSpid")?.last()?,
            group: *numbers(b"Tgid")?.first()?,
            users: *users.first_chunk()?,
        })
    }

    pub(crate) fn is_zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// The name of a process for messages, if it has one.
pub(crate) fn name_of(pid: u64) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii()).escape_debug().collect())
}

/// The inode that names a namespace of a process.
pub(crate) fn namespace(pid: &str, kind: &str) -> Option<u64> {
    let path = Path::new("/proc").join(pid).join("ns").join(kind);
    fs::metadata(path).ok().map(|metadata| metadata.ino())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAT: &str = "12 (a) b) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 4711 100 200";
    const STATUS: &str =
        "Name:\ta) b\nTgid:\t12\nTracerPid:\t9\nUid:\t1000\t0\t0\t0\nNSpid:\t12\t3\n";

    #[test]
    fn a_process_is_read() {
        let process = Process::parse(STAT.as_bytes(), STATUS.as_bytes()).expect("a process");
        let wanted = Process {
            state: b'S',
            is_kernel_thread: false,
            start: 4711,
            tracer: 9,
            own_pid: 3,
            group: 12,
            users: [1000, 0, 0],
        };
        assert_eq!(process, wanted);
    }

    #[test]
    fn this_process_is_read() {
        let pid = std::process::id();
        let process = Process::read(pid as libc::pid_t).expect("this process");
        assert_eq!((process.group, process.tracer), (u64::from(pid), 0));
        assert_eq!(process.own_pid, u64::from(pid));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_read_without_a_panic(stat in "[0-9() ]{0,80}", status in "(Uid|NSpid|Tgid)?:?[0-9\t\n -]{0,60}") {
            Process::parse(stat.as_bytes(), status.as_bytes());
        }
    }
}
