//! Location events: a domain's recent names, and the bytes of its locations.

use crate::memtrace::event::event_header;
use crate::memtrace::mtf::MoveToFront;
use crate::memtrace::rules::{
    MAX_END_CHAR, MAX_EVENT_BODY, MAX_LINE, MAX_START_CHAR, MTF_LEN, code,
};
use crate::memtrace::wire::Packet;
use crate::model::{Code, Location, LocationList};

/// The most bytes that a list takes in an event: no name is recent.
fn size(list: &LocationList) -> usize {
    8 + 1 + list.len() * (6 + 1 + 1) + list.name_bytes()
}

/// Whether one event can hold the list.
fn fits(list: &LocationList) -> bool {
    list.len() <= 255 && size(list) <= MAX_EVENT_BODY
}

/// Whether the event certainly fits a packet with this much room. The format's
/// rule that a packet with more than 4,096 bytes takes another location ignores
/// the event's header, for which the longest of them leaves no room.
pub(crate) fn fits_room(list: &LocationList, room: usize) -> bool {
    !fits(list) || 4 + size(list) <= room
}

/// A recently used file, with the definitions recently used in it.
#[derive(Default)]
struct RecentFile {
    name: Vec<u8>,
    definitions: MoveToFront<Vec<u8>>,
}

/// The move-to-front tables of one domain.
pub(crate) struct RecentNames {
    files: MoveToFront<RecentFile>,
}

impl RecentNames {
    pub(crate) fn new() -> Self {
        RecentNames { files: MoveToFront::new() }
    }

    /// Writes a location event.
    pub(crate) fn put(&mut self, packet: &mut Packet, time: u64, code: Code, list: &LocationList) {
        packet.u32(event_header(code::LOCATION, time));
        packet.u64(code);
        if fits(list) {
            packet.u8(list.len() as u8);
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
        // Numbers too large for their field become the largest it holds.
        let packed = u64::from(location.line.min(MAX_LINE))
            | u64::from(location.start_char.min(MAX_START_CHAR)) << 20
            | u64::from(location.end_char.min(MAX_END_CHAR)) << 28
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
                file.definitions.clear();
                file
            }),
        };
        let file_code = known.unwrap_or(MTF_LEN);
        let Some(RecentFile { definitions, .. }) = file else {
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
