//! The limit on open files, which tracing must not use up.
//!
//! A program that runs under a low `ulimit -n` may need every descriptor itself. The trace,
//! its sidecar, the report and the socket take some, and the program could not open its own
//! files any more. So a program with few descriptors left is not traced.
//!
//! Before `main`, or when a runtime starts.

use std::fmt;

use super::memory_limit::soft_limit;

/// The most descriptors at a time: trace, sidecar, report, socket, two clients, a snapshot,
/// and a file with debug information.
const NEEDED: u64 = 8;

/// Tracing may take this part of what is left: a quarter.
const SHARE: u64 = 4;

/// A limit that leaves too few descriptors.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FewDescriptors {
    limit: u64,
    /// The limit with which the program would be traced.
    enough: u64,
}

impl fmt::Display for FewDescriptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FewDescriptors { limit, enough } = self;
        write!(
            f,
            "ulimit -n {limit} leaves too few descriptors for tracing: set it to {enough} or more"
        )
    }
}

/// The limit, if it leaves too few.
pub(super) fn too_tight() -> Option<FewDescriptors> {
    let limit = soft_limit(libc::RLIMIT_NOFILE)?;
    // Usual limits need no look at what is open.
    if limit >= 1024 { None } else { check(limit, open_descriptors()) }
}

fn check(limit: u64, open: u64) -> Option<FewDescriptors> {
    let enough = open + NEEDED * SHARE;
    (limit < enough).then_some(FewDescriptors { limit, enough })
}

/// How many descriptors are open; the three that every program has, if it is not known.
fn open_descriptors() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(3, |open| (open.count() as u64).saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_what_is_left_must_be_enough() {
        assert_eq!(check(35, 3), None);
        let few = check(34, 3).unwrap();
        assert_eq!((few.limit, few.enough), (34, 35));
        assert!(few.to_string().starts_with("ulimit -n 34 leaves too few"), "{few}");
    }

    #[test]
    fn this_process_has_descriptors_left() {
        assert_eq!(too_tight(), None);
        assert!(open_descriptors() >= 3);
    }
}
