//! Limits on the memory of the process, which tracing must not use up.
//!
//! A program that runs under `ulimit -v` or `ulimit -d` may have no more room than it
//! needs itself. Tracing would take a part of it, and the program would die of a lack
//! of memory that it has without us. So a program with little room left is not traced.
//!
//! Before `main`, or when a runtime starts.

use std::fmt;

/// A limit, and how much of what it limits tracing takes.
struct Limit {
    resource: libc::__rlimit_resource_t,
    /// What sets it in a shell.
    command: &'static str,
    /// Which field of `/proc/self/statm` has the pages in use (proc(5)).
    field: usize,
    /// The most that a session takes. Measured: 158 MiB of addresses,
    /// of which 128 are for the C library's arena of the writer thread (`HEAP_MAX_SIZE` in
    /// malloc/arena.c, glibc 2.36, and as much again to align it), and 54 MiB of data at rate 1.
    needed: u64,
}

const LIMITS: [Limit; 2] = [
    Limit { resource: libc::RLIMIT_AS, command: "ulimit -v", field: 0, needed: 160 << 20 },
    Limit { resource: libc::RLIMIT_DATA, command: "ulimit -d", field: 5, needed: 56 << 20 },
];

/// Tracing may take this part of what is left: a quarter.
const SHARE: u64 = 4;

const PAGE: u64 = 4096;

/// A limit that leaves too little memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LittleMemory {
    command: &'static str,
    /// In KiB, the unit of the command.
    limit: u64,
    /// The limit with which the program would be traced, in KiB.
    enough: u64,
}

impl fmt::Display for LittleMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LittleMemory { command, limit, enough } = self;
        write!(
            f,
            "{command} {limit} leaves too little memory for tracing: set it to {enough} or more"
        )
    }
}

/// The first limit that leaves too little, if any.
pub(super) fn too_tight() -> Option<LittleMemory> {
    LIMITS.iter().find_map(|limit| limit.check(soft_limit(limit.resource)?, &statm()?))
}

impl Limit {
    fn check(&self, limit: u64, statm: &str) -> Option<LittleMemory> {
        let pages: u64 = statm.split_whitespace().nth(self.field)?.parse().ok()?;
        let enough = (pages * PAGE).saturating_add(self.needed * SHARE);
        let tight =
            LittleMemory { command: self.command, limit: limit >> 10, enough: enough >> 10 };
        (limit < enough).then_some(tight)
    }
}

fn statm() -> Option<String> {
    std::fs::read_to_string("/proc/self/statm").ok()
}

/// The limit; `None` if there is none.
pub(super) fn soft_limit(resource: libc::__rlimit_resource_t) -> Option<u64> {
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
        let limit = &LIMITS[0];
        // 4096 pages are 16 MiB; four times 160 MiB must be left beside them.
        let statm = "4096 600 500 80 0 300 0\n";
        assert_eq!(limit.check(656 << 20, statm), None);
        let tight = limit.check((656 << 20) - 1, statm).unwrap();
        assert_eq!((tight.limit, tight.enough), (671_743, 671_744));
        assert!(tight.to_string().starts_with("ulimit -v 671743 leaves too little"), "{tight}");
        assert_eq!(limit.check(25_000 << 10, "").map(|tight| tight.limit), None);
    }

    #[test]
    fn this_process_has_room() {
        assert_eq!(too_tight(), None);
        assert!(statm().unwrap().split_whitespace().count() > LIMITS[1].field);
    }
}
