//! Source locations: what the codes in backtraces stand for.
//!
//! The decoder fills a [`LocationTable`] as it reads. Names are kept once each
//! and referred to by number, so that a table of a hundred thousand locations
//! stays small and tools can group by [`NameId`] without comparing strings.

use std::collections::HashMap;
use std::sync::Arc;

use crate::event::Code;
use crate::seeded::Seeded;

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

/// A stretch of [`LocationTable::locations`].
#[derive(Clone, Copy)]
struct Span {
    start: u32,
    len: u32,
}

/// All names and locations read so far.
#[derive(Default)]
pub struct LocationTable {
    spans: HashMap<Code, Span, Seeded>,
    locations: Vec<NamedLocation>,
    numbers: HashMap<Arc<[u8]>, NameId, Seeded>,
    names: Vec<Arc<[u8]>>,
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
        self.spans.get(&code).and_then(|&span| self.span(span))
    }

    /// The same with names in place of their numbers.
    pub fn resolve(&self, code: Code) -> impl Iterator<Item = Location<'_>> + Clone {
        self.get(code).unwrap_or(&[]).iter().map(|location| self.named(location))
    }

    /// Whether the code was explained, if only by an empty list.
    pub fn contains(&self, code: Code) -> bool {
        self.spans.contains_key(&code)
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
        self.names.get(id.index()).map_or(LOST_NAME, |name| name)
    }

    /// How many codes are explained.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether no code is explained yet.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// How many names there are.
    pub fn name_count(&self) -> usize {
        self.names.len()
    }

    fn span(&self, span: Span) -> Option<&[NamedLocation]> {
        let start = span.start as usize;
        self.locations.get(start..start.checked_add(span.len as usize)?)
    }

    /// The number of a name, new or not.
    pub(crate) fn intern(&mut self, name: &[u8]) -> NameId {
        if let Some(&id) = self.numbers.get(name) {
            return id;
        }
        // Over 2³² names would take hundreds of gigabytes; past that they
        // share the last number.
        let id = NameId(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        let name: Arc<[u8]> = name.into();
        self.names.push(Arc::clone(&name));
        self.numbers.insert(name, id);
        id
    }

    /// Explains a code. A different explanation replaces the earlier one, unless
    /// names of it are lost.
    pub(crate) fn define(&mut self, code: Code, locations: &[NamedLocation]) -> Definition {
        let known = self.get(code);
        let lost = |list: &[NamedLocation]| list.iter().any(|location| self.is_lost(location));
        let replaces = match known {
            Some(known) if known == locations || lost(locations) => return Definition::Same,
            Some(known) => !lost(known),
            None => false,
        };
        let start = u32::try_from(self.locations.len()).unwrap_or(u32::MAX);
        let span = Span { start, len: locations.len() as u32 };
        self.locations.extend_from_slice(locations);
        let undo = Undo { code, before: self.spans.insert(code, span) };
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
        match undo.before {
            Some(span) => _ = self.spans.insert(undo.code, span),
            None => _ = self.spans.remove(&undo.code),
        }
    }
}
