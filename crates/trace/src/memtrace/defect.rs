//! What can be wrong with a trace: one variant for each defect.

use std::fmt;

use crate::model::{FormatDefect, TraceDefect, Unreadable};

/// A rule of the format that the bytes break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Defect {
    /// The file is empty.
    Empty,
    /// A packet does not start with the magic number.
    Magic {
        /// The four bytes found instead.
        found: u32,
    },
    /// An unknown version of the format.
    Version {
        /// Its number.
        found: u16,
    },
    /// A packet has another version than the trace's first.
    VersionChange {
        /// Its version.
        found: u16,
    },
    /// A packet is smaller than its header, larger than the format allows, or
    /// not a whole number of bytes.
    PacketSize {
        /// The size it states, in bits.
        bits: u32,
    },
    /// A packet ends before it begins, or spans more than 30 seconds.
    PacketTimes {
        /// Time of its first event.
        begin: u64,
        /// Time of its last event.
        end: u64,
    },
    /// A packet's last object id precedes its first, or does not fit 62 bits.
    PacketIds {
        /// The first id.
        first: u64,
        /// The id after the last.
        next: u64,
    },
    /// A packet's cache check names a slot that does not exist.
    CacheCheckSlot {
        /// The slot.
        slot: u16,
        /// Its prediction.
        prediction: u16,
    },
    /// The caches of writer and reader differ: something before was lost or
    /// damaged.
    CacheCheck {
        /// The slot that differs.
        slot: u16,
    },
    /// The first packet does not hold exactly one trace info.
    TraceInfo,
    /// A second trace info.
    TraceInfoAgain,
    /// The sampling rate is not a number above 0 and at most 1.
    SampleRate {
        /// Its bits.
        bits: u64,
    },
    /// The word size is neither 32 nor 64.
    WordSize {
        /// In bits.
        bits: u8,
    },
    /// An event reaches beyond its packet.
    EventOverrun,
    /// No event has this code.
    EventCode {
        /// The code.
        code: u8,
    },
    /// An event's time lies outside its packet's.
    EventTime {
        /// The time.
        time: u64,
    },
    /// A time precedes the one before it in the same domain.
    TimeBackwards {
        /// The earlier time that follows.
        time: u64,
        /// The later time that came first.
        after: u64,
    },
    /// A length is negative or does not fit 62 bits.
    Length {
        /// The length.
        length: i64,
    },
    /// A block of n words and its header cannot have this many samples.
    Samples {
        /// The number of samples.
        samples: i64,
    },
    /// An allocation source other than minor, major and external.
    Source {
        /// Its number.
        source: u8,
    },
    /// A backtrace shares more frames with the previous one than it has.
    CommonPrefix {
        /// The stated number of shared frames.
        prefix: i64,
        /// The depth of the previous backtrace.
        depth: u64,
    },
    /// A backtrace's entries take more than 4,096 bytes.
    BacktraceSize {
        /// Their size.
        bytes: usize,
    },
    /// A code of 0 or of more than 63 bits.
    CodeRange {
        /// The code.
        code: u64,
    },
    /// A backtrace uses a code whose locations were not given before.
    CodeUnknown {
        /// The code.
        code: u64,
    },
    /// A backtrace uses a slot of the cache that was never filled.
    EmptySlot,
    /// A location refers to a recent name that does not exist.
    NameCode {
        /// The code of the name, 0 to 30.
        code: u8,
        /// How many recent names there are.
        known: usize,
    },
    /// The locations of a code are not those given for it before.
    LocationChange {
        /// The code.
        code: u64,
    },
    /// A promotion or collection of an object that was never allocated.
    ObjectId {
        /// The distance from the last allocation's id back to it.
        delta: i64,
    },
    /// A promotion of an object that another domain allocated later. Other
    /// readers refuse it.
    PromoteAhead {
        /// The distance from the last allocation's id back to it.
        delta: i64,
    },
    /// A packet's ids do not follow those of the packet before it.
    IdGap {
        /// The id expected.
        expected: u64,
        /// The id found.
        found: u64,
    },
    /// Two packets use the same ids.
    IdAgain {
        /// The first id of the later packet.
        first: u64,
    },
    /// The number of allocations in a packet differs from its ids.
    AllocationCount {
        /// The id after the last that its header gives.
        stated: u64,
        /// The id after the last that its events give.
        found: u64,
    },
    /// The file ends inside a packet.
    Truncated {
        /// Bytes present.
        have: usize,
        /// Bytes the packet needs; 0 when the header itself is cut.
        need: usize,
    },
    /// More domains than [`crate::Limits`] allow.
    TooManyDomains {
        /// The limit.
        limit: usize,
    },
    /// Deeper backtraces than [`crate::Limits`] allow; frames were left out.
    TooDeep {
        /// The limit, over all domains.
        limit: usize,
    },
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Defect::Empty => write!(f, "the file is empty"),
            Defect::Magic { found } => {
                write!(f, "not the start of a packet: found {found:#010x}, not 0xc1fc1fc1")
            }
            Defect::Version { found } => {
                write!(f, "format version {found}; versions 1, 2 and 3 are known")
            }
            Defect::VersionChange { found } => {
                write!(f, "format version {found} in a trace that began with another")
            }
            Defect::PacketSize { bits } => write!(f, "impossible packet size of {bits} bits"),
            Defect::PacketTimes { begin, end } => {
                write!(f, "impossible packet times: from {begin} to {end} µs")
            }
            Defect::PacketIds { first, next } => {
                write!(f, "impossible object ids in a packet: from {first} to below {next}")
            }
            Defect::CacheCheckSlot { slot, prediction } => {
                write!(f, "cache check of slot {slot} → {prediction}, which does not exist")
            }
            Defect::CacheCheck { slot } => {
                write!(f, "backtrace cache out of step at slot {slot}: something before is missing")
            }
            Defect::TraceInfo => write!(f, "the first packet is not a whole trace info"),
            Defect::TraceInfoAgain => write!(f, "a second trace info"),
            Defect::SampleRate { bits } => {
                write!(f, "sampling rate {} is not in (0, 1]", f64::from_bits(bits))
            }
            Defect::WordSize { bits } => write!(f, "word size of {bits} bits"),
            Defect::EventOverrun => write!(f, "an event reaches beyond its packet"),
            Defect::EventCode { code } => write!(f, "unknown event code {code}"),
            Defect::EventTime { time } => write!(f, "event time {time} µs is outside its packet"),
            Defect::TimeBackwards { time, after } => {
                write!(f, "time runs backwards: {time} µs after {after} µs")
            }
            Defect::Length { length } => write!(f, "impossible block length {length}"),
            Defect::Samples { samples } => {
                write!(f, "impossible number of samples in one block: {samples}")
            }
            Defect::Source { source } => write!(f, "unknown allocation source {source}"),
            Defect::CommonPrefix { prefix, depth } => {
                write!(f, "backtrace shares {prefix} frames with one of {depth}")
            }
            Defect::BacktraceSize { bytes } => {
                write!(f, "a backtrace takes {bytes} bytes, more than 4096")
            }
            Defect::CodeRange { code } => write!(f, "location code {code:#x} is 0 or over 63 bits"),
            Defect::CodeUnknown { code } => {
                write!(f, "location code {code:#x} is used before it is explained")
            }
            Defect::EmptySlot => {
                write!(f, "a backtrace uses an empty cache slot: something before is missing")
            }
            Defect::NameCode { code, known } => {
                write!(f, "recent name number {code}, but only {known} are known")
            }
            Defect::LocationChange { code } => {
                write!(f, "location code {code:#x} is explained again, and differently")
            }
            Defect::ObjectId { delta } => {
                write!(f, "an object that was never allocated (distance {delta})")
            }
            Defect::PromoteAhead { delta } => {
                write!(f, "a promotion of a younger object (distance {delta})")
            }
            Defect::IdGap { expected, found } => {
                write!(f, "object ids go on at {found} instead of {expected}: packets are missing")
            }
            Defect::IdAgain { first } => {
                write!(f, "object ids from {first} on were given before")
            }
            Defect::AllocationCount { stated, found } => {
                write!(f, "packet ends at object id {found}, its header says {stated}")
            }
            Defect::Truncated { have, need: 0 } => {
                write!(f, "the file ends inside a packet header, after {have} bytes of it")
            }
            Defect::Truncated { have, need } => {
                write!(f, "the file ends inside a packet: {have} of its {need} bytes are there")
            }
            Defect::TooManyDomains { limit } => write!(f, "more than {limit} domains"),
            Defect::TooDeep { limit } => {
                write!(f, "backtraces deeper than {limit} frames in all; frames are left out")
            }
        }
    }
}

impl std::error::Error for Defect {}

impl TraceDefect for Defect {
    fn unreadable(&self) -> Option<Unreadable> {
        match *self {
            Defect::Empty => Some(Unreadable::Empty),
            Defect::Magic { found } => Some(Unreadable::Other { found }),
            Defect::Version { found } => Some(Unreadable::Version { newer: found > 3 }),
            Defect::Truncated { .. } => Some(Unreadable::Truncated),
            _ => None,
        }
    }
}

impl From<Defect> for FormatDefect {
    fn from(defect: Defect) -> Self {
        FormatDefect::new(defect)
    }
}

impl PartialEq<Defect> for FormatDefect {
    fn eq(&self, other: &Defect) -> bool {
        self.downcast_ref() == Some(other)
    }
}
