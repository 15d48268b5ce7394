//! A file that is written beside another one, and then takes its place: name, mode and owner.
//!
//! Whoever has the old file open keeps it; whoever opens the name gets the new one, whole. The
//! old file must still be found under its name: not if it was removed, or the process has changed
//! its root directory or its user since.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use super::Output;
use crate::sys::descriptor::{FileIdentity, lock};

/// A file that has not taken its place yet. If it is dropped, nothing has changed.
pub(crate) struct Replacement {
    /// `None` once it has taken the place of the other.
    out: Option<Output>,
    /// Its name until then, and the name that it takes.
    temporary: PathBuf,
    path: PathBuf,
    /// The file that it replaces.
    old: FileIdentity,
}

impl Output {
    /// An empty file that can take the place of this one.
    pub(crate) fn replacement(&self) -> io::Result<Replacement> {
        // The file may have another name by now.
        let link = fs::read_link(format!("/proc/self/fd/{}", self.descriptor));
        let path = link.unwrap_or_else(|_| self.path.clone());
        let found = check(&path, self.identity)?;
        // As long as the file exists, no other has its number; and it is short, whatever the name.
        let name = format!(".heaptap-{:x}.probes", found.ino());
        let temporary = path.with_file_name(name);
        let file = create(&temporary, found.mode())?;
        let made = file.metadata();
        let mut replacement = Replacement { out: None, temporary, path, old: self.identity };
        let made = made?;
        if (made.uid(), made.gid()) != (found.uid(), found.gid()) {
            fchown(&file, Some(found.uid()), Some(found.gid()))?;
        }
        file.set_permissions(found.permissions())?;
        lock(&file)?;
        replacement.out = Some(Output::new(file, &made, &replacement.temporary)?);
        Ok(replacement)
    }
}

impl Replacement {
    /// Where its packets go.
    pub(crate) fn out(&mut self) -> io::Result<&mut Output> {
        self.out.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Takes the place of the other file.
    pub(crate) fn commit(mut self) -> io::Result<Output> {
        check(&self.path, self.old)?;
        fs::rename(&self.temporary, &self.path)?;
        let mut out = self.out.take().ok_or(io::ErrorKind::NotFound)?;
        out.path.clone_from(&self.path);
        // Nothing of this name is to be removed any more.
        self.temporary = PathBuf::new();
        Ok(out)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.temporary.as_os_str().is_empty() {
            // It is of no use to anybody; if it cannot be removed, it stays.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// The file with this name, if it is the one.
fn check(path: &Path, identity: FileIdentity) -> io::Result<fs::Metadata> {
    let found = fs::symlink_metadata(path);
    let found = found.map_err(|_| io::Error::other("it is not found under its name any more"))?;
    match FileIdentity::of(&found) == identity {
        true => Ok(found),
        false => Err(io::Error::other("another file has its name")),
    }
}

/// Makes a file. One that was left behind by a process that was killed is removed.
fn create(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // What others may read they may read when it is complete.
    options.read(true).write(true).create_new(true).mode(mode & 0o600);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NOCTTY);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            options.open(path)
        }
        opened => opened,
    }
}
