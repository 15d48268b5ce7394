//! Which of the files of a unit are those of the program.
//!
//! The program has the digest of each unit's interface, and a native one that of its code. Files
//! whose digests are others are of another build. Where there is no digest, a file that is newer
//! than the program is, most likely.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::search::{Search, UnitFiles};
use super::unit_names::readable;
use crate::program::{LinkedUnit, LinkedUnits};

/// Clocks and copies are this exact.
const SLACK: Duration = Duration::from_secs(2);

/// The files of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// Where they are.
    pub(crate) place: PathBuf,
    /// The `.cmt`.
    pub(crate) types: Option<PathBuf>,
    /// The `.cmi`.
    pub(crate) interface: Option<PathBuf>,
    /// Whether they are of the program's build, as far as anything says.
    pub(crate) is_certain: bool,
}

/// What built the files in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// dune.
    Dune,
    /// ocamlbuild.
    Ocamlbuild,
    /// Installed as a package.
    Package,
    /// Something else.
    Other,
}

impl Origin {
    pub(super) fn of(place: &Path, packages: &[PathBuf]) -> Origin {
        let parts = || place.components().map(|part| part.as_os_str().as_encoded_bytes());
        let is_dune = |part: &[u8]| part.ends_with(b".objs") || part.ends_with(b".eobjs");
        if parts().any(is_dune) {
            Origin::Dune
        } else if parts().any(|part| part == b"_build") {
            Origin::Ocamlbuild
        } else if packages.iter().any(|packages| place.starts_with(packages)) {
            Origin::Package
        } else {
            Origin::Other
        }
    }

    /// As it is written; nothing for others.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Origin::Dune => Some("dune"),
            Origin::Ocamlbuild => Some("ocamlbuild"),
            Origin::Package => Some("package"),
            Origin::Other => None,
        }
    }
}

/// What the program's files must be.
pub(crate) struct Expected<'a> {
    pub(crate) units: &'a LinkedUnits,
    /// The modules with variables, as snapshots name them.
    pub(crate) modules: &'a BTreeSet<&'a str>,
    /// When the program was built, or else the snapshot taken.
    pub(crate) built: Option<SystemTime>,
    /// Whether the program's file is not the one that the snapshot was taken of.
    pub(crate) is_rebuilt: bool,
    /// Directories of packages.
    pub(crate) packages: &'a [PathBuf],
}

/// The files that were chosen, and what was not.
#[derive(Debug, Default)]
pub(crate) struct Build {
    pub(crate) units: BTreeMap<String, Chosen>,
    /// Units of which only files of other builds were found, with a place of these.
    pub(crate) other_builds: Vec<(String, PathBuf)>,
    /// Units whose code is another than the program's.
    pub(crate) other_code: Vec<(String, PathBuf)>,
}

/// How well files go with the program, from worst to best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// The digest of the code is another one.
    OtherCode,
    /// Files that may be of another build.
    Doubtful,
    /// Only the interface.
    Interface,
    /// With types, and nothing contradicts.
    Types,
    /// With types, and the code is the program's.
    TypesAndCode,
}

impl Expected<'_> {
    /// Whether a search need not go on.
    pub(crate) fn are_found(&self, search: &Search<'_>, own: &BTreeSet<String>) -> bool {
        let none = LinkedUnit::default();
        let is_found = |unit: &String| {
            let expected = self.units.get(unit).unwrap_or(&none);
            let places = search.units.get(unit);
            places.is_some_and(|places| {
                places.values().any(|files| self.fit(files, expected) >= Some(Fit::Types))
            })
        };
        let mut wanted = self.wanted(own).peekable();
        wanted.peek().is_some() && wanted.all(|unit| is_found(&unit))
    }

    /// Whether the program has modules of its own at all.
    pub(crate) fn any_is_missing(&self, own: &BTreeSet<String>) -> bool {
        self.wanted(own).next().is_some() || self.units.is_empty()
    }

    /// The units with variables that are not the compiler's own.
    fn wanted(&self, own: &BTreeSet<String>) -> impl Iterator<Item = String> {
        let has_variables = |unit: &&str| self.modules.contains(readable(unit).as_str());
        self.units
            .names()
            .filter(has_variables)
            .filter(|unit| !own.contains(*unit))
            .map(str::to_owned)
    }

    /// The best files of each unit that was found.
    pub(crate) fn choose(&self, search: &Search<'_>, own: &BTreeSet<String>) -> Build {
        let mut build = Build::default();
        let none = LinkedUnit::default();
        for (unit, places) in &search.units {
            if own.contains(unit) {
                continue;
            }
            let expected = self.units.get(unit).unwrap_or(&none);
            // The first place of those that fit equally well.
            let mut best: Option<(Fit, &PathBuf, &UnitFiles)> = None;
            for place in &search.places {
                let Some(files) = places.get(place) else { continue };
                let Some(fit) = self.fit(files, expected) else { continue };
                // Main modules of any program may have the same, empty interface.
                let is_installed = Origin::of(place, self.packages) == Origin::Package;
                if fit == Fit::OtherCode && is_installed {
                    continue;
                }
                if best.is_none_or(|(other, _, _)| fit > other) {
                    best = Some((fit, place, files));
                }
            }
            let Some((fit, place, files)) = best else {
                let is_shown = self.modules.contains(readable(unit).as_str());
                let has_files =
                    |files: &UnitFiles| files.types.is_some() || files.interface.is_some();
                let is_own = |place: &Path| Origin::of(place, self.packages) != Origin::Package;
                let other = places.iter().find(|(place, files)| has_files(files) && is_own(place));
                let other =
                    other.filter(|_| is_shown).map(|(place, _)| (unit.clone(), place.clone()));
                build.other_builds.extend(other);
                continue;
            };
            if fit == Fit::OtherCode {
                build.other_code.push((unit.clone(), place.clone()));
            }
            let chosen = Chosen {
                place: place.clone(),
                types: files.types.clone(),
                interface: files.interface.clone(),
                is_certain: fit >= Fit::Interface && !self.is_rebuilt,
            };
            build.units.insert(unit.clone(), chosen);
        }
        build
    }

    /// How well files go with a unit of the program; `None` if not at all.
    fn fit(&self, files: &UnitFiles, expected: &LinkedUnit) -> Option<Fit> {
        if files.types.is_none() && files.interface.is_none() {
            return None;
        }
        let is_other_interface = match (expected.interface, files.interface_digest) {
            (Some(expected), Some(found)) => Some(expected != found),
            _ => None,
        };
        if is_other_interface == Some(true) {
            return None;
        }
        let code = expected.implementation.zip(files.code_digest);
        let is_newer =
            self.built.zip(files.modified).is_some_and(|(built, file)| file > built + SLACK);
        Some(match (code, is_other_interface) {
            (_, None) if is_newer || self.units.is_empty() => Fit::Doubtful,
            _ if files.types.is_none() => Fit::Interface,
            (Some((expected, found)), _) if expected != found => Fit::OtherCode,
            (Some(_), _) => Fit::TypesAndCode,
            // The interface is the program's, and its implementation may be another.
            _ if is_newer && !files.is_one => Fit::Doubtful,
            _ => Fit::Types,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::search::Limits;
    use super::super::surroundings::Surroundings;
    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn expected<'a>(units: &'a LinkedUnits, modules: &'a BTreeSet<&'a str>) -> Expected<'a> {
        Expected { units, modules, built: Some(NOW + SLACK), is_rebuilt: false, packages: &[] }
    }

    fn files(interface: u8, code: Option<u8>, has_types: bool) -> UnitFiles {
        UnitFiles {
            interface: Some("a.cmi".into()),
            types: has_types.then(|| "a.cmt".into()),
            interface_digest: Some([interface; 16]),
            code_digest: code.map(|code| [code; 16]),
            modified: Some(NOW),
            is_one: false,
        }
    }

    fn linked(implementation: Option<u8>) -> LinkedUnit {
        let implementation = implementation.map(|code| [code; 16]);
        LinkedUnit { interface: Some([1; 16]), implementation }
    }

    #[test]
    fn digests_decide() {
        let (units, modules) = (LinkedUnits::default(), BTreeSet::new());
        let expected = expected(&units, &modules);
        let fit = |files, unit| expected.fit(&files, &unit);
        assert_eq!(fit(files(1, Some(2), true), linked(Some(2))), Some(Fit::TypesAndCode));
        assert_eq!(fit(files(1, Some(3), true), linked(Some(2))), Some(Fit::OtherCode));
        assert_eq!(fit(files(1, None, true), linked(Some(2))), Some(Fit::Types));
        assert_eq!(fit(files(1, None, false), linked(None)), Some(Fit::Interface));
        assert_eq!(fit(files(9, Some(2), true), linked(Some(2))), None);
        assert_eq!(fit(UnitFiles::default(), linked(None)), None);
    }

    #[test]
    fn newer_files_are_doubted() {
        let (units, modules) = (LinkedUnits::default(), BTreeSet::new());
        let expected = expected(&units, &modules);
        let newer = UnitFiles { modified: Some(NOW + 3 * SLACK), ..files(1, None, true) };
        assert_eq!(expected.fit(&newer, &linked(None)), Some(Fit::Doubtful));
        let one = UnitFiles { is_one: true, ..newer.clone() };
        assert_eq!(expected.fit(&one, &linked(Some(2))), Some(Fit::Types));
        let by_code = UnitFiles { code_digest: Some([2; 16]), ..newer };
        assert_eq!(expected.fit(&by_code, &linked(Some(2))), Some(Fit::TypesAndCode));
    }

    #[test]
    fn the_first_of_equal_places_is_chosen() {
        let (units, modules) = (LinkedUnits::default(), BTreeSet::from(["A"]));
        let around = Surroundings::default();
        let mut search = Search::new(&around, None, Limits::USUAL);
        let places = BTreeMap::from([
            (PathBuf::from("/a"), files(1, None, true)),
            (PathBuf::from("/b"), files(1, None, true)),
        ]);
        search.units.insert("A".into(), places);
        search.places = vec!["/b".into(), "/a".into()];
        let build = expected(&units, &modules).choose(&search, &BTreeSet::new());
        assert_eq!(build.units["A"].place, Path::new("/b"));
        // Nothing says of which build these are.
        assert!(!build.units["A"].is_certain);
    }

    #[test]
    fn places_are_called_by_what_built_them() {
        let of = |place: &str| Origin::of(Path::new(place), &["/usr/lib/ocaml".into()]).name();
        assert_eq!(of("/p/_build/default/bin/.main.eobjs"), Some("dune"));
        assert_eq!(of("/p/_build/src"), Some("ocamlbuild"));
        assert_eq!(of("/usr/lib/ocaml/findlib"), Some("package"));
        assert_eq!(of("/p/src"), None);
    }
}
