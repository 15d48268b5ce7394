//! Source locations: what the codes in backtraces stand for.
//!
//! The decoder fills a [`LocationTable`] as it reads. Names are kept once each
//! and referred to by number, so that a table of a hundred thousand locations
//! stays small and tools can group by [`NameId`] without comparing strings.

use std::num::NonZero;
use std::ops::Range;

use crate::event::Code;
use crate::index::Index;

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
    /// All names, one behind the other, and where each ends.
    names: Vec<u8>,
    name_ends: Vec<usize>,
    name_index: Index,
    /// The number of [`LOST_NAME`] since something was lost.
    lost: Option<NameId>,
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
    code: Code,
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
        let start = id.index().checked_sub(1).map_or(Some(&0), |last| self.name_ends.get(last));
        match (start, self.name_ends.get(id.index())) {
            (Some(&start), Some(&end)) => self.names.get(start..end).unwrap_or(LOST_NAME),
            _ => LOST_NAME,
        }
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
        self.name_ends.len()
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

    /// Gives the code of this number, or a new one, a span or none. Returns what
    /// it had.
    fn set_span(&mut self, number: Option<u32>, code: Code, span: Option<Span>) -> Option<Span> {
        let number = number.unwrap_or_else(|| {
            let number = u32::try_from(self.codes.len()).unwrap_or(u32::MAX);
            if self.codes.is_empty() {
                self.codes.reserve(FIRST_CODES);
                self.locations.reserve(FIRST_CODES);
            }
            self.codes.push((code, None));
            self.code_index.add(self.code_index.hash_number(code), number);
            number
        });
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
        let hash = self.name_index.hash_bytes(name);
        let is = |number| self.name(NameId(number)) == name;
        if let Some(number) = self.name_index.find(hash, is) {
            return NameId(number);
        }
        // Over 2³² names would take hundreds of gigabytes; past that they
        // share the last number.
        let number = u32::try_from(self.name_ends.len()).unwrap_or(u32::MAX);
        self.names.extend_from_slice(name);
        self.name_ends.push(self.names.len());
        self.name_index.add(hash, number);
        NameId(number)
    }

    /// Explains a code. A different explanation replaces the earlier one, unless
    /// names of it are lost.
    pub(crate) fn define(&mut self, code: Code, locations: &[NamedLocation]) -> Definition {
        let number = self.number_of(code);
        let known = number.and_then(|number| self.codes.get(number as usize)?.1);
        let known = known.and_then(|span| self.span(span));
        let lost = |list: &[NamedLocation]| list.iter().any(|location| self.is_lost(location));
        let replaces = match known {
            Some(known) if known == locations || lost(locations) => return Definition::Same,
            Some(known) => !lost(known),
            None => false,
        };
        let start = u32::try_from(self.locations.len()).unwrap_or(u32::MAX);
        let span = Span::new(start, locations.len());
        self.locations.extend_from_slice(locations);
        let undo = Undo { code, before: self.set_span(number, code, Some(span)) };
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
        self.set_span(self.number_of(undo.code), undo.code, undo.before);
    }
}
