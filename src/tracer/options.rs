//! The options of a session, with their defaults.

use std::sync::Arc;
use std::time::Duration;

use heaptap_trace::{LocationList, TraceFormat};

use crate::probes::ReadHeap;
use crate::queue::BUFFER_WORDS;
use crate::sampling::Rate;
use crate::tracer::budget::Budget;
use crate::writer::{ReadParams, RotationLimits};

/// What to do when no event buffer is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenFull {
    /// Wait up to this long for the writer, then drop the sample and count it.
    Wait(Duration),
    /// Drop the sample and count it at once.
    Drop,
}

/// How blocks are tracked after their allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracking {
    /// The runtime reports each collection, and returns the fate of each block.
    Sweeps,
    /// The runtime reports each block's fate by its address.
    Addresses,
}

/// What is kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecorderLimits {
    /// This much time, if it fits.
    pub(crate) time: Duration,
    /// The most memory.
    pub(crate) bytes: u64,
    /// Whether it is written when the program exits, too.
    pub(crate) at_exit: bool,
}

impl RecorderLimits {
    /// The time is covered by so many whole parts and what is left of another one.
    const PARTS: u32 = 6;

    /// The longest time of a part.
    pub(super) fn part_time(&self) -> Duration {
        self.time / Self::PARTS
    }

    /// The size at which a part is left.
    pub(super) fn part_bytes(&self) -> u64 {
        self.bytes / 8
    }
}

/// Finds the locations of a host's codes. Called on the writer thread.
pub(crate) type Locator = Arc<dyn Fn(u64, &mut LocationList) + Send + Sync>;

/// Finds the name of code without a location in the frame tables. Returns false if
/// it has none. Called on the writer thread.
pub(crate) type Namer = Arc<dyn Fn(u64, &mut LocationList) -> bool + Send + Sync>;

/// Everything that the host or its user chooses about a session.
#[derive(Clone)]
pub(crate) struct Options {
    /// The file's name, before `%p`, `%e` and `%t` are replaced.
    pub(crate) file: Vec<u8>,
    pub(crate) rate: Rate,
    /// What the trace may cost: the rate changes to keep it.
    pub(crate) budget: Option<Budget>,
    /// When the trace goes on in another file, as a series; `None` if it is one file.
    pub(crate) rotation: Option<RotationLimits>,
    /// What is kept in memory and written when it is asked for; `None` if the trace is written all
    /// the time. Not together with `rotation`.
    pub(crate) recorder: Option<RecorderLimits>,
    /// The same seed gives the same samples in the same program. 0: a new one.
    pub(crate) seed: u64,
    /// Header words: between a block's start and the address that the runtime uses.
    pub(crate) header_words: usize,
    /// Whether there is at most one mutator at a time. The file then has version 2.
    pub(crate) one_mutator: bool,
    /// Whether the frame tables have a location for each part of a combined
    /// allocation.
    pub(crate) parts_have_places: bool,
    /// The most frames in a backtrace, of which the innermost are kept.
    pub(crate) max_frames: usize,
    pub(crate) when_full: WhenFull,
    pub(crate) tracking: Tracking,
    /// Whether C frames inside the innermost managed frame are unwound.
    pub(crate) native_frames: bool,
    /// The number of event buffers.
    pub(crate) buffers: usize,
    pub(crate) context: Vec<u8>,
    pub(crate) runtime_params: Vec<u8>,
    /// Reads the runtime's parameters, for a runtime that sets them after the session
    /// has started. They replace `runtime_params`.
    pub(crate) late_params: Option<ReadParams>,
    /// Whether the time line of collector and process is recorded beside the trace, even if the
    /// program has no probes.
    pub(crate) time_line: bool,
    /// The most bytes of the file for both.
    pub(crate) probes_limit: u64,
    /// Reads the collector's counters, on the writer thread.
    pub(crate) read_heap: Option<ReadHeap>,
    /// For codes that are in no frame table.
    pub(crate) locate: Option<Locator>,
    /// For codes that are in a frame table without a location. If it finds no name,
    /// the program's symbols are read.
    pub(crate) name: Option<Namer>,
    /// Whether an address is one of the runtime's own code.
    pub(crate) is_runtime: Option<fn(usize) -> bool>,
}

impl Options {
    /// The default and the upper bound of [`Options::max_frames`]. A backtrace of
    /// that many frames of one recursion still fits the format.
    pub(crate) const MAX_FRAMES: usize = heaptap_settings::MAX_FRAMES as usize;

    /// The default memory for events on their way to the writer.
    pub(crate) const BUFFER_KIB: usize = 8_192;

    /// The default of how long a mutator waits for the writer.
    pub(crate) const WAIT: Duration = Duration::from_secs(1);

    /// The options of a trace into this file, with defaults for everything else.
    pub(crate) fn new(file: Vec<u8>, rate: Rate) -> Options {
        Options {
            file,
            rate,
            budget: None,
            rotation: None,
            recorder: None,
            seed: 0,
            header_words: 0,
            one_mutator: false,
            parts_have_places: false,
            max_frames: Self::MAX_FRAMES,
            when_full: WhenFull::Wait(Self::WAIT),
            tracking: Tracking::Sweeps,
            native_frames: false,
            buffers: Self::buffers_in(Self::BUFFER_KIB),
            context: Vec::new(),
            runtime_params: Vec::new(),
            late_params: None,
            time_line: false,
            probes_limit: heaptap_settings::DEFAULT_PROBES_LIMIT << 20,
            read_heap: None,
            locate: None,
            name: None,
            is_runtime: None,
        }
    }

    /// The trace may cost this share of the program's processor time. The rate is at most `highest`,
    /// or [`Budget::HIGHEST`].
    pub(crate) fn set_budget(&mut self, share: f64, highest: Option<Rate>) {
        let budget = Budget::new(share, highest);
        self.rate = budget.first_rate();
        self.budget = Some(budget);
    }

    /// The number of event buffers in this much memory.
    pub(crate) fn buffers_in(kib: usize) -> usize {
        (kib * 1024 / (BUFFER_WORDS * size_of::<u64>())).max(2)
    }

    pub(crate) fn format(&self) -> TraceFormat {
        if self.one_mutator { TraceFormat::Memtrace2 } else { TraceFormat::Memtrace3 }
    }
}
