//! The releases that a layout is known for.

use super::version::MajorVersion;

/// Releases that share a layout, such as 4.13 and 4.14.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Releases {
    major: MajorVersion,
    /// The minor numbers of the first and the last of them.
    first: u8,
    last: u8,
}

impl Releases {
    /// From one minor release to another, both included.
    pub(super) const fn new(major: MajorVersion, first: u8, last: u8) -> Releases {
        Releases { major, first, last }
    }

    /// Whether all of them are older than those, of the same major version.
    pub(super) const fn are_older_than(self, those: Releases) -> bool {
        self.major as u8 == those.major as u8 && self.first <= self.last && self.last < those.first
    }

    /// Whether both are the same releases: `==` is not `const`.
    pub(super) const fn are(self, those: Releases) -> bool {
        self.major as u8 == those.major as u8
            && self.first == those.first
            && self.last == those.last
    }

    /// Whether a release such as `4.14.1` or `5.3.0+dev1` is one of them.
    pub(super) fn contain(self, release: &str) -> bool {
        let major = match self.major {
            MajorVersion::Four => "4",
            MajorVersion::Five => "5",
        };
        let mut numbers = release.split('.');
        let is_major = numbers.next() == Some(major);
        let minor = numbers.next().and_then(|minor| minor.parse().ok());
        is_major && minor.is_some_and(|minor| (self.first..=self.last).contains(&minor))
    }
}

/// Declares a structure of indices, and those of one release, so that each is written once.
macro_rules! layout {
    (
        $(#[$of_layout:meta])*
        $vis:vis struct $Layout:ident, const $RELEASE:ident {
            $($(#[$of_word:meta])* $word:ident = $index:literal,)*
        }
    ) => {
        $(#[$of_layout])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis struct $Layout {
            $($(#[$of_word])* $vis $word: usize,)*
        }

        const $RELEASE: $Layout = $Layout { $($word: $index),* };
    };
}

pub(super) use layout;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_numbers() {
        let some = |first, last| Releases::new(MajorVersion::Five, first, last);
        assert!(some(3, 3).are_older_than(some(4, 5)));
        assert!(!some(3, 4).are_older_than(some(4, 5)));
        assert!(!some(4, 3).are_older_than(some(5, 5)), "none");
        assert!(!Releases::new(MajorVersion::Four, 3, 3).are_older_than(some(4, 5)));
        assert!(some(3, 4).are(some(3, 4)) && !some(3, 4).are(some(3, 3)));
        assert!(["5.3.0", "5.4.1", "5.3.0+dev1"].into_iter().all(|text| some(3, 4).contain(text)));
        let others = ["5.2.1", "5.5.0", "4.3.0", "5", "", "5.x.0", "55.3.0", "5.30.0"];
        assert!(others.into_iter().all(|text| !some(3, 4).contain(text)));
    }
}
