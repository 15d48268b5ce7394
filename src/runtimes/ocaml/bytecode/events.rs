//! Debug events: the source location of an offset in the bytecode.
//!
//! Read as in `runtime/backtrace_byt.c` (4.14.1). The section holds a number of
//! units, and for each the start of its code, its list of events, and a list of
//! directories.

use std::collections::HashSet;
use std::sync::Arc;

use super::marshal::{Values, lengths};
use super::tree::Tree;

/// The source location of one offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// In bytes from the beginning of the code.
    offset: u64,
    pub(super) file: Arc<[u8]>,
    pub(super) definition: Arc<[u8]>,
    pub(super) line: u32,
    pub(super) start_char: u32,
    pub(super) end_char: u32,
}

/// All events, sorted by offset.
pub(super) struct Events(Vec<Event>);

/// Bytes of an instruction.
const INSTRUCTION: u64 = 4;

/// Strings that are kept once.
#[derive(Default)]
struct Names(HashSet<Arc<[u8]>>);

impl Names {
    fn keep(&mut self, name: &[u8]) -> Arc<[u8]> {
        if let Some(known) = self.0.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<[u8]> = name.into();
        self.0.insert(Arc::clone(&name));
        name
    }
}

impl Events {
    pub(super) fn parse(section: &[u8]) -> Option<Events> {
        let (mut all, mut names) = (Vec::new(), Names::default());
        let mut rest = section;
        let units = number(&mut rest)?;
        for _ in 0..units {
            let origin = u64::from(number(&mut rest)?);
            let events = marshalled(&mut rest)?;
            // A unit that cannot be read has no events; the others have.
            if let Some(values) = Values::read(events) {
                add_unit(&values, values.root, origin, &mut names, &mut all);
            }
            marshalled(&mut rest)?;
        }
        Some(Events::sorted(all))
    }

    /// The events of an array of units, whose offsets all count from the same
    /// address.
    pub(super) fn of_units<T: Tree>(tree: &T, array: T::Value) -> Events {
        let (mut all, mut names) = (Vec::new(), Names::default());
        let units = (0..).map_while(|index| tree.field(array, index));
        units.for_each(|list| add_unit(tree, list, 0, &mut names, &mut all));
        Events::sorted(all)
    }

    fn sorted(mut all: Vec<Event>) -> Events {
        all.sort_by_key(|event| event.offset);
        Events(all)
    }

    /// The event of a return address. The compiler may move one past a
    /// following instruction.
    pub(super) fn find(&self, offset: u64) -> Option<&Event> {
        let at = |offset: u64| {
            let index = self.0.binary_search_by_key(&offset, |event| event.offset).ok()?;
            self.0.get(index)
        };
        at(offset).or_else(|| at(offset.checked_add(INSTRUCTION)?))
    }

    /// The event at the beginning of a function, whose code begins at `offset`. With debug
    /// information every function has one (`event_function`, `lambda/translcore.ml`, 4.14.1),
    /// behind `GRAB` and its operand if it takes several arguments. No function is shorter than
    /// three words, so what lies within that is its own.
    pub(super) fn find_function(&self, offset: u64) -> Option<&Event> {
        const LONGEST_ENTRY: u64 = 2 * INSTRUCTION;
        let after = self.0.partition_point(|event| event.offset < offset);
        self.0.get(after).filter(|event| event.offset - offset <= LONGEST_ENTRY)
    }
}

/// A number of 4 bytes.
fn number(rest: &mut &[u8]) -> Option<u32> {
    let (bytes, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    Some(u32::from_be_bytes(*bytes))
}

/// The bytes of a marshalled value.
fn marshalled<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (header, data) = lengths(rest)?;
    let length = header.checked_add(data)?;
    let value = rest.get(..length)?;
    *rest = rest.get(length..)?;
    Some(value)
}

fn add_unit<T: Tree>(
    tree: &T,
    mut list: T::Value,
    origin: u64,
    names: &mut Names,
    all: &mut Vec<Event>,
) {
    // Shared objects could make a circle of the list.
    for _ in 0..10_000_000 {
        let (Some(event), Some(next)) = (tree.field(list, 0), tree.field(list, 1)) else {
            return;
        };
        all.extend(event_at(tree, event, origin, names));
        list = next;
    }
}

/// Field numbers as in `runtime/backtrace_byt.c`.
fn event_at<T: Tree>(tree: &T, event: T::Value, origin: u64, names: &mut Names) -> Option<Event> {
    let (position, location, definition) = (0, 2, 4);
    let (start, end) = (0, 1);
    let (file, line, begin_of_line, character) = (0, 1, 2, 3);
    let int = |value: T::Value, field: usize| tree.int(tree.field(value, field)?);
    let from = tree.field(tree.field(event, location)?, start)?;
    let to = tree.field(tree.field(event, location)?, end)?;
    let begin = int(from, begin_of_line)?;
    let column = |place: T::Value| Some(u32::try_from(int(place, character)? - begin).unwrap_or(0));
    let definition = tree.field(event, definition).and_then(|name| tree.string(name));
    Some(Event {
        offset: origin.checked_add(u64::try_from(int(event, position)?).ok()?)?,
        file: names.keep(tree.string(tree.field(from, file)?)?),
        definition: names.keep(definition.unwrap_or(b"??")),
        line: u32::try_from(int(from, line)?).ok()?,
        start_char: column(from)?,
        end_char: column(to)?,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::marshal::tests::marshalled;
    use super::*;

    /// One event.
    pub(in super::super) fn one(offset: u64, line: u32) -> Events {
        let (file, definition) = (b"a.ml"[..].into(), b"A.f"[..].into());
        Events(vec![Event { offset, file, definition, line, start_char: 5, end_char: 9 }])
    }

    /// A list of one event at 8, in "a.ml", line 3, characters 5 to 9.
    fn unit() -> Vec<u8> {
        let mut data = vec![0xA0, 0xD0, 0x48, 0x21, b'A'];
        data.extend([0xB0, 0xC0, 0x24, b'a', b'.', b'm', b'l', 0x43, 0x4A, 0x4F]);
        data.extend([0xC0, 0x04, 0x01, 0x43, 0x4A, 0x53, 0x40]);
        data.extend([0x40, 0x23, b'A', b'.', b'f', 0x40]);
        marshalled(&data)
    }

    fn section(origins: &[u32]) -> Vec<u8> {
        let mut section = (origins.len() as u32).to_be_bytes().to_vec();
        for origin in origins {
            section.extend(origin.to_be_bytes());
            section.extend(unit());
            section.extend(marshalled(&[0x40]));
        }
        section
    }

    #[test]
    fn events_are_moved_to_where_their_unit_is() {
        let events = Events::parse(&section(&[0, 100])).unwrap();
        let event = events.find(108).unwrap();
        assert_eq!((&event.file[..], &event.definition[..]), (&b"a.ml"[..], &b"A.f"[..]));
        assert_eq!((event.line, event.start_char, event.end_char), (3, 5, 9));
        assert_eq!(events.find(104), Some(event));
        assert!(events.find(8).is_some() && events.find(12).is_none());
    }

    #[test]
    fn a_function_has_the_event_at_its_beginning() {
        let events = Events::parse(&section(&[0, 100])).unwrap();
        let line = |offset| events.find_function(offset).map(|event| event.offset);
        assert_eq!([100, 104, 108].map(line), [Some(108); 3]);
        assert_eq!([96, 12, 112].map(line), [None; 3]);
    }

    #[test]
    fn a_section_cut_off_has_no_events() {
        let whole = section(&[0]);
        for end in 0..whole.len() {
            assert!(Events::parse(&whole[..end]).is_none(), "{end}");
        }
    }
}
