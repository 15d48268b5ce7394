//! Which trace was being written when a snapshot was taken, and where that trace is.

use std::path::{Path, PathBuf};

use heaptap_graph::HeapAnalysis;
use heaptap_heap::MetaKey;
use heaptap_trace::TraceInfo;

use crate::exit_status::Failure;
use crate::io::series_files::{PartOnDisk, directory_of};
use crate::io::trace_files::InputFile;

/// What a snapshot says of itself and of its trace.
#[derive(Clone)]
pub(crate) struct SnapshotOrigin {
    /// When it was taken, in microseconds since the Unix epoch.
    pub(crate) taken_us: u64,
    pid: Option<u64>,
    trace_start: Option<u64>,
    trace_file: Option<PathBuf>,
    /// Blocks that the trace tracks, and that had no room.
    left_out: u64,
}

impl SnapshotOrigin {
    pub(crate) fn of(analysis: &HeapAnalysis) -> SnapshotOrigin {
        let facts = analysis.graph.facts();
        let file = facts.meta(MetaKey::TRACE_FILE);
        SnapshotOrigin {
            taken_us: facts.number(MetaKey::TIME).unwrap_or(0) / 1000,
            pid: facts.number(MetaKey::PID),
            trace_start: facts.number(MetaKey::TRACE_START),
            trace_file: file.map(|name| PathBuf::from(&*String::from_utf8_lossy(name))),
            left_out: facts.number(MetaKey::TRACKED_LEFT_OUT).unwrap_or(0),
        }
    }

    /// The trace that was being written, by the name that it had; `None` if there was none.
    pub(crate) fn trace_file(&self) -> Option<&Path> {
        self.trace_file.as_deref()
    }

    /// The trace: the one that is given, or the one that the snapshot names, where it was or beside the snapshot.
    pub(crate) fn find_trace(
        &self,
        snapshot: &Path,
        given: Option<&Path>,
    ) -> Result<PathBuf, Failure> {
        if let Some(given) = given {
            if given.is_dir() {
                return self.part_in(given).ok_or_else(|| {
                    Failure::Trouble(format!(
                        "{}: has no part of a series that was being written when the snapshot was \
                         taken; name a trace",
                        given.display()
                    ))
                });
            }
            return Ok(given.to_owned());
        }
        let Some(named) = &self.trace_file else { return Err(taken_without_trace(snapshot)) };
        let beside = named.file_name().map(|file| snapshot.with_file_name(file));
        let places = [Some(named.clone()), beside];
        let found = places.iter().flatten().find(|path| path.exists()).cloned();
        // The oldest parts of a series, of which it names the first one, are removed.
        let later = || {
            let mut places = places.iter().flatten().map(|path| directory_of(path));
            places.find_map(|directory| self.part_in(directory))
        };
        found.or_else(later).ok_or_else(|| {
            Failure::Trouble(format!(
                "{}: its trace {} is not there; name it with --trace",
                snapshot.display(),
                named.display()
            ))
        })
    }

    /// The parts of the series of this trace up to the one that was being written when the snapshot was
    /// taken, without a gap; `None` if that is not there, or if the trace is in no series.
    pub(super) fn kept_parts(&self, trace: &Path) -> Option<Vec<InputFile>> {
        let own = PartOnDisk::of(trace)?;
        let mut parts = PartOnDisk::all_in(directory_of(trace));
        parts.retain(|part| part.head.series == own.head.series);
        let last = parts.iter().find(|part| self.is_of(part))?.head.part;
        parts.retain(|part| part.head.part <= last);
        parts.sort_by_key(|part| part.head.part);
        let follows = |pair: &[PartOnDisk]| pair[0].head.part + 1 == pair[1].head.part;
        let first = parts.windows(2).rposition(|pair| !follows(pair)).map_or(0, |at| at + 1);
        let file = |part: PartOnDisk| InputFile { path: part.trace, found: true };
        Some(parts.into_iter().skip(first).map(file).collect())
    }

    /// The part of a series that was being written when the snapshot was taken, if it is among these files.
    pub(crate) fn part_among(&self, files: &[InputFile]) -> Option<PathBuf> {
        let mut parts = files.iter().filter_map(|file| PartOnDisk::of(&file.path));
        parts.find(|part| self.is_of(part)).map(|part| part.trace)
    }

    /// The same among the files of a directory.
    fn part_in(&self, directory: &Path) -> Option<PathBuf> {
        let mut parts = PartOnDisk::all_in(directory).into_iter();
        parts.find(|part| self.is_of(part)).map(|part| part.trace)
    }

    /// Whether this part was being written when the snapshot was taken.
    fn is_of(&self, part: &PartOnDisk) -> bool {
        self.trace_start == Some(part.head.start_time)
    }

    /// Why a trace is not that of the snapshot, as far as its header shows.
    pub(crate) fn check(&self, info: &TraceInfo) -> Result<(), &'static str> {
        if self.pid.is_some_and(|pid| pid != info.pid) {
            return Err("it is of another process");
        }
        // A process that runs another program, or traces a second time, has the same number.
        if self.trace_start.is_some_and(|start| start != info.start_time) {
            return Err("it began at another time");
        }
        Ok(())
    }

    /// Fails if blocks are missing: what comes from the others would be too small.
    pub(super) fn check_complete(&self) -> Result<(), Failure> {
        match self.left_out {
            0 => Ok(()),
            missing => Err(Failure::Trouble(format!(
                "the snapshot lists at most 4,194,304 of the blocks that the trace follows, and {missing} had no room, so \
                 that sizes would be too small; trace with a lower --rate, at which fewer blocks are followed"
            ))),
        }
    }
}

/// The failure for a snapshot that was taken without a trace.
pub(crate) fn taken_without_trace(snapshot: &Path) -> Failure {
    Failure::Trouble(format!(
        "{}: no trace was being written when it was taken, so where its blocks were allocated is not known; \
         `heaptap run --snapshot exit -o trace.ctf -- PROGRAM` writes both",
        snapshot.display()
    ))
}
