//! A series that is tailed: which file comes next, and what its sidecar has by now.
//!
//! The parts are read in the order in which they were written, each with its sidecar. Within a
//! part, events of several domains come in the order of the file, as in any trace that grows.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use heaptap_trace::{
    Event, LocationTable, SeriesDefect, SeriesHead, SeriesReader, SeriesSummary, SeriesTail,
    TakeSeriesEvent, series_name,
};

use crate::io::series_files::{PartOnDisk, directory_of};

/// Where a series goes on.
pub(super) enum NextPart {
    /// In this part.
    Follows(PathBuf),
    /// Parts in between are gone: it can be read again from this one.
    Later(PathBuf),
}

/// A series that is tailed, at one of its parts.
pub(super) struct LiveSeries {
    tail: SeriesTail<WholeChunks>,
    /// The parts that were read, the last one is being read.
    parts: Vec<PathBuf>,
    head: SeriesHead,
}

impl LiveSeries {
    /// The series of which this trace is a part, from this part on; `None` if it is none.
    pub(super) fn from(trace: &Path) -> io::Result<Option<LiveSeries>> {
        let Some(PartOnDisk { head, .. }) = PartOnDisk::of(trace) else { return Ok(None) };
        let mut series = LiveSeries { tail: SeriesTail::default(), parts: Vec::new(), head };
        series.begin_part(trace)?;
        Ok(Some(series))
    }

    /// Goes on in this part.
    pub(super) fn begin_part(&mut self, trace: &Path) -> io::Result<()> {
        let name = series_name(trace.as_os_str());
        // After a truncation, its ids are counted from elsewhere.
        let mut whole = SeriesReader::new(BufReader::new(File::open(&name)?))?;
        let summary = SeriesSummary::of(&mut whole)?;
        let sidecar = SeriesReader::new(WholeChunks::new(File::open(&name)?))?;
        let Some(&head) = sidecar.head() else {
            return Err(io::Error::other("it is not the sidecar of a series"));
        };
        self.head = head;
        self.tail.begin_part(sidecar, summary.first_id, self.parts.is_empty());
        self.parts.push(trace.to_owned());
        Ok(())
    }

    /// Where it goes on after this part.
    pub(super) fn next_part(&self) -> Option<NextPart> {
        let mut parts = PartOnDisk::all_in(directory_of(self.parts.last()?));
        let SeriesHead { series, part, .. } = self.head;
        parts.retain(|next| next.head.series == series && next.head.part > part);
        parts.sort_by_key(|next| next.head.part);
        let next = parts.into_iter().next()?;
        let follows = next.head.part == part + 1;
        Some(if follows { NextPart::Follows(next.trace) } else { NextPart::Later(next.trace) })
    }

    /// The rates of all parts that are there by now.
    pub(super) fn rates(&self) -> Vec<f64> {
        let Some(part) = self.parts.last() else { return Vec::new() };
        let parts = PartOnDisk::all_in(directory_of(part));
        let ours = parts.iter().filter(|part| part.head.series == self.head.series);
        let of = |part: &PartOnDisk| {
            let sidecar = File::open(series_name(part.trace.as_os_str()))?;
            SeriesSummary::of(&mut SeriesReader::new(BufReader::new(sidecar))?)
        };
        let rates = ours.flat_map(|part| {
            let others = of(part).map_or_else(|_| Vec::new(), |summary| summary.rates);
            others.into_iter().chain([part.head.rate])
        });
        rates.collect()
    }

    /// The parts that were read.
    pub(super) fn parts(&self) -> &[PathBuf] {
        &self.parts
    }

    /// When the part begins that is being read, in microseconds since the epoch.
    pub(super) fn part_start(&self) -> u64 {
        self.head.start_time
    }

    /// The sidecar says that the part is complete.
    pub(super) fn part_is_complete(&self) -> bool {
        self.tail.part_is_complete()
    }

    pub(super) fn locations(&self) -> &LocationTable {
        self.tail.locations()
    }

    /// What is not known of the blocks that were alive at the beginning, or have ended since.
    pub(super) fn gaps(&self) -> Option<String> {
        if let Some(defect) = self.tail.defect().filter(|defect| *defect != SeriesDefect::Cut) {
            return Some(format!(
                "its sidecar is damaged ({defect}): what became of blocks of earlier files is not \
                 known from then on"
            ));
        }
        let is_first = self.parts.len() == 1;
        self.tail.left_out().filter(|_| is_first).map(|_| {
            "it goes on from other files of a series: what was alive when it began is not listed \
             in it, and not in live sizes"
                .to_owned()
        })
    }

    /// Passes on an event of the part's trace, after what its sidecar has before it.
    pub(super) fn event(
        &mut self,
        event: &Event<'_>,
        table: &LocationTable,
        take: &mut TakeSeriesEvent<'_>,
    ) -> io::Result<()> {
        self.tail.event(event, table, take)
    }

    /// Passes on what the sidecar has besides: there is no more in the trace for now.
    pub(super) fn rest(&mut self, take: &mut TakeSeriesEvent<'_>) -> io::Result<()> {
        self.tail.rest(take)
    }
}

/// A sidecar that grows, up to the last chunk that is whole: its end is the end of that.
struct WholeChunks {
    file: File,
    read: u64,
    /// All bytes before this are there.
    whole: u64,
}

impl WholeChunks {
    /// The bytes of the magic number, and those in front of the records of a chunk.
    const BYTES: u64 = 8;

    fn new(file: File) -> WholeChunks {
        WholeChunks { file, read: 0, whole: Self::BYTES }
    }
}

impl Read for WholeChunks {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.read == self.whole {
            let mut header = [0; Self::BYTES as usize];
            if self.file.read_exact_at(&mut header, self.whole).is_err() {
                return Ok(0);
            }
            let [a, b, c, d, ..] = header;
            let end = self.whole + Self::BYTES + u64::from(u32::from_le_bytes([a, b, c, d]));
            if self.file.metadata()?.len() < end {
                return Ok(0);
            }
            self.whole = end;
        }
        let left = usize::try_from(self.whole - self.read).unwrap_or(usize::MAX);
        let most = room.len().min(left);
        let count = self.file.read_at(room.get_mut(..most).unwrap_or_default(), self.read)?;
        self.read += count as u64;
        Ok(count)
    }
}
