//! What a trace is to be.

use std::sync::Arc;
use std::time::Duration;

use heaptap_trace::{Format, LocationList};

use crate::queue::BUFFER_WORDS;
use crate::sampling::Rate;

/// What to do when no event buffer is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenFull {
    /// Wait so long for the writer, then drop and count.
    Wait(Duration),
    /// Drop and count at once.
    Drop,
}

/// How blocks are followed after their allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follow {
    /// The runtime's collections are swept.
    Sweeps,
    /// The runtime reports each block's fate by its address.
    Addresses,
}

/// A host's own explanation of its codes. Called on the writer thread.
pub(crate) type Locator = Arc<dyn Fn(u64, &mut LocationList) + Send + Sync>;

/// Names code of which the frame tables say nothing; false if it cannot. Called on
/// the writer thread.
pub(crate) type Namer = Arc<dyn Fn(u64, &mut LocationList) -> bool + Send + Sync>;

/// Everything about a session that its host or its user chooses.
#[derive(Clone)]
pub(crate) struct Options {
    /// The file's name, in which `%p`, `%e` and `%t` stand for something.
    pub(crate) file: Vec<u8>,
    pub(crate) rate: Rate,
    /// The same seed gives the same samples in the same program.
    pub(crate) seed: u64,
    /// Words in front of a block that are part of it.
    pub(crate) header_words: usize,
    /// Whether there is one mutator at a time: the file is then of version 2.
    pub(crate) one_mutator: bool,
    /// Whether the parts of a combined allocation have places of their own in
    /// the frame tables.
    pub(crate) parts_have_places: bool,
    /// The most frames of a backtrace.
    pub(crate) max_frames: usize,
    pub(crate) when_full: WhenFull,
    pub(crate) follow: Follow,
    /// Whether C frames inside the innermost managed frame are unwound.
    pub(crate) native_frames: bool,
    /// Event buffers.
    pub(crate) buffers: usize,
    pub(crate) context: Vec<u8>,
    pub(crate) runtime_params: Vec<u8>,
    /// For codes that are in no frame table.
    pub(crate) locate: Option<Locator>,
    /// For codes that are in a frame table without a place. Where it cannot, the
    /// program's symbols are read.
    pub(crate) name: Option<Namer>,
}

impl Options {
    /// The default and the upper bound of [`Options::max_frames`]. A backtrace of
    /// that many frames of one recursion still fits the format.
    pub(crate) const MAX_FRAMES: usize = heaptap_settings::MAX_FRAMES as usize;

    /// Memory for events on their way, unless told otherwise.
    pub(crate) const BUFFER_KIB: usize = 8_192;

    /// How long a mutator waits for the writer, unless told otherwise.
    pub(crate) const WAIT: Duration = Duration::from_secs(1);

    /// Of a trace into this file, with everything else as it usually is.
    pub(crate) fn new(file: Vec<u8>, rate: Rate) -> Options {
        Options {
            file,
            rate,
            seed: 0,
            header_words: 0,
            one_mutator: false,
            parts_have_places: false,
            max_frames: Self::MAX_FRAMES,
            when_full: WhenFull::Wait(Self::WAIT),
            follow: Follow::Sweeps,
            native_frames: false,
            buffers: Self::buffers_in(Self::BUFFER_KIB),
            context: Vec::new(),
            runtime_params: Vec::new(),
            locate: None,
            name: None,
        }
    }

    /// How many event buffers so much memory is.
    pub(crate) fn buffers_in(kib: usize) -> usize {
        (kib * 1024 / (BUFFER_WORDS * size_of::<u64>())).max(2)
    }

    pub(crate) fn format(&self) -> Format {
        if self.one_mutator { Format::V2 } else { Format::V3 }
    }
}
