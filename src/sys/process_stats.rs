//! What the system says of this process: memory, threads, and the limits of its control groups
//! (version 1 and 2). On threads of ours, ten times a second: a few short files, some 20 µs.
//! Never `smaps_rollup`, which takes 16 ms for half a gigabyte.

use std::fs;
use std::path::{Path, PathBuf};

use heaptap_probes::System;

/// Limits, and what could be dropped at once, are read every so many readings.
const SELDOM: u64 = 10;

/// A control group with a memory limit.
struct Group {
    folder: PathBuf,
    names: &'static Names,
    limit: u64,
    /// Pages of files that nobody has used for a while.
    inactive_file: u64,
}

/// The files of a control group.
struct Names {
    usage: &'static str,
    limit: &'static str,
    inactive: &'static str,
}

static V1: Names = Names {
    usage: "memory.usage_in_bytes",
    limit: "memory.limit_in_bytes",
    inactive: "total_inactive_file",
};
static V2: Names =
    Names { usage: "memory.current", limit: "memory.max", inactive: "inactive_file" };

/// Limits at least this high are none: version 1 has a number of pages that fits a `long`.
const NO_LIMIT: u64 = 1 << 62;

/// Reads what the system says of this process. Made once, since finding the groups takes longer.
pub(crate) struct ProcessStats {
    page: u64,
    /// The folders of this process's group and those above it.
    folders: Vec<(PathBuf, &'static Names)>,
    /// The one with the lowest limit.
    group: Option<Group>,
    /// How often its usage was read.
    readings: u64,
}

/// The memory of a control group, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupUsage {
    /// Less what the system could drop at once.
    pub(crate) usage: u64,
    pub(crate) limit: u64,
}

impl ProcessStats {
    pub(crate) fn new() -> ProcessStats {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        ProcessStats {
            page: page_size(),
            folders: folders(&groups, Path::new("/sys/fs/cgroup")),
            group: None,
            readings: 0,
        }
    }

    /// The figures now.
    pub(crate) fn read(&mut self) -> System {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let (threads, pages) = parse_stat(&stat);
        let group = self.group_usage();
        System {
            rss: pages.map(|pages| pages.saturating_mul(self.page)),
            cgroup_usage: group.map(|group| group.usage),
            cgroup_limit: group.map(|group| group.limit),
            threads,
            domains: None,
        }
    }

    /// What has the lowest limit of all groups. `None` if there is no limit.
    pub(crate) fn group_usage(&mut self) -> Option<GroupUsage> {
        if self.readings.is_multiple_of(SELDOM) {
            self.group =
                self.folders.iter().filter_map(Group::read).min_by_key(|group| group.limit);
        }
        self.readings += 1;
        self.group.as_ref().and_then(Group::usage)
    }
}

impl Group {
    /// `None` if it has no limit.
    fn read((folder, names): &(PathBuf, &'static Names)) -> Option<Group> {
        let limit = number(&folder.join(names.limit)).filter(|&limit| limit < NO_LIMIT)?;
        let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let line = stat.lines().find_map(|line| line.strip_prefix(names.inactive));
        let inactive_file = line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0);
        Some(Group { folder: folder.clone(), names, limit, inactive_file })
    }

    fn usage(&self) -> Option<GroupUsage> {
        let usage = number(&self.folder.join(self.names.usage))?;
        Some(GroupUsage { usage: usage.saturating_sub(self.inactive_file), limit: self.limit })
    }
}

/// The folders of the groups in `/proc/self/cgroup`, from the innermost outward.
fn folders(groups: &str, mounted: &Path) -> Vec<(PathBuf, &'static Names)> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(id), Some(kinds), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (root, names) = if id == "0" && kinds.is_empty() {
            (mounted.to_owned(), &V2)
        } else if kinds.split(',').any(|kind| kind == "memory") {
            (mounted.join("memory"), &V1)
        } else {
            continue;
        };
        let inside = Path::new(path.trim_start_matches('/'));
        // Inside a container the path may be that of the host, where only the root is mounted.
        found.extend(inside.ancestors().map(|group| (root.join(group), names)));
    }
    found
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Threads and resident pages: fields 20 and 24. The second field, in parentheses, may contain
/// anything (proc(5)).
fn parse_stat(stat: &str) -> (Option<u64>, Option<u64>) {
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let field = |number: usize| fields.split_whitespace().nth(number - 3)?.parse().ok();
    (field(20), field(24))
}

#[allow(unsafe_code, reason = "calls sysconf")]
fn page_size() -> u64 {
    // SAFETY: sysconf takes and returns numbers.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4_096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_threads() {
        let system = ProcessStats::new().read();
        assert!(system.rss.unwrap() > 100_000);
        assert!(system.threads.unwrap() >= 1);
    }

    #[test]
    fn a_name_with_parentheses_is_no_field() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 5 0 100 4096 321 184467";
        assert_eq!(parse_stat(stat), (Some(5), Some(321)));
        assert_eq!(parse_stat("7 (cut"), (None, None));
    }

    #[test]
    fn the_lowest_limit_of_all_groups_above_counts() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("outer/inner");
        fs::create_dir_all(&inner).unwrap();
        for (folder, limit) in [(dir.path().join("outer"), "1000\n"), (inner, "max\n")] {
            fs::write(folder.join("memory.max"), limit).unwrap();
            fs::write(folder.join("memory.current"), "700\n").unwrap();
            fs::write(folder.join("memory.stat"), "anon 5\ninactive_file 100\n").unwrap();
        }
        let mut stats = ProcessStats::new();
        stats.folders = folders("0::/outer/inner\n", dir.path());
        let system = stats.read();
        assert_eq!((system.cgroup_usage, system.cgroup_limit), (Some(600), Some(1_000)));
        fs::write(dir.path().join("outer/memory.current"), "1050\n").unwrap();
        assert_eq!(stats.group_usage(), Some(GroupUsage { usage: 950, limit: 1_000 }));
    }

    #[test]
    fn groups_of_version_1_are_found() {
        let folders = folders("5:cpu:/x\n4:rdma,memory:/a\n", Path::new("/sys/fs/cgroup"));
        let names: Vec<_> = folders.iter().map(|(folder, _)| folder.to_str().unwrap()).collect();
        assert_eq!(names, ["/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/memory/"]);
    }
}
