//! The lines of the script that a version of the compiler takes.

use std::fmt;

/// The script, with lines that select by version: see its beginning.
const SCRIPT: &str = include_str!("types.ml");

/// A version of OCaml: major and minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OcamlVersion(pub(crate) u32, pub(crate) u32);

impl fmt::Display for OcamlVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl OcamlVersion {
    /// The versions whose compiler libraries the script knows.
    pub(crate) const OLDEST: OcamlVersion = OcamlVersion(4, 12);
    pub(crate) const NEWEST: OcamlVersion = OcamlVersion(5, 4);

    /// From text such as `4.14.1` or `5.3.0~beta1`.
    pub(crate) fn parse(text: &str) -> Option<OcamlVersion> {
        let mut numbers = text.trim().split('.');
        let mut number = || numbers.next()?.parse().ok();
        Some(OcamlVersion(number()?, number()?))
    }
}

/// The script for a version. Lines of other versions are empty, so that lines keep their numbers.
pub(crate) fn for_version(version: OcamlVersion) -> String {
    let mut is_taken = true;
    let mut script = String::with_capacity(SCRIPT.len());
    for line in SCRIPT.lines() {
        if let Some(selector) = line.strip_prefix("(*@ ") {
            is_taken = is_selected(selector.trim_end_matches(" *)"), version);
        } else if is_taken {
            script.push_str(line);
        }
        script.push('\n');
    }
    script
}

fn is_selected(selector: &str, version: OcamlVersion) -> bool {
    let words: Vec<&str> = selector.split(' ').collect();
    words.chunks(2).all(|words| match words {
        ["since", bound] => OcamlVersion::parse(bound).is_some_and(|bound| version >= bound),
        ["before", bound] => OcamlVersion::parse(bound).is_some_and(|bound| version < bound),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(OcamlVersion::parse("4.14.1\n"), Some(OcamlVersion(4, 14)));
        assert_eq!(OcamlVersion::parse("5.3.0~beta1"), Some(OcamlVersion(5, 3)));
        assert_eq!(OcamlVersion::parse("five"), None);
        assert!(OcamlVersion(4, 9) < OcamlVersion(4, 12));
    }

    #[test]
    fn each_version_has_one_of_each_alternative() {
        for version in [(4, 12), (4, 13), (4, 14), (5, 0), (5, 1), (5, 2), (5, 3), (5, 4)] {
            let script = for_version(OcamlVersion(version.0, version.1));
            assert_eq!(script.lines().count(), SCRIPT.lines().count());
            assert!(!script.lines().any(|line| line.starts_with("(*@ ")), "{version:?}");
            for once in [
                "let get_desc",
                "let package_path",
                "let env =",
                "let set_loader",
                "let row_arguments",
                "let variant_constructors",
                "let tuple_parts",
            ] {
                assert_eq!(script.matches(once).count(), 1, "{once} for {version:?}");
            }
        }
    }

    #[test]
    fn every_selector_is_understood() {
        for selector in SCRIPT.lines().filter_map(|line| line.strip_prefix("(*@ ")) {
            let selector = selector.strip_suffix(" *)").expect(selector);
            let words: Vec<&str> = selector.split(' ').collect();
            let is_known = selector == "always"
                || words.chunks(2).all(|words| match words {
                    ["since" | "before", bound] => OcamlVersion::parse(bound).is_some(),
                    _ => false,
                });
            assert!(is_known, "{selector}");
        }
    }
}
