//! The library where the program finds it: as it is, or, if the program has another root
//! directory or mount namespace, a copy there.
//!
//! The program's file system is reached through `/proc/PID/root`. Its links are its own and lead
//! anywhere, so directories are opened one by one and links are not followed. A copy is written
//! under a new name and renamed, never over a file that a program may have mapped. Its name
//! says what is in it: a program that has loaded it before gets the same name again, which
//! its loader knows, and not a second library.

#![allow(unsafe_code, reason = "fstatvfs")]

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::maps::Maps;
use crate::process::namespace;
use crate::refusal::Refusal;

/// Where a copy may go, in the program's file system.
const DIRECTORIES: [&[&str]; 3] = [&["tmp"], &["var", "tmp"], &["dev", "shm"]];

const PREFIX: &str = ".heaptap-";

/// A copy that is older than this was left by an attacher that was killed.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The library under a name that the program can open.
pub(crate) struct Placed {
    /// As the program sees it.
    pub(crate) path: Vec<u8>,
    /// To be removed.
    copy: Option<Copy>,
}

struct Copy {
    directory: File,
    name: String,
}

impl Placed {
    /// Keeps a copy that the program may still be about to open.
    pub(crate) fn keep(mut self) {
        self.copy = None;
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        if let Some(Copy { directory, name }) = &self.copy {
            // Somebody has removed it already, or the directory: nothing is left then.
            let _ = fs::remove_file(inside(directory, name));
        }
    }
}

/// Makes the library visible to the program.
pub(crate) fn place(pid: libc::pid_t, maps: &Maps, library: &Path) -> Result<Placed, Refusal> {
    let unreadable = |error: io::Error| no_library(library, &error);
    let own = fs::metadata(library).map_err(unreadable)?;
    if is_same_root(pid) || is_visible(pid, library, &own) {
        return Ok(Placed { path: library.as_os_str().as_bytes().to_vec(), copy: None });
    }
    let content = fs::read(library).map_err(unreadable)?;
    let stem = format!("{PREFIX}{:016x}-", hash(&content));
    if let Some(path) = loaded(maps, &stem) {
        return Ok(Placed { path, copy: None });
    }
    let root = open_directory(&PathBuf::from(format!("/proc/{pid}/root/.")), 0)
        .map_err(|error| Refusal::NoNamespace { error: error.to_string() })?;
    let name = format!("{stem}{}.so", std::process::id());
    let mut last = None;
    for steps in DIRECTORIES {
        match copy(&root, steps, &name, &content) {
            Ok(directory) => {
                let path = format!("/{}/{name}", steps.join("/")).into_bytes();
                return Ok(Placed { path, copy: Some(Copy { directory, name }) });
            }
            Err(error) => last = last.or(Some(error)),
        }
    }
    let error = last.unwrap_or_else(|| io::ErrorKind::NotFound.into());
    Err(no_library(Path::new("/tmp").join(&name).as_path(), &error))
}

fn no_library(path: &Path, error: &io::Error) -> Refusal {
    Refusal::NoLibrary { path: path.to_owned(), error: error.to_string() }
}

/// Whether the program's file names mean what ours mean.
fn is_same_root(pid: libc::pid_t) -> bool {
    let root = |pid: &str| {
        let root = fs::metadata(format!("/proc/{pid}/root/.")).ok()?;
        Some((namespace(pid, "mnt")?, root.dev(), root.ino()))
    };
    let theirs = root(&pid.to_string());
    theirs.is_some() && theirs == root("self")
}

/// Whether the program sees this very file under the same name.
fn is_visible(pid: libc::pid_t, library: &Path, own: &fs::Metadata) -> bool {
    let mut theirs = format!("/proc/{pid}/root").into_bytes();
    theirs.extend_from_slice(library.as_os_str().as_bytes());
    // A link on the way would lead through our file system, and not the program's.
    let theirs = Path::new(OsStr::from_bytes(&theirs));
    let is_direct = theirs
        .ancestors()
        .take(library.components().count() - 1)
        .all(|path| fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_symlink()));
    is_direct
        && fs::metadata(theirs)
            .is_ok_and(|theirs| (theirs.dev(), theirs.ino()) == (own.dev(), own.ino()))
}

/// The name of a copy with that content which the program has loaded.
fn loaded(maps: &Maps, stem: &str) -> Option<Vec<u8>> {
    maps.0.iter().find_map(|mapping| {
        let path = mapping.path.strip_suffix(b" (deleted)").unwrap_or(&mapping.path);
        let name = Path::new(OsStr::from_bytes(path)).file_name()?;
        name.as_bytes().starts_with(stem.as_bytes()).then(|| path.to_vec())
    })
}

/// Writes the library into a directory of the program's.
fn copy(root: &File, steps: &[&str], name: &str, content: &[u8]) -> io::Result<File> {
    let mut directory = root.try_clone()?;
    for step in steps {
        directory = open_directory(&inside(&directory, step), libc::O_NOFOLLOW)?;
    }
    if !is_executable(&directory)? {
        return Err(io::Error::other("no program may be executed there (noexec)"));
    }
    remove_abandoned(&directory);
    let unfinished = inside(&directory, &format!("{name}.new"));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&unfinished)
        .and_then(|mut file| {
            file.write_all(content)?;
            // Whatever our own mask is: the program may run as another user.
            file.set_permissions(fs::Permissions::from_mode(0o755))
        })
        .and_then(|()| fs::rename(&unfinished, inside(&directory, name)));
    if let Err(error) = written {
        // Not there if it could not be made.
        let _ = fs::remove_file(&unfinished);
        return Err(error);
    }
    Ok(directory)
}

/// Removes copies of attachers that were killed, of this user.
fn remove_abandoned(directory: &File) {
    let Ok(entries) = fs::read_dir(inside(directory, ".")) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let is_abandoned = entry.metadata().is_ok_and(|metadata| {
            let age = metadata.modified().ok().and_then(|time| time.elapsed().ok());
            // SAFETY: the call only returns a number.
            let is_ours = metadata.uid() == unsafe { libc::geteuid() };
            metadata.is_file() && is_ours && age.is_some_and(|age| age > ABANDONED)
        });
        if is_abandoned {
            // Another attacher may have done so.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn open_directory(path: &Path, flags: i32) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | flags).open(path)
}

/// A name in an open directory.
fn inside(directory: &File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()))
}

/// Whether files of this directory may be mapped as code.
fn is_executable(directory: &File) -> io::Result<bool> {
    let mut about = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the descriptor is open, and `about` is what the call fills.
    let done = unsafe { libc::fstatvfs(directory.as_raw_fd(), about.as_mut_ptr()) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all zero is a value of the type, and the call has filled it.
    let about = unsafe { about.assume_init() };
    Ok(about.f_flag & libc::ST_NOEXEC == 0)
}

/// FNV-1a, 64 bits: tells versions of a library apart.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
