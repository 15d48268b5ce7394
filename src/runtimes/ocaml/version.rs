//! Which OCaml it is: the release, and the major version on which the design of its
//! runtime depends.

/// The major version. Each has its own hooks and layouts, in `four` and `five`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MajorVersion {
    /// 4.12 to 4.14: threads share one heap.
    Four,
    /// 5.3 and later: each domain has a young heap.
    Five,
}

/// A release, such as 4.14.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")),
    allow(dead_code, reason = "nothing is attached to there")
)]
pub(crate) struct Release {
    pub(crate) major: MajorVersion,
    pub(crate) minor: u8,
}

impl Release {
    /// Whether layouts keyed by release are all of one major version, the newest first.
    #[cfg_attr(
        not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")),
        allow(dead_code, reason = "nothing is attached to there")
    )]
    pub(crate) const fn are_newest_first<L>(layouts: &[(Release, L)], major: MajorVersion) -> bool {
        let mut index = 0;
        while index < layouts.len() {
            let release = layouts[index].0;
            if release.major as u8 != major as u8
                || index > 0 && release.minor >= layouts[index - 1].0.minor
            {
                return false;
            }
            index += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_of_one_major_version_and_newest_first() {
        let of = |major, minors: &[u8]| {
            let layouts: Vec<_> =
                minors.iter().map(|&minor| (Release { major, minor }, ())).collect();
            Release::are_newest_first(&layouts, MajorVersion::Five)
        };
        assert!(of(MajorVersion::Five, &[4, 3]));
        assert!(!of(MajorVersion::Five, &[3, 4]));
        assert!(!of(MajorVersion::Five, &[3, 3]));
        assert!(!of(MajorVersion::Four, &[3]));
    }
}
