//! Location events: a domain's recent names, and the bytes of its locations.

use crate::memtrace::mtf::MoveToFront;
use crate::memtrace::rules::{
    MAX_END_CHAR, MAX_EVENT_BODY, MAX_LINE, MAX_START_CHAR, MTF_LEN, code,
};
use crate::memtrace::wire::{Packet, until_nul};
use crate::model::event::{Code, event_header};
use crate::model::location::{Location, LocationTable};

/// Tells the locations of a code.
///
/// The encoder asks whenever a code enters a domain's cache, just before the
/// packet that first uses it is written.
pub trait Locate {
    /// Adds the locations of `code`, outermost function first when calls were
    /// inlined. None at all is fine: a frame without debug information.
    fn locate(&mut self, code: Code, list: &mut LocationList);
}

impl Locate for &LocationTable {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        for location in self.resolve(code) {
            list.add(location);
        }
    }
}

/// The locations of one code.
#[derive(Default)]
pub struct LocationList {
    /// All names, one after the other.
    names: Vec<u8>,
    entries: Vec<Listed>,
}

/// A location whose names lie in [`LocationList::names`].
#[derive(Clone, Copy)]
struct Listed {
    file_start: usize,
    definition_start: usize,
    end: usize,
    line: u32,
    start_char: u32,
    end_char: u32,
}

/// More locations than a code can have, so that a list stays bounded.
const MAX_LISTED: usize = 256;

impl LocationList {
    /// Adds a location. Names end at their first NUL; numbers too large for
    /// the format become the largest it has.
    pub fn add(&mut self, location: Location<'_>) {
        if self.entries.len() >= MAX_LISTED || self.names.len() > MAX_EVENT_BODY {
            // Too much already: the code will be written as unknown.
            return;
        }
        let file_start = self.names.len();
        self.names.extend_from_slice(until_nul(location.file));
        let definition_start = self.names.len();
        self.names.extend_from_slice(until_nul(location.definition));
        self.entries.push(Listed {
            file_start,
            definition_start,
            end: self.names.len(),
            line: location.line.min(MAX_LINE),
            start_char: location.start_char.min(MAX_START_CHAR),
            end_char: location.end_char.min(MAX_END_CHAR),
        });
    }

    pub(crate) fn clear(&mut self) {
        self.names.clear();
        self.entries.clear();
    }

    /// The most bytes the list takes in an event, should no name be recent.
    fn size(&self) -> usize {
        8 + 1 + self.entries.len() * (6 + 1 + 1) + self.names.len()
    }

    /// Whether one event can hold the list.
    fn fits(&self) -> bool {
        self.entries.len() <= 255 && self.size() <= MAX_EVENT_BODY
    }

    /// Whether the event certainly fits a packet with this much room. The rule
    /// that a packet with more than 4,096 bytes takes another location forgets
    /// the event's header, which the longest of them leaves no room for.
    pub(crate) fn fits_room(&self, room: usize) -> bool {
        !self.fits() || 4 + self.size() <= room
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

#[derive(Default)]
struct File {
    name: Vec<u8>,
    definitions: Definitions,
}

#[derive(Default)]
struct Definitions(MoveToFront<Vec<u8>>);

impl<T> Default for MoveToFront<T> {
    fn default() -> Self {
        MoveToFront::new()
    }
}

/// The move-to-front tables of one domain.
pub(crate) struct RecentNames {
    files: MoveToFront<File>,
}

impl RecentNames {
    pub(crate) fn new() -> Self {
        RecentNames { files: MoveToFront::new() }
    }

    /// Writes a location event.
    pub(crate) fn put(&mut self, packet: &mut Packet, time: u64, code: Code, list: &LocationList) {
        packet.u32(event_header(code::LOCATION, time));
        packet.u64(code);
        if list.fits() {
            packet.u8(list.entries.len() as u8);
            for location in list.iter() {
                self.put_location(packet, &location);
            }
        } else {
            packet.u8(1);
            self.put_location(packet, &Location::UNKNOWN);
        }
    }

    fn put_location(&mut self, packet: &mut Packet, location: &Location<'_>) {
        let (file_code, definition_code) = self.codes(location);
        let packed = u64::from(location.line)
            | u64::from(location.start_char) << 20
            | u64::from(location.end_char) << 28
            | (file_code as u64) << 38
            | (definition_code as u64) << 43;
        packet.u32(packed as u32);
        packet.u16((packed >> 32) as u16);
        if file_code == MTF_LEN {
            packet.string(location.file);
        }
        if definition_code == MTF_LEN {
            packet.string(location.definition);
        }
    }

    /// The codes of a location's names, [`MTF_LEN`] for new ones, which are
    /// then the most recent.
    fn codes(&mut self, location: &Location<'_>) -> (usize, usize) {
        let known = self.files.position(|file| file.name == location.file);
        let file = match known {
            Some(code) => self.files.touch(code),
            None => self.files.push(|spare| {
                let mut file = spare.unwrap_or_default();
                set(&mut file.name, location.file);
                // A new file starts without definitions.
                file.definitions.0.clear();
                file
            }),
        };
        let file_code = known.unwrap_or(MTF_LEN);
        let Some(File { definitions: Definitions(definitions), .. }) = file else {
            return (file_code, MTF_LEN);
        };
        let known = definitions.position(|name| name == location.definition);
        match known {
            Some(code) => _ = definitions.touch(code),
            None => {
                definitions.push(|spare| {
                    let mut name = spare.unwrap_or_default();
                    set(&mut name, location.definition);
                    name
                });
            }
        }
        (file_code, known.unwrap_or(MTF_LEN))
    }
}

fn set(name: &mut Vec<u8>, text: &[u8]) {
    name.clear();
    name.extend_from_slice(text);
}
