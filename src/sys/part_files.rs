//! The files of a series in their directory: names, and which are kept.
//!
//! `DIR/server.ctf` becomes `DIR/server.000001.ctf`, `DIR/server.000002.ctf`, …, each with its
//! sidecars. A program that starts again goes on behind the largest number that is there, so the
//! directory is one, although each process has its own series. Where the name has `%p` or `%t`,
//! the parts of all processes count as one directory.
//!
//! A number is claimed by making the sidecar, which fails if it is there. A part that some
//! process still writes is locked, and is never removed. The trace of a part is removed before its
//! sidecars: one without would look like a trace of its own.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use heaptap_trace::series_name;

use super::descriptor::lock;
use super::file::{FileError, create_new};
use super::name_pattern::{NameError, ProcessFacts, expand};
use super::output::Output;

const SUFFIX: &[u8] = b".ctf";

/// The fewest digits of a number.
const DIGITS: usize = 6;

/// The names of the parts of a series.
pub(crate) struct PartFiles {
    directory: PathBuf,
    /// The name without number and suffix.
    stem: OsString,
    /// The same with runs of digits for what differs from process to process.
    shape: Vec<Piece>,
    /// The most parts that are kept, the current one included.
    keep: usize,
    /// The number of the last part of this process.
    last: u64,
    /// The traces of the parts that this process writes: one, or two while it goes on in another.
    writing: Vec<PathBuf>,
}

enum Piece {
    Bytes(Vec<u8>),
    Digits,
}

/// A part that is there.
struct FoundPart {
    trace: PathBuf,
    /// When any of its files was changed last.
    modified: SystemTime,
    number: u64,
    bytes: u64,
}

impl PartFiles {
    /// For a trace file of this name, in which placeholders may stand. Of the parts in its
    /// directory, so many are kept.
    pub(crate) fn new(pattern: &OsStr, keep: usize) -> Result<PartFiles, NameError> {
        let bytes = pattern.as_bytes();
        let split = bytes.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
        let (directory, name) = bytes.split_at(split);
        let name = name.strip_suffix(SUFFIX).unwrap_or(name);
        let directory = expand(OsStr::from_bytes(directory), ProcessFacts::gather)?;
        let stem = expand(OsStr::from_bytes(name), ProcessFacts::gather)?.into_os_string();
        let directory = if directory.as_os_str().is_empty() { ".".into() } else { directory };
        let shape = shape(name)?;
        Ok(PartFiles { directory, stem, shape, keep, last: 0, writing: Vec::new() })
    }

    /// Claims the next part: the name of its trace, and its sidecar, which is empty. First the
    /// oldest parts are removed, until there are as few as are kept if this one is counted, and if
    /// each has `part_bytes` at most, until all of them have no more than that together.
    pub(crate) fn claim(
        &mut self,
        part_bytes: Option<u64>,
    ) -> Result<(PathBuf, Output), FileError> {
        self.remove_leftovers();
        self.make_room(part_bytes);
        let there = self.parts().iter().map(|part| part.number).max().unwrap_or(0);
        self.last = self.last.max(there);
        loop {
            self.last += 1;
            let mut name = self.stem.clone();
            name.push(format!(".{:0DIGITS$}.ctf", self.last));
            let trace = self.directory.join(name);
            match create_new(Path::new(&series_name(trace.as_os_str()))) {
                Ok(sidecar) => {
                    self.writing.push(trace.clone());
                    return Ok((trace, sidecar));
                }
                Err(FileError::Open(_, error)) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes what killed processes have left while they thinned a sidecar: a copy of it under a
    /// hidden name (`sys/output/replacement.rs`).
    fn remove_leftovers(&self) {
        const LONG: Duration = Duration::from_secs(60);
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.as_bytes();
            if !(name.starts_with(b".heaptap-") && name.ends_with(b".probes")) {
                continue;
            }
            let is_old = |found: fs::Metadata| {
                found.is_file()
                    && found.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age > LONG))
            };
            let path = entry.path();
            let is_unused = || File::open(&path).is_ok_and(|file| lock(&file).unwrap_or(false));
            if entry.metadata().is_ok_and(is_old) && is_unused() {
                let _ = fs::remove_file(&path);
            }
        }
    }

    fn make_room(&self, part_bytes: Option<u64>) {
        let kept = self.keep.saturating_sub(1 + self.writing.len());
        let most = part_bytes.map(|bytes| bytes.saturating_mul(kept as u64));
        let mut others = self.others();
        let mut bytes: u64 = others.iter().map(|part| part.bytes).sum();
        while others.len() > kept || most.is_some_and(|most| bytes > most) {
            let Some(oldest) = others.first() else { break };
            bytes = bytes.saturating_sub(oldest.bytes);
            remove(&oldest.trace);
            others.remove(0);
        }
    }

    /// The part before the last one that was claimed is over.
    pub(crate) fn end_before(&mut self) {
        let before = self.writing.len().saturating_sub(1);
        self.writing.drain(..before);
    }

    /// Removes the oldest part that nobody writes; false if there is none.
    pub(crate) fn remove_oldest(&self) -> bool {
        self.others().first().is_some_and(|oldest| remove(&oldest.trace))
    }

    /// Removes the part that was claimed last and has not begun.
    pub(crate) fn abandon(&mut self) {
        self.writing.pop().iter().for_each(|trace| _ = remove(trace));
    }

    /// The bytes of the part that was claimed last, sidecars included.
    pub(crate) fn bytes(&self) -> u64 {
        let files = self.writing.last().map(|trace| files_of(trace));
        files
            .iter()
            .flatten()
            .filter_map(|file| fs::metadata(file).ok())
            .fold(0, |sum, found| sum.saturating_add(found.len()))
    }

    /// The bytes of all parts, of other processes too.
    pub(crate) fn all_bytes(&self) -> u64 {
        self.parts().iter().fold(0, |sum, part| sum.saturating_add(part.bytes))
    }

    /// The parts that nobody writes, the oldest first.
    fn others(&self) -> Vec<FoundPart> {
        let mut parts = self.parts();
        // Opened only if it is not ours: see `show_writer`.
        parts.retain(|part| !self.writing.contains(&part.trace) && !is_written(&part.trace));
        parts.sort_by_key(|part| (part.modified, part.number));
        parts
    }

    fn parts(&self) -> Vec<FoundPart> {
        let mut parts: HashMap<OsString, FoundPart> = HashMap::new();
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some((trace, number)) = self.part_of(&name) else { continue };
            let Ok(found) = entry.metadata() else { continue };
            let modified = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let part = parts.entry(trace.to_owned()).or_insert_with(|| FoundPart {
                trace: self.directory.join(trace),
                modified,
                number,
                bytes: 0,
            });
            part.modified = part.modified.max(modified);
            part.bytes = part.bytes.saturating_add(found.len());
        }
        parts.into_values().collect()
    }

    /// The trace that a file belongs to, and its number, if it is one of a part.
    fn part_of<'n>(&self, name: &'n OsStr) -> Option<(&'n OsStr, u64)> {
        let mut trace = name.as_bytes();
        for suffix in [&b".series"[..], b".probes"] {
            trace = trace.strip_suffix(suffix).unwrap_or(trace);
        }
        let rest = trace.strip_suffix(SUFFIX)?;
        let dot = rest.iter().rposition(|&byte| byte == b'.')?;
        let (stem, number) = (rest.get(..dot)?, rest.get(dot + 1..)?);
        if number.len() < DIGITS || !number.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let number = std::str::from_utf8(number).ok()?.parse().ok()?;
        has_shape(stem, &self.shape).then_some((OsStr::from_bytes(trace), number))
    }
}

/// The trace of a part and its sidecars.
fn files_of(trace: &Path) -> [OsString; 3] {
    let name = trace.as_os_str();
    [name.to_owned(), series_name(name), heaptap_probes::sidecar_name(name)]
}

/// Removes a part; false if something of it stays.
fn remove(trace: &Path) -> bool {
    files_of(trace).iter().all(|file| match fs::remove_file(file) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    })
}

/// Whether a process writes a trace. One that cannot be opened is left alone; one that is gone,
/// or was never begun, is written by nobody.
fn is_written(trace: &Path) -> bool {
    match File::open(trace) {
        Ok(file) => !lock(&file).unwrap_or(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let sidecar = File::open(series_name(trace.as_os_str()));
            sidecar.is_ok_and(|file| !lock(&file).unwrap_or(false))
        }
        Err(_) => true,
    }
}

/// The pieces of a name with placeholders.
fn shape(name: &[u8]) -> Result<Vec<Piece>, NameError> {
    let mut pieces = Vec::new();
    let mut bytes = Vec::new();
    let mut rest = name.iter();
    while let Some(&byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'p' | b't') => {
                pieces.push(Piece::Bytes(std::mem::take(&mut bytes)));
                pieces.push(Piece::Digits);
            }
            Some(&other) => {
                let fact = expand(OsStr::from_bytes(&[b'%', other]), ProcessFacts::gather)?;
                bytes.extend(fact.into_os_string().into_vec());
            }
            None => return Err(NameError::Unfinished),
        }
    }
    pieces.push(Piece::Bytes(bytes));
    Ok(pieces)
}

fn has_shape(mut name: &[u8], shape: &[Piece]) -> bool {
    for piece in shape {
        let rest = match piece {
            Piece::Bytes(bytes) => name.strip_prefix(&bytes[..]),
            Piece::Digits => {
                let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
                if digits == 0 { None } else { name.get(digits..) }
            }
        };
        let Some(rest) = rest else { return false };
        name = rest;
    }
    name.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(directory: &Path, name: &str, keep: usize) -> PartFiles {
        PartFiles::new(directory.join(name).as_os_str(), keep).unwrap()
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A part that is complete.
    fn part(files: &mut PartFiles, bytes: usize, most: Option<u64>) {
        let (trace, sidecar) = files.claim(most).unwrap();
        files.end_before();
        fs::write(&trace, vec![0; bytes]).unwrap();
        drop(sidecar);
    }

    #[test]
    fn numbers_go_on_and_the_oldest_parts_go() {
        let place = tempfile::tempdir().unwrap();
        for name in ["other.000009.ctf", "a.ctf", "a.12.ctf", "a.000004.heap", "ab.000003.ctf"] {
            fs::write(place.path().join(name), b"x").unwrap();
        }
        let strangers = names(place.path());
        let mut first = files(place.path(), "a.ctf", 3);
        (0..4).for_each(|_| part(&mut first, 10, None));
        let mut second = files(place.path(), "a.ctf", 3);
        part(&mut second, 10, None);
        let mut expected = strangers;
        for number in 3..=5 {
            expected
                .extend([format!("a.00000{number}.ctf"), format!("a.00000{number}.ctf.series")]);
        }
        expected.sort();
        assert_eq!(names(place.path()), expected);
        assert_eq!(second.bytes(), 10);
    }

    #[test]
    fn the_bytes_of_all_parts_are_bounded() {
        let place = tempfile::tempdir().unwrap();
        let mut files = files(place.path(), "a", 5);
        for _ in 0..20 {
            // Twice of what a part should have.
            part(&mut files, 100, Some(50));
            assert!(names(place.path()).len() <= 2 * 3);
        }
        assert!(files.remove_oldest());
        assert_eq!(names(place.path()).len(), 2 * 2);
    }

    #[test]
    fn parts_of_other_processes_count_unless_they_are_written() {
        let place = tempfile::tempdir().unwrap();
        let ended = place.path().join("s-77.000001.ctf");
        let written = place.path().join("s-78.000001.ctf");
        fs::write(&ended, b"x").unwrap();
        let writer = super::super::file::create(&written).unwrap();
        let mut files = files(place.path(), "s-%p.ctf", 2);
        part(&mut files, 10, None);
        part(&mut files, 10, None);
        assert!(!ended.exists() && written.exists());
        drop(writer);
        part(&mut files, 10, None);
        assert!(!written.exists());
        assert_eq!(names(place.path()).len(), 4);
    }

    #[test]
    fn what_a_killed_process_has_left_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        let make = |name: &str| {
            let file = File::create(path(name)).unwrap();
            file.set_modified(hour_ago).unwrap();
            file
        };
        ["left", "used"].iter().for_each(|name| drop(make(&format!(".heaptap-{name}.probes"))));
        fs::write(path(".heaptap-new.probes"), b"x").unwrap();
        make(".heaptap-1.ctf");
        let used = File::open(path(".heaptap-used.probes")).unwrap();
        assert!(lock(&used).unwrap());
        part(&mut files(place.path(), "a", 2), 10, None);
        let found = names(place.path());
        let expected = [".heaptap-1.ctf", ".heaptap-new.probes", ".heaptap-used.probes"];
        assert_eq!(found[..3], expected, "{found:?}");
    }

    #[test]
    fn a_number_is_claimed_once() {
        let place = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (files(place.path(), "a", 5), files(place.path(), "a", 5));
        let (first, _sidecar) = one.claim(None).unwrap();
        let (second, _other) = other.claim(None).unwrap();
        assert_ne!(first, second);
        one.abandon();
        assert_eq!(names(place.path()), ["a.000002.ctf.series"]);
    }
}
