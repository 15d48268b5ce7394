//! The table of all names and source locations of a trace.
//!
//! A reader fills a [`LocationTable`] as it goes. Each name is stored once and
//! referred to by number, so that a table of a hundred thousand locations stays
//! small and tools can group by [`NameId`] without comparing strings.

use std::num::NonZero;
use std::ops::Range;

use crate::model::event::Code;
use crate::model::index::Index;
use crate::model::location::{Location, NameId, NamedLocation};

/// The initial capacity for codes. Pages that are not used are not touched.
const FIRST_CODES: usize = 4096;

/// Stands for a name lost to damage.
pub(crate) const LOST_NAME: &[u8] = b"<lost>";

/// A range of [`LocationTable::locations`] in eight bytes, `Option` included.
#[derive(Clone, Copy)]
struct Span {
    start: u32,
    /// The number of locations, at most 255, plus 1.
    len_plus_one: NonZero<u32>,
}

impl Span {
    fn new(start: u32, len: usize) -> Self {
        Span { start, len_plus_one: NonZero::<u32>::MIN.saturating_add(len as u32) }
    }

    fn range(self) -> Range<usize> {
        let (start, len) = (self.start as usize, self.len_plus_one.get() as usize - 1);
        start..start.saturating_add(len)
    }
}

/// All names and locations read so far.
#[derive(Clone, Default)]
pub struct LocationTable {
    /// Every code that was ever defined. Its span is `None` if the definition
    /// was in a damaged packet and was undone.
    codes: Vec<(Code, Option<Span>)>,
    code_index: Index,
    /// The number of the code that is most likely looked up next: codes are
    /// first used in the order of their definitions.
    expected: u32,
    /// The number of codes that have a span.
    defined: usize,
    /// How often a definition was replaced or undone.
    replaced: u64,
    locations: Vec<NamedLocation>,
    names: Names,
    name_index: Index,
    /// The number of [`LOST_NAME`], once something was lost.
    lost: Option<NameId>,
}

/// All names, concatenated, and where each ends.
#[derive(Clone, Default)]
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

/// How a definition compares with the previous one of the same code.
pub(crate) enum Definition {
    Same,
    /// There was none, or one with lost names.
    New(Undo),
    Different(Undo),
}

/// Reverts one definition.
#[derive(Clone, Copy)]
pub(crate) struct Undo {
    number: u32,
    before: Option<Span>,
}

impl LocationTable {
    /// The locations of a code, outermost function first when calls were
    /// inlined; `None` for a code that was never defined.
    pub fn get(&self, code: Code) -> Option<&[NamedLocation]> {
        self.span_of(code).and_then(|span| self.span(span))
    }

    /// The locations of a code with their names.
    pub fn resolve(&self, code: Code) -> impl Iterator<Item = Location<'_>> + Clone {
        self.get(code).unwrap_or(&[]).iter().map(|location| self.named(location))
    }

    /// Whether the code was defined, even by an empty list.
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

    /// A name's bytes: usually UTF-8, but this is not guaranteed.
    pub fn name(&self, id: NameId) -> &[u8] {
        self.names.get(id).unwrap_or(LOST_NAME)
    }

    /// Defines a code, for tables that no reader fills. Lines and characters that a
    /// trace cannot hold are cut.
    pub fn insert(&mut self, code: Code, locations: &[Location<'_>]) {
        let short = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
        let named: Vec<NamedLocation> = locations
            .iter()
            .take(usize::from(u8::MAX))
            .map(|location| NamedLocation {
                file: self.intern(location.file),
                definition: self.intern(location.definition),
                line: location.line,
                start_char: short(location.start_char),
                end_char: short(location.end_char),
            })
            .collect();
        self.define(code, &named);
    }

    /// The codes that have a definition.
    pub fn codes(&self) -> impl Iterator<Item = Code> {
        self.codes.iter().filter(|(_, span)| span.is_some()).map(|&(code, _)| code)
    }

    /// The number of codes that are defined.
    pub fn len(&self) -> usize {
        self.defined
    }

    /// Whether no code is defined yet.
    pub fn is_empty(&self) -> bool {
        self.defined == 0
    }

    /// All names, by [`NameId::index`].
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.name_count() as u32).map(|number| self.name(NameId(number)))
    }

    /// Whether every code has the locations that it was first defined with.
    pub fn is_stable(&self) -> bool {
        self.replaced == 0
    }

    /// The number of names.
    pub fn name_count(&self) -> usize {
        self.names.ends.len()
    }

    /// [`LocationTable::contains`], fast for codes that are looked up in the
    /// order of their definitions.
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

    /// The number of a code, which is added if it is new.
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

    /// Replaces the span of the code with this number. Returns the previous one.
    fn set_span(&mut self, number: u32, span: Option<Span>) -> Option<Span> {
        let (_, current) = self.codes.get_mut(number as usize)?;
        let before = std::mem::replace(current, span);
        self.defined += usize::from(span.is_some());
        self.defined -= usize::from(before.is_some());
        self.replaced += u64::from(before.is_some());
        before
    }

    fn span(&self, span: Span) -> Option<&[NamedLocation]> {
        self.locations.get(span.range())
    }

    /// The number of a name, which is added if it is new.
    pub(crate) fn intern(&mut self, name: &[u8]) -> NameId {
        // 2³² names would take hundreds of gigabytes; beyond that they share the
        // last number.
        let next = u32::try_from(self.names.ends.len()).unwrap_or(u32::MAX);
        let hash = self.name_index.hash_bytes(name);
        let is = |number| self.names.get(NameId(number)) == Some(name);
        NameId(self.name_index.find_or_add(hash, next, is).unwrap_or_else(|| {
            self.names.push(name);
            next
        }))
    }

    /// Defines a code. A different definition replaces the earlier one, unless
    /// some of its names are lost.
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

    /// The id of the name that stands for those lost to damage.
    pub(crate) fn lost_name(&mut self) -> NameId {
        let lost = self.intern(LOST_NAME);
        self.lost = Some(lost);
        lost
    }

    /// Reverts a [`LocationTable::define`]. The locations themselves stay,
    /// unused.
    pub(crate) fn undo(&mut self, undo: Undo) {
        self.set_span(undo.number, undo.before);
    }
}
