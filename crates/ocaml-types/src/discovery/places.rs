//! Where the files of a program's units may be.
//!
//! From what is nearest to what is furthest: beside the program, where its sources were, in the
//! `_build` of a project around the program or around the user, among installed packages. The
//! search goes on until every unit has its files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::search::Search;
use super::surroundings::Surroundings;
use crate::program::SourceNames;

/// So many directories above the program, or above the user, are looked at.
const HIGHEST: usize = 8;

/// A tree that was built is this deep at most.
const DEEPEST_BUILD: usize = 24;

/// Directories of packages have parts this deep.
const DEEPEST_PACKAGE: usize = 3;

/// The places of one program.
pub(crate) struct Places<'a> {
    pub(crate) program: Option<&'a Path>,
    pub(crate) sources: &'a SourceNames,
    pub(crate) around: &'a Surroundings,
    /// Directories of packages.
    pub(crate) packages: &'a [PathBuf],
}

impl Places<'_> {
    /// Looks into one place after the other, until everything is found.
    pub(crate) fn search(
        &self,
        search: &mut Search<'_>,
        is_complete: &dyn Fn(&Search<'_>) -> bool,
    ) {
        let steps: [&dyn Fn(&mut Search<'_>); 5] = [
            &|search| self.near_the_program(search),
            &|search| self.at_the_sources(search),
            &|search| self.in_known_parts_of_builds(search),
            &|search| self.in_builds(search),
            &|search| self.among_packages(search),
        ];
        for step in steps {
            step(search);
            if is_complete(search) {
                return;
            }
        }
    }

    fn near_the_program(&self, search: &mut Search<'_>) {
        if let Some(directory) = self.program.and_then(Path::parent) {
            search.visit(directory);
        }
    }

    /// Files that the compiler has written beside its sources.
    fn at_the_sources(&self, search: &mut Search<'_>) {
        for directory in &self.sources.absolute {
            search.visit(directory);
        }
        for base in self.bases() {
            for directory in &self.sources.relative {
                search.visit(&base.join(directory));
            }
        }
    }

    /// The same places below each `_build`: that is where dune and ocamlbuild compile.
    fn in_known_parts_of_builds(&self, search: &mut Search<'_>) {
        for build in self.builds() {
            let roots = contexts(&build).into_iter().chain([build.clone()]);
            for root in roots {
                for directory in &self.sources.relative {
                    search.visit(&root.join(directory));
                }
            }
        }
    }

    fn in_builds(&self, search: &mut Search<'_>) {
        for build in self.builds() {
            search.walk(&build, DEEPEST_BUILD);
        }
    }

    fn among_packages(&self, search: &mut Search<'_>) {
        for directory in self.packages {
            search.walk(directory, DEEPEST_PACKAGE);
        }
    }

    /// Directories that names of sources may be relative to: those of the program and of the user,
    /// and those above.
    fn bases(&self) -> Vec<PathBuf> {
        let program = self.program.and_then(Path::parent);
        let user = self.around.working_directory.as_deref();
        let above = |start: Option<&Path>| -> Vec<PathBuf> {
            let all = start.into_iter().flat_map(Path::ancestors);
            all.filter(|path| path.parent().is_some()).take(HIGHEST).map(PathBuf::from).collect()
        };
        let mut seen = BTreeSet::new();
        let mut bases = above(program);
        bases.extend(above(user));
        bases.retain(|base| seen.insert(base.clone()));
        bases
    }

    /// The `_build` directories in those, and those that the program names.
    fn builds(&self) -> Vec<PathBuf> {
        let named = self.sources.absolute.iter().flat_map(|directory| directory.ancestors());
        let named = named.filter(|path| path.file_name() == Some(OsStr::new("_build")));
        let below = self.bases().into_iter().map(|base| base.join("_build"));
        let mut seen = BTreeSet::new();
        let all = below.chain(named.map(PathBuf::from));
        all.filter(|build| build.is_dir() && seen.insert(build.clone())).collect()
    }
}

/// What dune builds for: `_build/default` and others.
fn contexts(build: &Path) -> Vec<PathBuf> {
    const MOST: usize = 16;
    let entries = fs::read_dir(build).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut paths: Vec<_> = directories.map(|entry| entry.path()).take(MOST).collect();
    paths.retain(|path| {
        path.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."))
    });
    paths.sort();
    paths
}
