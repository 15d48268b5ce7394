//! What of this machine and its user discovery looks at.

use std::env;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What of this machine and its user discovery looks at. Read once, so that tests can have others.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Where the user is, who is often in the project.
    pub working_directory: Option<PathBuf>,
    /// The user's home, which is never walked.
    pub home: Option<PathBuf>,
    /// `PATH`; directories that are not absolute are left out.
    pub path: Vec<PathBuf>,
    /// `OCAMLPATH`, the directories of packages.
    pub packages: Vec<PathBuf>,
    /// Where opam has its switches.
    pub opam: Option<PathBuf>,
    /// Where what was read before is kept; none if it is not to be kept.
    pub cache: Option<PathBuf>,
    /// The users whose files are trusted: oneself and root.
    pub owners: Vec<u32>,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process() -> Surroundings {
        let directory =
            |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let directories = |name: &str| {
            let paths = env::var_os(name).unwrap_or_default();
            env::split_paths(&paths).filter(|path| path.is_absolute()).collect()
        };
        let home = directory("HOME");
        let in_home = |name: &str| home.as_ref().map(|home| home.join(name));
        Surroundings {
            working_directory: env::current_dir().ok(),
            path: directories("PATH"),
            packages: directories("OCAMLPATH"),
            opam: directory("OPAMROOT").or_else(|| in_home(".opam")),
            cache: directory("XDG_CACHE_HOME")
                .or_else(|| in_home(".cache"))
                .map(|cache| cache.join("heaptap/types")),
            owners: owners(),
            home,
        }
    }

    /// Whether nobody else could have written this file or directory.
    pub(crate) fn trusts(&self, metadata: &std::fs::Metadata) -> bool {
        const WRITABLE_BY_OTHERS: u32 = 0o002;
        self.owners.contains(&metadata.uid()) && metadata.mode() & WRITABLE_BY_OTHERS == 0
    }

    /// Whether this is a directory that many things are in: `/`, the user's home, or one above it.
    pub(crate) fn is_too_common(&self, directory: &Path) -> bool {
        directory.parent().is_none()
            || self.home.as_ref().is_some_and(|home| home.starts_with(directory))
    }
}

/// The user, root, and who has become root by `sudo`.
fn owners() -> Vec<u32> {
    let user = rustix::process::geteuid().as_raw();
    let mut owners = vec![0, user];
    if user == 0 {
        owners.extend(env::var("SUDO_UID").ok().and_then(|uid| uid.parse::<u32>().ok()));
    }
    owners
}
