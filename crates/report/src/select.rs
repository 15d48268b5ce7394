//! Which blocks count: the filters that all verbs share.
//!
//! A block is selected by facts that are known at its allocation. Its lifetime is
//! not: [`crate::lifespans`] finds it in a separate pass.

use hashbrown::HashMap;
use heaptap_trace::{Code, Location, LocationTable, NameId, NamedLocation, Source};
use regex::bytes::Regex;

use crate::names::shown;

/// A range of numbers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first number.
    pub from: u64,
    /// The last number.
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

    /// Whether it contains every number.
    pub fn is_all(&self) -> bool {
        *self == Span::default()
    }
}

/// The conditions that a block must meet.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// For each of these, a frame of the stack matches in function or file.
    pub include: Vec<Regex>,
    /// No frame matches any of these.
    pub exclude: Vec<Regex>,
    /// Unless empty: the label at the allocation matches one of these.
    pub labels: Vec<Regex>,
    /// The time of allocation, in microseconds since the start of the trace.
    pub time: Span,
    /// The size in bytes, without the header.
    pub size: Span,
    /// Microseconds from allocation to collection, or to the end of the trace.
    pub lifetime: Span,
    /// Unless empty: the block was allocated in one of these domains.
    pub domains: Vec<u16>,
    /// Unless empty: the block has one of these sources.
    pub sources: Vec<Source>,
}

/// The patterns that match any frame of a stack: one bit for each pattern.
pub(crate) type Marks = u64;

const EXCLUDED: Marks = 1 << 63;
const LABELLED: Marks = 1 << 62;

/// Whether the tracer added this frame for a label. Such a frame is the outermost.
pub fn is_label(location: &Location<'_>) -> bool {
    location.file == b"label" && location.line == 0
}

impl Selection {
    /// The most patterns of `include`: `Marks` has no bits for more.
    pub const MOST_INCLUDED: usize = 62;

    /// Whether every block meets the conditions.
    pub fn is_all(&self) -> bool {
        !self.looks_at_frames()
            && [self.time, self.size, self.lifetime].iter().all(Span::is_all)
            && self.domains.is_empty()
            && self.sources.is_empty()
    }

    /// Whether the selection depends on frames.
    pub(crate) fn looks_at_frames(&self) -> bool {
        !(self.include.is_empty() && self.exclude.is_empty() && self.labels.is_empty())
    }

    /// The patterns that match each of these frames. Names occur in many, and are matched once.
    pub(crate) fn marks_of_all(&self, codes: &[Code], table: &LocationTable) -> Vec<Marks> {
        let mut known: HashMap<(NameId, NameId, bool), Marks> = HashMap::new();
        let mut marks = |named: &NamedLocation| {
            // Whether it is a label depends on nothing else.
            let key = (named.definition, named.file, named.line == 0);
            *known.entry(key).or_insert_with(|| self.location_marks(&table.named(named)))
        };
        let of_code =
            |&code| table.get(code).unwrap_or(&[]).iter().fold(0, |all, it| all | marks(it));
        codes.iter().map(of_code).collect()
    }

    /// The patterns that match a frame.
    pub(crate) fn marks(&self, code: u64, table: &LocationTable) -> Marks {
        table.resolve(code).fold(0, |marks, location| marks | self.location_marks(&location))
    }

    fn location_marks(&self, location: &Location<'_>) -> Marks {
        // A name matches as tables show it, and as the trace has it.
        let definition = String::from_utf8_lossy(location.definition);
        let shown = shown(&definition);
        let matches = |pattern: &Regex| {
            pattern.is_match(shown.as_bytes())
                || pattern.is_match(location.definition)
                || pattern.is_match(location.file)
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

    /// Whether a block of this time, size, domain and source is selected.
    pub(crate) fn accepts_block(
        &self,
        since_start: u64,
        bytes: u64,
        domain: u16,
        source: Source,
    ) -> bool {
        self.time.contains(since_start)
            && self.size.contains(bytes)
            && (self.domains.is_empty() || self.domains.contains(&domain))
            && (self.sources.is_empty() || self.sources.contains(&source))
    }
}
