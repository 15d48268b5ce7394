//! Which blocks count: the filters that all verbs share.
//!
//! A block is selected by what is known when it is allocated. How long it will
//! live is not: [`crate::lifespans`] finds that out in a reading of its own.

use heaptap_trace::{Location, LocationTable};
use regex::bytes::Regex;

/// A stretch of numbers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first number in it.
    pub from: u64,
    /// The last.
    pub to: u64,
}

impl Default for Span {
    fn default() -> Self {
        Span { from: 0, to: u64::MAX }
    }
}

impl Span {
    /// Whether the number is in it.
    pub fn contains(&self, number: u64) -> bool {
        (self.from..=self.to).contains(&number)
    }

    /// Whether it leaves nothing out.
    pub fn is_all(&self) -> bool {
        *self == Span::default()
    }
}

/// What a block must be like.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// For each of these, a frame of the stack matches in function or file.
    pub include: Vec<Regex>,
    /// No frame matches any of these.
    pub exclude: Vec<Regex>,
    /// If there are any, the label at the allocation matches one.
    pub labels: Vec<Regex>,
    /// Allocated then, in microseconds since the trace began.
    pub time: Span,
    /// Bytes, without the header.
    pub size: Span,
    /// Microseconds from allocation to collection, or to the end.
    pub lifetime: Span,
    /// If there are any, allocated in one of these.
    pub domains: Vec<u16>,
}

/// What the frames of a stack, together, say to the patterns: a bit for each.
pub(crate) type Marks = u64;

const EXCLUDED: Marks = 1 << 63;
const LABELLED: Marks = 1 << 62;

/// Whether the tracer made this frame for a label. It is the outermost one.
pub(crate) fn is_label(location: &Location<'_>) -> bool {
    location.file == b"label" && location.line == 0
}

impl Selection {
    /// There are no bits for more.
    pub const MOST_INCLUDED: usize = 62;

    /// Whether frames matter.
    pub(crate) fn looks_at_frames(&self) -> bool {
        !(self.include.is_empty() && self.exclude.is_empty() && self.labels.is_empty())
    }

    /// What one frame says.
    pub(crate) fn marks(&self, code: u64, table: &LocationTable) -> Marks {
        table.resolve(code).fold(0, |marks, location| marks | self.location_marks(&location))
    }

    fn location_marks(&self, location: &Location<'_>) -> Marks {
        let matches = |pattern: &Regex| {
            pattern.is_match(location.definition) || pattern.is_match(location.file)
        };
        let mut marks = 0;
        for (bit, pattern) in self.include.iter().take(Self::MOST_INCLUDED).enumerate() {
            marks |= Marks::from(matches(pattern)) << bit;
        }
        if self.exclude.iter().any(matches) {
            marks |= EXCLUDED;
        }
        if is_label(location)
            && self.labels.iter().any(|pattern| pattern.is_match(location.definition))
        {
            marks |= LABELLED;
        }
        marks
    }

    /// Whether a stack with these marks is selected.
    pub(crate) fn accepts(&self, marks: Marks) -> bool {
        let wanted = (1 << self.include.len().min(Self::MOST_INCLUDED)) - 1;
        marks & EXCLUDED == 0
            && marks & wanted == wanted
            && (self.labels.is_empty() || marks & LABELLED != 0)
    }

    /// Whether a block of this size, time and domain is selected.
    pub(crate) fn accepts_block(&self, since_start: u64, bytes: u64, domain: u16) -> bool {
        self.time.contains(since_start)
            && self.size.contains(bytes)
            && (self.domains.is_empty() || self.domains.contains(&domain))
    }
}
