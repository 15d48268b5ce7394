//! Looking into directories for the files of units.
//!
//! A directory is looked into once, and links to directories are not followed below the places
//! where a walk begins. Everything is bounded: time, directories, entries.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::surroundings::Surroundings;
use super::unit_names::unit_of_stem;
use crate::program::{Digest, digests_at, open_regular, own_digest};

/// How long a search may take, and how much it may look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Of the processor. It may take four times as long: on a busy machine it gets little of it, and a disk is slow.
    pub(crate) time: Duration,
    pub(crate) directories: usize,
    pub(crate) entries: usize,
}

impl Limits {
    pub(crate) const USUAL: Limits =
        Limits { time: Duration::from_millis(2500), directories: 20_000, entries: 500_000 };
}

/// The files of a unit in one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnitFiles {
    /// The `.cmi`.
    pub(crate) interface: Option<PathBuf>,
    /// The `.cmt`.
    pub(crate) types: Option<PathBuf>,
    /// The digest of the interface: of the `.cmi`, or of the one in the `.cmt`.
    pub(crate) interface_digest: Option<Digest>,
    /// Whether the `.cmt` has the interface in it, as without a `.mli`: then that digest is of both.
    pub(crate) is_one: bool,
    /// The digest of the `.cmx`.
    pub(crate) code_digest: Option<Digest>,
    /// When the newest of them was written.
    pub(crate) modified: Option<SystemTime>,
}

/// A search, and what it has found.
pub(crate) struct Search<'a> {
    around: &'a Surroundings,
    /// The units that are looked for; all if it is `None`.
    wanted: Option<&'a BTreeSet<String>>,
    limits: Limits,
    /// When it began, by the clock and by what the thread had computed.
    started: (Instant, Duration),
    /// Directories by device and number, and whether all below them was wanted.
    seen: HashSet<(u64, u64, bool)>,
    entries: usize,
    /// By unit, then by place.
    pub(crate) units: BTreeMap<String, BTreeMap<PathBuf, UnitFiles>>,
    /// The places in the order in which they were found.
    pub(crate) places: Vec<PathBuf>,
    /// A file that was left out because of its owner.
    pub(crate) distrusted: Option<PathBuf>,
    /// Whether a limit was reached.
    pub(crate) is_cut_short: bool,
}

impl<'a> Search<'a> {
    pub(crate) fn new(
        around: &'a Surroundings,
        wanted: Option<&'a BTreeSet<String>>,
        limits: Limits,
    ) -> Search<'a> {
        Search {
            around,
            wanted,
            limits,
            started: (Instant::now(), computed()),
            seen: HashSet::new(),
            entries: 0,
            units: BTreeMap::new(),
            places: Vec::new(),
            distrusted: None,
            is_cut_short: false,
        }
    }

    /// Looks into a directory and, where dune puts compiled files, into those below it.
    pub(crate) fn visit(&mut self, directory: &Path) {
        self.look(directory, 0, &|name| is_dune_objects(name) || is_dune_mode(name));
    }

    /// Looks into a directory and all below it, this deep.
    pub(crate) fn walk(&mut self, directory: &Path, depth: usize) {
        if !self.around.is_too_common(directory) {
            self.look(directory, depth, &|name| {
                !matches!(name.as_encoded_bytes(), b".git" | b".hg")
            });
        }
    }

    /// `enters`: which directories below are looked into. Those of dune do not count as deeper.
    fn look(&mut self, directory: &Path, depth: usize, enters: &dyn Fn(&OsStr) -> bool) {
        if self.is_over() {
            return;
        }
        let Ok(metadata) = fs::metadata(directory) else { return };
        if !metadata.is_dir() || !self.seen.insert((metadata.dev(), metadata.ino(), depth > 0)) {
            return;
        }
        let Ok(entries) = fs::read_dir(directory) else { return };
        let mut below = Vec::new();
        for entry in entries.flatten() {
            self.entries += 1;
            if self.is_over() {
                return;
            }
            let name = entry.file_name();
            let is_directory = || entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !self.take(directory, &name) && enters(&name) && is_directory() {
                below.push(name);
            }
        }
        below.sort();
        for name in below {
            let of_dune = is_dune_objects(&name) || is_dune_mode(&name);
            if of_dune || depth > 0 {
                self.look(&directory.join(&name), depth.saturating_sub(1), enters);
            }
        }
    }

    fn is_over(&mut self) -> bool {
        const BUSY: u32 = 4;
        let Limits { time, directories, entries } = self.limits;
        let (start, before) = self.started;
        // The clocks are asked now and then.
        let is_late = self.entries.is_multiple_of(64)
            && (start.elapsed() > time * BUSY || computed().saturating_sub(before) > time);
        self.is_cut_short |= is_late || self.seen.len() > directories || self.entries > entries;
        self.is_cut_short
    }

    /// Takes a file of a unit. Returns whether its name is one of a file of the compiler.
    fn take(&mut self, directory: &Path, name: &OsStr) -> bool {
        let file = Path::new(name);
        let kind = match file.extension().map(OsStr::as_encoded_bytes) {
            Some(b"cmi") => Kind::Interface,
            Some(b"cmt") => Kind::Types,
            Some(b"cmx") => Kind::Code,
            _ => return false,
        };
        let Some(unit) = file.file_stem().and_then(OsStr::to_str).map(unit_of_stem) else {
            return true;
        };
        if self.wanted.is_none_or(|wanted| wanted.contains(&unit)) {
            self.add(&unit, kind, directory, directory.join(file));
        }
        true
    }

    fn add(&mut self, unit: &str, kind: Kind, directory: &Path, path: PathBuf) {
        let Some((file, metadata)) = open_regular(&path) else { return };
        if !self.around.trusts(&metadata) {
            self.distrusted.get_or_insert(path);
            return;
        }
        let place = place_of(directory);
        if !self.places.contains(&place) {
            self.places.push(place.clone());
        }
        let files = self.units.entry(unit.to_owned()).or_default().entry(place).or_default();
        match kind {
            Kind::Interface => {
                files.interface_digest = interface_digest(&file, unit);
                files.interface = Some(path);
            }
            Kind::Types => {
                let inside = interface_digest(&file, unit);
                files.is_one = inside.is_some();
                files.interface_digest = files.interface_digest.or(inside);
                files.types = Some(path);
            }
            Kind::Code => files.code_digest = code_digest(&file, metadata.len()),
        }
        if kind != Kind::Code {
            files.modified = files.modified.max(metadata.modified().ok());
        }
    }
}

/// How long this thread has computed (`Documentation/scheduler/sched-stats.rst` of Linux); nothing where the
/// kernel does not say.
fn computed() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// A kind of file of the compiler.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Interface,
    Types,
    Code,
}

/// `.main.eobjs`, `.store.objs`.
fn is_dune_objects(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b".") && (name.ends_with(b".objs") || name.ends_with(b".eobjs"))
}

/// What is in those.
fn is_dune_mode(name: &OsStr) -> bool {
    matches!(name.as_encoded_bytes(), b"byte" | b"native")
}

/// A place of files: a directory, or what dune has divided into two.
fn place_of(directory: &Path) -> PathBuf {
    let parent =
        directory.parent().filter(|parent| parent.file_name().is_some_and(is_dune_objects));
    let is_mode = directory.file_name().is_some_and(is_dune_mode);
    parent.filter(|_| is_mode).unwrap_or(directory).to_owned()
}

/// The digest of the interface in a `.cmi`, or at the beginning of a `.cmt`.
pub(crate) fn interface_digest(file: &fs::File, unit: &str) -> Option<Digest> {
    let mut start = Vec::new();
    file.take(64).read_to_end(&mut start).ok()?;
    if start.get(..9)? != b"Caml1999I" {
        return None;
    }
    let mut list = vec![0; 1024];
    let length = file.read_at(&mut list, digests_at(&start)?).ok()?;
    list.truncate(length);
    let (header, size) = crate::program::marshalled_length(&list)?;
    let whole = header.checked_add(usize::try_from(size).ok().filter(|size| *size < 1 << 24)?)?;
    if whole > list.len() {
        list.resize(whole, 0);
        file.read_exact_at(&mut list, digests_at(&start)?).ok()?;
    }
    let (name, digest) = own_digest(&list)?;
    (name == unit).then_some(digest)
}

/// A `.cmx` ends with its digest (`middle_end/compilenv.ml`, 4.12 to 5.4).
fn code_digest(file: &fs::File, size: u64) -> Option<Digest> {
    let mut magic = [0; 9];
    file.read_exact_at(&mut magic, 0).ok()?;
    // Y without flambda.
    if &magic != b"Caml1999Y" {
        return None;
    }
    let mut digest = Digest::default();
    file.read_exact_at(&mut digest, size.checked_sub(16)?).ok()?;
    Some(digest)
}
