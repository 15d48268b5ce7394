//! Limits on the memory and the open files of the process, which tracing must not use up.
//!
//! A program that runs under `ulimit -v`, `-d` or `-n` may have no more room than it needs
//! itself. Tracing would take a part of it, and the program would die of a lack of memory, or
//! fail to open its own files, for which it has room without us. So a program with little room
//! left is not traced.
//!
//! Before `main`, or when a runtime starts.

use std::fmt;

/// A limit, and how much of what it limits tracing takes.
struct Limit {
    resource: libc::__rlimit_resource_t,
    /// What sets it in a shell.
    command: &'static str,
    /// What the process lacks if it is too tight.
    lacks: &'static str,
    /// The unit of the command.
    unit: u64,
    /// From here on there is no need to look at what is in use.
    usual: u64,
    used: fn() -> Option<u64>,
    /// The most that a session takes.
    needed: u64,
}

/// Measured: 158 MiB of addresses, of which 128 are for the C library's arena of the writer
/// thread (`HEAP_MAX_SIZE` in malloc/arena.c, glibc 2.36, and as much again to align it), and
/// 54 MiB of data at rate 1. Descriptors: trace, sidecar, journal, socket, two clients, a
/// snapshot, and a file with debug information.
const LIMITS: [Limit; 3] = [
    Limit {
        resource: libc::RLIMIT_AS,
        command: "ulimit -v",
        lacks: "too little memory",
        unit: 1 << 10,
        usual: u64::MAX,
        used: || memory(0),
        needed: 160 << 20,
    },
    Limit {
        resource: libc::RLIMIT_DATA,
        command: "ulimit -d",
        lacks: "too little memory",
        unit: 1 << 10,
        usual: u64::MAX,
        used: || memory(5),
        needed: 56 << 20,
    },
    Limit {
        resource: libc::RLIMIT_NOFILE,
        command: "ulimit -n",
        lacks: "too few descriptors",
        unit: 1,
        usual: 1024,
        used: descriptors,
        needed: 8,
    },
];

/// Tracing may take this part of what is left: a quarter.
const SHARE: u64 = 4;

/// A limit that leaves too little.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TightLimit {
    command: &'static str,
    lacks: &'static str,
    /// In the unit of the command.
    limit: u64,
    /// The limit with which the program would be traced.
    enough: u64,
}

impl fmt::Display for TightLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TightLimit { command, lacks, limit, enough } = self;
        write!(f, "{command} {limit} leaves {lacks} for tracing: set it to {enough} or more")
    }
}

/// The first limit that leaves too little, if any.
pub(super) fn too_tight() -> Option<TightLimit> {
    LIMITS.iter().find_map(|limit| {
        let soft = soft_limit(limit.resource).filter(|&soft| soft < limit.usual)?;
        limit.check(soft, (limit.used)()?)
    })
}

impl Limit {
    fn check(&self, limit: u64, used: u64) -> Option<TightLimit> {
        let &Limit { command, lacks, unit, .. } = self;
        let enough = used.saturating_add(self.needed * SHARE);
        let tight = TightLimit { command, lacks, limit: limit / unit, enough: enough / unit };
        (limit < enough).then_some(tight)
    }
}

/// The bytes of the pages in use, by a field of `/proc/self/statm` (proc(5)).
fn memory(field: usize) -> Option<u64> {
    bytes(&std::fs::read_to_string("/proc/self/statm").ok()?, field)
}

fn bytes(statm: &str, field: usize) -> Option<u64> {
    const PAGE: u64 = 4096;
    let pages: u64 = statm.split_whitespace().nth(field)?.parse().ok()?;
    Some(pages * PAGE)
}

/// How many descriptors are open; the three that every program has, if it is not known.
fn descriptors() -> Option<u64> {
    let open = std::fs::read_dir("/proc/self/fd");
    Some(open.map_or(3, |open| (open.count() as u64).saturating_sub(1)))
}

/// The limit; `None` if there is none.
fn soft_limit(resource: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: getrlimit writes one `rlimit`, which is on this stack.
    let failed = unsafe { libc::getrlimit(resource, &raw mut limit) };
    (failed == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_what_is_left_must_be_enough() {
        let [addresses, ..] = &LIMITS;
        // 4096 pages are 16 MiB; four times 160 MiB must be left beside them.
        let used = bytes("4096 600 500 80 0 300 0\n", 0).unwrap();
        assert_eq!(addresses.check(656 << 20, used), None);
        let tight = addresses.check((656 << 20) - 1, used).unwrap();
        assert_eq!((tight.limit, tight.enough), (671_743, 671_744));
        assert!(tight.to_string().starts_with("ulimit -v 671743 leaves too little"), "{tight}");
        assert_eq!(bytes("", 0), None);
    }

    #[test]
    fn a_quarter_of_the_descriptors_that_are_left_must_be_enough() {
        let [.., descriptors] = &LIMITS;
        assert_eq!(descriptors.check(35, 3), None);
        let few = descriptors.check(34, 3).unwrap();
        assert_eq!((few.limit, few.enough), (34, 35));
        assert!(few.to_string().starts_with("ulimit -n 34 leaves too few"), "{few}");
    }

    #[test]
    fn this_process_has_room() {
        assert_eq!(too_tight(), None);
        assert!(memory(0).is_some() && memory(5).is_some());
    }

    #[test]
    fn open_descriptors_are_counted() {
        assert!(descriptors().is_some_and(|open| open >= 3));
    }
}
