//! What a sidecar says.

/// An event and when it happened, in nanoseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    /// What happened.
    pub event: Event,
}

/// One thing that a sidecar says. Totals are since the program was first traced: a sidecar that is
/// not the first begins with those of the moment ([`Start::is_before`]).
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The first event of a file.
    Start(Start),
    /// A probe exists from now on.
    Probe {
        /// Its number in this file, from 0.
        probe: u32,
        /// What it measures.
        kind: ProbeKind,
        /// Its name; `/` separates the parts of a path.
        name: String,
    },
    /// How often a point was passed.
    Count {
        /// The probe.
        probe: u32,
        /// In all.
        total: u64,
    },
    /// How long a timer has run.
    Timer {
        /// The probe.
        probe: u32,
        /// Nanoseconds in all, of intervals that have not ended too.
        total_ns: u64,
        /// How many intervals have ended.
        runs: u64,
        /// How many intervals are running.
        running: u32,
    },
    /// A value that was set since the last such event.
    Value {
        /// The probe.
        probe: u32,
        /// The last one.
        last: f64,
        /// The least since the last event.
        least: f64,
        /// The greatest since the last event.
        greatest: f64,
    },
    /// A value that is a text.
    Text {
        /// The probe.
        probe: u32,
        /// The last one.
        text: String,
    },
    /// The values that carry a tag.
    Tag {
        /// The probe.
        probe: u32,
        /// How many of them the collector has not found dead.
        live: u64,
        /// How many were marked in all.
        marked: u64,
        /// What they reach.
        size: TagSize,
    },
    /// A line of the program's log.
    Log {
        /// Without its newline.
        text: String,
    },
    /// The program asks the view to stop here.
    Pause {
        /// Why, in the program's words.
        text: String,
    },
    /// What could not be kept, in all.
    Lost {
        /// Lines of the log.
        logs: u64,
        /// Slices; the totals of [`Pauses`] include them.
        slices: u64,
    },
    /// The program stood still, or one of its domains did: its collector worked.
    Slice {
        /// At what.
        kind: SliceKind,
        /// For which domain.
        domain: u16,
        /// How long; the event's time is its beginning.
        ns: u64,
    },
    /// All slices of one kind so far.
    Pauses(Pauses),
    /// The collector's counters.
    Heap(Heap),
    /// What the system says of the process.
    System(System),
    /// The process is about to reach a memory limit.
    Pressure {
        /// Bytes that are left below the limit.
        headroom: u64,
    },
    /// The trace has ended; nothing follows.
    End,
    /// Rows are farther apart than a tick: each from the time of this event on, until another, says
    /// what became of its quantity in this long before it, and not just at its own time.
    Spacing(Spacing),
    /// The writer goes on in another file, which has taken the name of this one and says the same in
    /// fewer rows.
    Replaced,
    /// The marking of a major cycle is done, at the event's time: what is dead is known.
    Cycle {
        /// How many there were in this trace, this one included.
        number: u64,
        /// The cycle had not begun at this time, in nanoseconds since the Unix epoch, and began soon
        /// after: what was born before it and is not dead was reachable then.
        began: u64,
    },
}

impl Event {
    /// The probe that it is about.
    pub(crate) fn probe(&self) -> Option<u32> {
        match *self {
            Event::Probe { probe, .. }
            | Event::Count { probe, .. }
            | Event::Timer { probe, .. }
            | Event::Value { probe, .. }
            | Event::Text { probe, .. }
            | Event::Tag { probe, .. } => Some(probe),
            _ => None,
        }
    }
}

/// How far apart rows are in a part of a file; see [`Event::Spacing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spacing {
    /// The time of its last row, in nanoseconds since the Unix epoch; `u64::MAX`: it goes on.
    pub until: u64,
    /// Nanoseconds.
    pub ns: u64,
}

/// Whose sidecar it is.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Start {
    /// The start time of the trace it belongs to, in microseconds since the Unix epoch.
    pub trace_start: u64,
    /// The process.
    pub pid: u64,
    /// Bytes in a word.
    pub word_size: u8,
    /// The name of the computer.
    pub host: String,
    /// The program.
    pub program: String,
}

impl Start {
    /// Whether an event of this time says what was before the trace began: its file continues
    /// another one, and totals grow from there.
    #[must_use]
    pub fn is_before(&self, time: u64) -> bool {
        time / 1_000 <= self.trace_start
    }
}

/// What a probe measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProbeKind {
    /// How often the program passes points.
    Count,
    /// How long something takes.
    Timer,
    /// A number.
    Value,
    /// A text.
    Text,
    /// Which values are alive.
    Tag,
}

impl ProbeKind {
    /// All of them, by their number in the C ABI and in files.
    pub const ALL: [ProbeKind; 5] =
        [ProbeKind::Count, ProbeKind::Timer, ProbeKind::Value, ProbeKind::Text, ProbeKind::Tag];

    /// Its number in the C ABI and in files.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The kind with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<ProbeKind> {
        Self::ALL.get(number as usize).copied()
    }

    /// Whether it only grows: what happened between two moments is the difference.
    #[must_use]
    pub fn is_total(self) -> bool {
        matches!(self, ProbeKind::Count | ProbeKind::Timer)
    }

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ProbeKind::Count => "count",
            ProbeKind::Timer => "timer",
            ProbeKind::Value => "value",
            ProbeKind::Text => "text",
            ProbeKind::Tag => "tag",
        }
    }
}

/// How many words tagged values and all they reach have, headers included, each block once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagSize {
    /// Not measured.
    Unknown,
    /// Words.
    Exactly(u64),
    /// Words; the rest was not visited, since measuring may not take long.
    AtLeast(u64),
}

/// What a collector does while the program waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SliceKind {
    /// A collection of the minor heap.
    Minor,
    /// A slice of a major collection.
    Major,
    /// Finalisers.
    Finalisers,
}

impl SliceKind {
    /// All of them, by their number in files.
    pub const ALL: [SliceKind; 3] = [SliceKind::Minor, SliceKind::Major, SliceKind::Finalisers];

    /// Its number in files.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The kind with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<SliceKind> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SliceKind::Minor => "minor",
            SliceKind::Major => "major",
            SliceKind::Finalisers => "finalisers",
        }
    }
}

/// All slices of one kind so far, in all domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// Of which kind.
    pub kind: SliceKind,
    /// How many.
    pub count: u64,
    /// Nanoseconds in all.
    pub total_ns: u64,
    /// The longest since the last such event, in nanoseconds.
    pub longest_ns: u64,
}

/// The collector's counters, over all domains. `None`: this runtime does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Heap {
    /// Words allocated in the minor heap, in all.
    pub minor_words: Option<u64>,
    /// Words promoted, in all.
    pub promoted_words: Option<u64>,
    /// Words allocated in the major heap, promoted ones included, in all.
    pub major_words: Option<u64>,
    /// Minor collections.
    pub minor_collections: Option<u64>,
    /// Major cycles that have ended.
    pub major_collections: Option<u64>,
    /// Compactions.
    pub compactions: Option<u64>,
    /// Words of the major heap, free ones included.
    pub heap_words: Option<u64>,
    /// Words of the major heap that are not free. Some of them may be dead.
    pub live_words: Option<u64>,
}

/// What the system says of the process. `None`: it does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct System {
    /// Memory in use, in bytes.
    pub rss: Option<u64>,
    /// Memory in use by the control group, less what the system could drop at once, in bytes.
    pub cgroup_usage: Option<u64>,
    /// The lowest memory limit of the control group and those above it, in bytes.
    pub cgroup_limit: Option<u64>,
    /// Threads of the process.
    pub threads: Option<u64>,
    /// Domains, or other mutators, that are traced.
    pub domains: Option<u64>,
}
