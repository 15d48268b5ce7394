//! Where the files of a diagnosis go: a directory that only its owner may enter.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use heaptap_client::Process;
use tempfile::TempDir;

use crate::exit_status::Failure;
use crate::text::escape;

/// A directory: one that was named, or a temporary one, which is removed unless it is kept.
pub(super) enum Folder {
    Named(PathBuf),
    Temporary(TempDir),
}

impl Folder {
    /// The directory that was named, which is made if it is not there; else a temporary one.
    pub(super) fn new(named: Option<&Path>) -> Result<Folder, Failure> {
        if let Some(named) = named {
            return Folder::named(named);
        }
        let private = fs::Permissions::from_mode(0o700);
        let made =
            tempfile::Builder::new().prefix("heaptap-doctor-").permissions(private).tempdir();
        made.map(Folder::Temporary).map_err(|error| {
            let place = std::env::temp_dir();
            Failure::Trouble(format!(
                "{}: no directory can be made there: {error}; name one with -o",
                escape::path(&place)
            ))
        })
    }

    pub(super) fn named(path: &Path) -> Result<Folder, Failure> {
        let failed = |error: io::Error| {
            Failure::Trouble(format!("-o {}: {error}; name a directory", escape::path(path)))
        };
        let path = std::path::absolute(path).map_err(failed)?;
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !fs::metadata(&path).map_err(failed)?.is_dir() {
                    return Err(failed(io::ErrorKind::NotADirectory.into()));
                }
            }
            made => made.map_err(failed)?,
        }
        Ok(Folder::Named(path))
    }

    /// Lets the program write there if it is another user's, and this is root.
    pub(super) fn give_to(&self, process: Process) -> Result<(), Failure> {
        let (Folder::Temporary(folder), Some(user)) = (self, process.user()) else { return Ok(()) };
        if user == rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        chown(folder.path(), Some(user), None).map_err(|error| {
            Failure::Trouble(format!(
                "the program belongs to another user: {error}; run this as that user or as root"
            ))
        })
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Folder::Named(path) => path,
            Folder::Temporary(folder) => folder.path(),
        }
    }

    pub(super) fn is_named(&self) -> bool {
        matches!(self, Folder::Named(_))
    }

    /// A name in it that is not taken: `stem`, a number if need be, and the end.
    pub(super) fn free_name(&self, stem: &str, end: &str) -> PathBuf {
        let numbered = (2u32..).map(|number| format!("{stem}-{number}.{end}"));
        let mut names = std::iter::once(format!("{stem}.{end}")).chain(numbered);
        let mut free = names.find(|name| self.path().join(name).symlink_metadata().is_err());
        // Some number is free.
        self.path().join(free.take().unwrap_or_default())
    }

    /// Leaves it where it is.
    pub(super) fn keep(self) -> PathBuf {
        match self {
            Folder::Named(path) => path,
            Folder::Temporary(folder) => folder.keep(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_folder_is_private_and_goes_unless_it_is_kept() {
        let folder = Folder::new(None).unwrap();
        let path = folder.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        drop(folder);
        assert!(!path.exists());
        let kept = Folder::new(None).unwrap().keep();
        assert!(kept.is_dir());
        fs::remove_dir(kept).unwrap();
    }

    #[test]
    fn a_named_folder_is_made_and_its_files_are_not_replaced() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::named(&place.path().join("new")).unwrap();
        assert_eq!(folder.free_name("trace", "ctf"), folder.path().join("trace.ctf"));
        fs::write(folder.path().join("trace.ctf"), "").unwrap();
        assert_eq!(folder.free_name("trace", "ctf"), folder.path().join("trace-2.ctf"));
        assert!(Folder::named(&folder.path().join("trace.ctf")).is_err());
    }
}
