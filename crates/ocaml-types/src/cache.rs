//! What the compiler has printed before, by what it read.
//!
//! A file has the key in full, so that no hash has to be believed, a checksum and the document.
//! It is written under another name and renamed: who reads sees all of it or nothing. Anything
//! that is not right with a file, or with the directory, makes it a file that is not there.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use heaptap_codec::crc::crc32c;

/// All files together take no more than this.
const MOST_BYTES: u64 = 256 << 20;

/// One file takes no more than this.
const BIGGEST_FILE: u64 = 64 << 20;

const MAGIC: &[u8] = b"heaptap types cache 1\n";

/// The directory of what was read before.
pub(crate) struct Cache<'a> {
    directory: &'a Path,
}

impl<'a> Cache<'a> {
    /// The cache in this directory, which is made if it is not there. `None` if others could write it.
    pub(crate) fn open(directory: &'a Path) -> Option<Cache<'a>> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory).ok()?;
        let metadata = fs::symlink_metadata(directory).ok()?;
        let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
        (metadata.is_dir() && is_own && metadata.mode() & 0o077 == 0).then_some(Cache { directory })
    }

    fn path(&self, key: &str) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        self.directory.join(format!("{:016x}", hasher.finish()))
    }

    /// The document for this key.
    pub(crate) fn get(&self, key: &str) -> Option<String> {
        let mut options = OpenOptions::new();
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file = options.read(true).custom_flags(flags.bits().cast_signed()).open(self.path(key));
        let file = file.ok()?;
        let mut bytes = Vec::new();
        (&file).take(BIGGEST_FILE).read_to_end(&mut bytes).ok()?;
        let document = document(&bytes, key)?;
        // The oldest are removed first. If this fails, it is older than it might be.
        let _ = file.set_modified(SystemTime::now());
        Some(document)
    }

    /// Keeps a document. If that fails it is read anew the next time.
    pub(crate) fn put(&self, key: &str, document: &str) {
        let bytes = file(key, document);
        if bytes.len() as u64 <= BIGGEST_FILE {
            // The file is made with mode 0600.
            let _ =
                tempfile::Builder::new().prefix(".new-").tempfile_in(self.directory).map(|new| {
                    std::io::Write::write_all(&mut new.as_file(), &bytes)
                        .map(|()| new.persist(self.path(key)).map(drop))
                });
        }
        self.shrink();
    }

    /// Removes what was not used for the longest time.
    fn shrink(&self) {
        let entries = fs::read_dir(self.directory).into_iter().flatten().flatten();
        let file = |entry: fs::DirEntry| {
            let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((metadata.modified().ok()?, metadata.len(), entry.path()))
        };
        let mut files: Vec<_> = entries.filter_map(file).collect();
        files.sort();
        let mut bytes: u64 = files.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in files {
            if bytes <= MOST_BYTES {
                return;
            }
            // Another process may have removed it.
            let _ = fs::remove_file(path);
            bytes = bytes.saturating_sub(size);
        }
    }
}

fn file(key: &str, document: &str) -> Vec<u8> {
    let checksum = crc32c(&[key.as_bytes(), document.as_bytes()]);
    let length = (key.len() as u64).to_le_bytes();
    [MAGIC, &checksum.to_le_bytes(), &length, key.as_bytes(), document.as_bytes()].concat()
}

fn document(bytes: &[u8], key: &str) -> Option<String> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (checksum, rest) = rest.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (own, document) = rest.split_at_checked(length)?;
    let is_whole = crc32c(&[own, document]) == u32::from_le_bytes(*checksum);
    (is_whole && own == key.as_bytes()).then(|| String::from_utf8(document.to_vec()).ok())?
}

/// A file as a part of a key: its name, size and times. One that changes has others.
pub(crate) fn identity(path: &Path) -> String {
    match File::open(path).and_then(|file| file.metadata()) {
        Ok(file) => format!(
            "{:?} {} {}.{} {}.{} {}",
            path,
            file.len(),
            file.mtime(),
            file.mtime_nsec(),
            file.ctime(),
            file.ctime_nsec(),
            file.ino()
        ),
        Err(_) => format!("{path:?}"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_was_kept_is_found_again() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("a/b");
        let cache = Cache::open(&directory).unwrap();
        assert_eq!(cache.get("key"), None);
        cache.put("key", "document");
        cache.put("other", "another");
        assert_eq!(cache.get("key").as_deref(), Some("document"));
        let modes = fs::read_dir(&directory).unwrap();
        let mut modes = modes.map(|entry| entry.unwrap().metadata().unwrap().mode() & 0o777);
        assert!(modes.all(|mode| mode == 0o600));
        assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn nothing_that_is_damaged_is_returned() {
        let whole = file("key", "document");
        assert_eq!(document(&whole, "key").as_deref(), Some("document"));
        assert_eq!(document(&whole, "kex"), None);
        for end in 0..whole.len() {
            assert_eq!(document(&whole[..end], "key"), None, "{end} bytes of it");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert_eq!(document(&damaged, "key"), None, "byte {at}");
        }
    }

    #[test]
    fn a_directory_that_others_may_write_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let mode = |mode| fs::set_permissions(place.path(), fs::Permissions::from_mode(mode));
        mode(0o777).unwrap();
        assert!(Cache::open(place.path()).is_none());
        mode(0o700).unwrap();
        assert!(Cache::open(place.path()).is_some());
        let link = place.path().join("link");
        std::os::unix::fs::symlink("/tmp", &link).unwrap();
        assert!(Cache::open(&link).is_none());
    }
}
