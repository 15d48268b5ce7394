//! Source locations: what the codes in backtraces stand for.
//!
//! The decoder fills a [`LocationTable`] as it reads. Names are kept once each
//! and referred to by number, so that a table of a hundred thousand locations
//! stays small and tools can group by [`NameId`] without comparing strings.

use std::num::NonZero;
use std::ops::Range;

use crate::model::event::Code;
use crate::model::index::Index;

/// A place in a source file, with its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location<'a> {
    /// File name.
    pub file: &'a [u8],
    /// Line, from 1.
    pub line: u32,
    /// First character within the line.
    pub start_char: u32,
    /// Last character, counted from the same line's start.
    pub end_char: u32,
    /// The function or module it is part of.
    pub definition: &'a [u8],
}

impl Location<'static> {
    /// Written in place of locations that would take too much room.
    pub const UNKNOWN: Location<'static> =
        Location { file: b"<unknown>", line: 1, start_char: 1, end_char: 1, definition: b"??" };
}

/// Room for so many codes at first. What is not used is not touched either.
const FIRST_CODES: usize = 4096;

/// The name that stands for one lost to damage.
pub(crate) const LOST_NAME: &[u8] = b"<lost>";

/// A name in a [`LocationTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(u32);

impl NameId {
    /// Names are numbered from 0 in the order of their appearance.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A location whose names are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NamedLocation {
    /// File name.
    pub file: NameId,
    /// Function or module.
    pub definition: NameId,
    /// Line.
    pub line: u32,
    /// First character.
    pub start_char: u16,
    /// Last character.
    pub end_char: u16,
}

/// A stretch of [`LocationTable::locations`]. Eight bytes, and as many if there
/// may be none.
#[derive(Clone, Copy)]
struct Span {
    start: u32,
    /// How many locations, at most 255, and one more.
    len_and_one: NonZero<u32>,
}

impl Span {
    fn new(start: u32, len: usize) -> Self {
        Span { start, len_and_one: NonZero::<u32>::MIN.saturating_add(len as u32) }
    }

    fn range(self) -> Range<usize> {
        let (start, len) = (self.start as usize, self.len_and_one.get() as usize - 1);
        start..start.saturating_add(len)
    }
}

/// All names and locations read so far.
#[derive(Default)]
pub struct LocationTable {
    /// Every code that was ever explained. Without a span, if damage took the
    /// explanation back.
    codes: Vec<(Code, Option<Span>)>,
    code_index: Index,
    /// The number of the code to ask for first: after one comes the next.
    expected: u32,
    /// How many codes have a span.
    explained: usize,
    locations: Vec<NamedLocation>,
    names: Names,
    name_index: Index,
    /// The number of [`LOST_NAME`] since something was lost.
    lost: Option<NameId>,
}

/// All names, one behind the other, and where each ends.
#[derive(Default)]
struct Names {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Names {
    fn get(&self, id: NameId) -> Option<&[u8]> {
        let last = id.index().checked_sub(1);
        let start = last.map_or(Some(&0), |last| self.ends.get(last))?;
        self.bytes.get(*start..*self.ends.get(id.index())?)
    }

    fn push(&mut self, name: &[u8]) {
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len());
    }
}

/// How a definition compares with what the table had.
pub(crate) enum Definition {
    Same,
    /// The code had no explanation, or one with lost names.
    New(Undo),
    Different(Undo),
}

/// Takes a definition back.
#[derive(Clone, Copy)]
pub(crate) struct Undo {
    number: u32,
    before: Option<Span>,
}

impl LocationTable {
    /// The locations of a code, outermost function first when calls were
    /// inlined; `None` for a code never explained.
    pub fn get(&self, code: Code) -> Option<&[NamedLocation]> {
        self.span_of(code).and_then(|span| self.span(span))
    }

    /// The same with names in place of their numbers.
    pub fn resolve(&self, code: Code) -> impl Iterator<Item = Location<'_>> + Clone {
        self.get(code).unwrap_or(&[]).iter().map(|location| self.named(location))
    }

    /// Whether the code was explained, if only by an empty list.
    pub fn contains(&self, code: Code) -> bool {
        self.span_of(code).is_some()
    }

    /// A location with its names.
    pub fn named(&self, location: &NamedLocation) -> Location<'_> {
        Location {
            file: self.name(location.file),
            line: location.line,
            start_char: u32::from(location.start_char),
            end_char: u32::from(location.end_char),
            definition: self.name(location.definition),
        }
    }

    /// A name's bytes: usually UTF-8, but nothing promises it.
    pub fn name(&self, id: NameId) -> &[u8] {
        self.names.get(id).unwrap_or(LOST_NAME)
    }

    /// How many codes are explained.
    pub fn len(&self) -> usize {
        self.explained
    }

    /// Whether no code is explained yet.
    pub fn is_empty(&self) -> bool {
        self.explained == 0
    }

    /// How many names there are.
    pub fn name_count(&self) -> usize {
        self.names.ends.len()
    }

    /// [`LocationTable::contains`], for codes that are asked for in the order in
    /// which they were explained.
    pub(crate) fn contains_next(&mut self, code: Code) -> bool {
        if !self.has_number(self.expected, code) {
            match self.number_of(code) {
                Some(number) => self.expected = number,
                None => return false,
            }
        }
        let number = self.expected as usize;
        self.expected = self.expected.saturating_add(1);
        self.codes.get(number).is_some_and(|(_, span)| span.is_some())
    }

    fn has_number(&self, number: u32, code: Code) -> bool {
        self.codes.get(number as usize).is_some_and(|&(there, _)| there == code)
    }

    fn number_of(&self, code: Code) -> Option<u32> {
        let hash = self.code_index.hash_number(code);
        self.code_index.find(hash, |number| self.has_number(number, code))
    }

    fn span_of(&self, code: Code) -> Option<Span> {
        self.codes.get(self.number_of(code)? as usize)?.1
    }

    /// The number of a code, new or not.
    fn number(&mut self, code: Code) -> u32 {
        let next = u32::try_from(self.codes.len()).unwrap_or(u32::MAX);
        let hash = self.code_index.hash_number(code);
        let codes = &self.codes;
        let is = |number| codes.get(number as usize).is_some_and(|&(there, _)| there == code);
        self.code_index.find_or_add(hash, next, is).unwrap_or_else(|| {
            if self.codes.is_empty() {
                self.codes.reserve(FIRST_CODES);
                self.locations.reserve(FIRST_CODES);
            }
            self.codes.push((code, None));
            next
        })
    }

    /// Gives the code of this number a span or none. Returns what it had.
    fn set_span(&mut self, number: u32, span: Option<Span>) -> Option<Span> {
        let (_, place) = self.codes.get_mut(number as usize)?;
        let before = std::mem::replace(place, span);
        self.explained += usize::from(span.is_some());
        self.explained -= usize::from(before.is_some());
        before
    }

    fn span(&self, span: Span) -> Option<&[NamedLocation]> {
        self.locations.get(span.range())
    }

    /// The number of a name, new or not.
    pub(crate) fn intern(&mut self, name: &[u8]) -> NameId {
        // Over 2³² names would take hundreds of gigabytes; past that they
        // share the last number.
        let next = u32::try_from(self.names.ends.len()).unwrap_or(u32::MAX);
        let hash = self.name_index.hash_bytes(name);
        let is = |number| self.names.get(NameId(number)) == Some(name);
        NameId(self.name_index.find_or_add(hash, next, is).unwrap_or_else(|| {
            self.names.push(name);
            next
        }))
    }

    /// Explains a code. A different explanation replaces the earlier one, unless
    /// names of it are lost.
    pub(crate) fn define(&mut self, code: Code, locations: &[NamedLocation]) -> Definition {
        let number = self.number(code);
        let known = self.codes.get(number as usize).and_then(|&(_, span)| self.span(span?));
        let lost = |list: &[NamedLocation]| list.iter().any(|location| self.is_lost(location));
        let replaces = match known {
            Some(known) if known == locations || lost(locations) => return Definition::Same,
            Some(known) => !lost(known),
            None => false,
        };
        let start = u32::try_from(self.locations.len()).unwrap_or(u32::MAX);
        let span = Span::new(start, locations.len());
        self.locations.extend_from_slice(locations);
        let undo = Undo { number, before: self.set_span(number, Some(span)) };
        if replaces { Definition::Different(undo) } else { Definition::New(undo) }
    }

    fn is_lost(&self, location: &NamedLocation) -> bool {
        self.lost.is_some_and(|lost| location.file == lost || location.definition == lost)
    }

    /// The name of what damage made unknown.
    pub(crate) fn lost_name(&mut self) -> NameId {
        let lost = self.intern(LOST_NAME);
        self.lost = Some(lost);
        lost
    }

    /// Takes back what [`LocationTable::define`] did. The locations themselves
    /// stay, unused.
    pub(crate) fn undo(&mut self, undo: Undo) {
        self.set_span(undo.number, undo.before);
    }
}
