//! Source locations for the codes that a sink has to write.

use crate::model::event::Code;
use crate::model::location::Location;
use crate::model::table::LocationTable;

/// Resolves codes to source locations.
///
/// An encoder calls it when a code enters a domain's cache, just before it
/// writes the packet that first uses the code.
pub trait Locate {
    /// Adds the locations of `code`, outermost function first when calls were
    /// inlined. A frame without debug information has none.
    fn locate(&mut self, code: Code, list: &mut LocationList);
}

impl Locate for &LocationTable {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        for location in self.resolve(code) {
            list.add(location);
        }
    }
}

impl<L: Locate + ?Sized> Locate for &mut L {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        (**self).locate(code, list);
    }
}

/// The locations of one code, in memory that is reused for the next code.
#[derive(Default)]
pub struct LocationList {
    /// All names, concatenated.
    names: Vec<u8>,
    entries: Vec<ListedLocation>,
}

/// A location whose names lie in [`LocationList::names`].
#[derive(Clone, Copy)]
struct ListedLocation {
    file_start: usize,
    definition_start: usize,
    end: usize,
    line: u32,
    start_char: u32,
    end_char: u32,
}

/// A list stops growing beyond these: no format stores so much for one code.
const MAX_LISTED: usize = 256;
const MAX_NAME_BYTES: usize = 4_096;

impl LocationList {
    /// Adds a location. Names end at their first NUL.
    pub fn add(&mut self, location: Location<'_>) {
        if self.entries.len() >= MAX_LISTED || self.names.len() > MAX_NAME_BYTES {
            return;
        }
        let file_start = self.names.len();
        self.names.extend_from_slice(until_nul(location.file));
        let definition_start = self.names.len();
        self.names.extend_from_slice(until_nul(location.definition));
        self.entries.push(ListedLocation {
            file_start,
            definition_start,
            end: self.names.len(),
            line: location.line,
            start_char: location.start_char,
            end_char: location.end_char,
        });
    }

    pub(crate) fn clear(&mut self) {
        self.names.clear();
        self.entries.clear();
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The length of all names together.
    pub(crate) fn name_bytes(&self) -> usize {
        self.names.len()
    }

    /// The locations in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = Location<'_>> {
        let name = |start, end| self.names.get(start..end).unwrap_or(&[]);
        self.entries.iter().map(move |entry| Location {
            file: name(entry.file_start, entry.definition_start),
            line: entry.line,
            start_char: entry.start_char,
            end_char: entry.end_char,
            definition: name(entry.definition_start, entry.end),
        })
    }
}

/// The part of `text` that a NUL-terminated field can hold.
pub(crate) fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == 0).next().unwrap_or(text)
}
