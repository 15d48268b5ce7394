//! What addresses in bytecode are, and their source locations.
//!
//! - `events`: the source location of an offset. The events of the program itself are
//!   in the debug section of the executable, marshalled (`marshal`). The runtime's own
//!   decoder allocates in the heap, so the file is read here: on the writer thread, when
//!   the first location is needed; nothing in it is trusted.
//! - `loaded`: code that is loaded while the program runs; `ranges`: its addresses;
//!   `heap`: its events; `primitives`: the runtime's functions that load it.
//! - `tree`: marshalled values and those in the heap, read alike.

mod events;
mod heap;
mod loaded;
mod marshal;
mod primitives;
mod ranges;
mod tree;

use std::ffi::{CStr, OsStr, c_char};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use heaptap_symbols::SourceLocation;
use heaptap_trace::{Location, LocationList};

use crate::runtimes::attach::symbols;
use crate::sys::race_once::RaceOnce;
use crate::tracer::Locator;
use events::{Event, Events};
use loaded::Bounds;
pub(super) use primitives::follow as follow_loading;

/// More than any program's debug section.
const LARGEST: u64 = 1 << 30;

/// The program's bytecode.
#[derive(Clone, Copy)]
pub(super) struct Code {
    /// Where the runtime keeps the address of its first byte.
    start: usize,
    /// Where the runtime keeps its length.
    size: usize,
}

impl Code {
    pub(super) fn find() -> Option<Code> {
        let start = symbols::lookup(c"caml_start_code")?;
        let size = symbols::lookup(c"caml_code_size")?;
        Some(Code { start, size })
    }

    /// Where code is now. That is good for a walk: what is loaded meanwhile is on
    /// nobody else's stack. Inside hooks.
    #[inline]
    pub(super) fn now(self) -> Addresses {
        // SAFETY: `code_t caml_start_code`.
        let start = unsafe { (self.start as *const usize).read() };
        // SAFETY: `asize_t caml_code_size`.
        let size = unsafe { (self.size as *const usize).read() };
        Addresses { start, size, loaded: Bounds::now() }
    }
}

/// Where the program's code is, and what it has loaded.
#[derive(Clone, Copy)]
pub(super) struct Addresses {
    start: usize,
    size: usize,
    loaded: Bounds,
}

impl Addresses {
    /// For tests: a program that has loaded nothing.
    #[cfg(test)]
    pub(super) fn of_program(start: usize, size: usize) -> Addresses {
        Addresses { start, size, loaded: Bounds::now() }
    }

    /// The code of a frame with this return address, if it is one: one more than
    /// the offset, or for loaded code as [`loaded`] says. Inside hooks.
    #[inline]
    pub(super) fn frame(self, address: usize) -> Option<u64> {
        let offset = address.wrapping_sub(self.start);
        if offset < self.size {
            return Some(offset as u64 + 1);
        }
        if self.loaded.may_have(address) { loaded::frame(address) } else { None }
    }
}

/// Explains the codes of bytecode frames.
pub(super) fn locator() -> Locator {
    let name = executable_name();
    // Read by the writer thread, while the program may fork.
    let events: RaceOnce<Option<Events>> = RaceOnce::new();
    Arc::new(move |code, list: &mut LocationList| {
        let events = || events.get_or_init(|| read(name?)).as_ref();
        let Some(event) = event(code, events) else { return };
        list.add(Location {
            file: &event.file,
            line: event.line,
            start_char: event.start_char,
            end_char: event.end_char,
            definition: &event.definition,
        });
    })
}

/// The event of a code, which is of the program itself or of what it has loaded.
fn event<'a>(code: u64, own: impl FnOnce() -> Option<&'a Events>) -> Option<&'a Event> {
    match loaded::number_and_offset(code)? {
        (0, offset) => own()?.find(offset),
        (number, offset) => loaded::event(number, offset),
    }
}

/// The source locations of a snapshot's code addresses. Allocates, and reads the executable.
pub(super) struct CodeLocations {
    addresses: Addresses,
    own: Option<Events>,
}

impl CodeLocations {
    pub(super) fn read(code: Code) -> CodeLocations {
        CodeLocations { addresses: code.now(), own: executable_name().and_then(read) }
    }

    /// Of a return address, or of where a function begins.
    fn event(&self, address: u64, is_return_address: bool) -> Option<&Event> {
        let code = self.addresses.frame(usize::try_from(address).ok()?)?;
        match (loaded::number_and_offset(code)?, is_return_address) {
            ((0, offset), true) => self.own.as_ref()?.find(offset),
            ((0, offset), false) => self.own.as_ref()?.find_function(offset),
            ((number, offset), true) => loaded::event(number, offset),
            ((number, offset), false) => loaded::function(number, offset),
        }
    }

    /// Calls `found` with the function, the file and the line of an address, if they are known.
    pub(super) fn locate(
        &self,
        address: u64,
        is_return_address: bool,
        found: impl FnOnce(SourceLocation<'_>),
    ) {
        if let Some(event) = self.event(address, is_return_address) {
            found(SourceLocation {
                function: &event.definition,
                file: &event.file,
                line: event.line,
                start_char: event.start_char,
                end_char: event.end_char,
            });
        }
    }
}

/// Where the runtime keeps the executable's name, which it sets before any code
/// runs: `char_os * caml_exe_name` (4.14.1, `runtime/sys.c`), or the first field
/// of `const struct caml_params * const caml_params` (5.3.0,
/// `runtime/caml/startup_aux.h`).
fn executable_name() -> Option<usize> {
    if let Some(name) = symbols::lookup(c"caml_exe_name") {
        return Some(name);
    }
    let parameters = symbols::lookup(c"caml_params")?;
    // SAFETY: `caml_params` is a constant of the runtime that holds a pointer.
    Some(unsafe { (parameters as *const usize).read() })
}

fn read(name: usize) -> Option<Events> {
    // SAFETY: `executable_name` returned the address of this pointer, in a variable of
    // the runtime.
    let name = unsafe { (name as *const *const c_char).read() };
    if name.is_null() {
        return None;
    }
    // SAFETY: not NULL, so it is the C string that the runtime has set, and never frees.
    let name = unsafe { CStr::from_ptr(name) };
    let file = File::open(Path::new(OsStr::from_bytes(name.to_bytes()))).ok()?;
    Events::parse(&debug_section(&file)?)
}

/// The section `DBUG` of a bytecode executable (`runtime/caml/exec.h`): at the
/// file's end the number of sections and a magic number, before it the sections'
/// names and lengths, before those the sections.
fn debug_section(file: &File) -> Option<Vec<u8>> {
    const TRAILER: u64 = 16;
    let length = file.metadata().ok()?.len();
    let mut trailer = [0; TRAILER as usize];
    file.read_exact_at(&mut trailer, length.checked_sub(TRAILER)?).ok()?;
    if !trailer.get(4..)?.starts_with(b"Caml1999X") {
        return None;
    }
    let count = u64::from(u32::from_be_bytes(trailer.get(..4)?.try_into().ok()?)).min(1_000);
    let table_at = length.checked_sub(TRAILER + count * 8)?;
    let mut table = vec![0; (count * 8) as usize];
    file.read_exact_at(&mut table, table_at).ok()?;
    let mut end = table_at;
    for entry in table.chunks_exact(8).rev() {
        let (name, size) = entry.split_at(4);
        let size = u64::from(u32::from_be_bytes(size.try_into().ok()?));
        let start = end.checked_sub(size)?;
        if name == b"DBUG" && size < LARGEST {
            let mut section = vec![0; size as usize];
            file.read_exact_at(&mut section, start).ok()?;
            return Some(section);
        }
        end = start;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_section_is_found_from_the_end() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"#!/usr/bin/ocamlrun\ncodedebugcrc").unwrap();
        for (name, size) in [(b"CODE", 4u32), (b"DBUG", 5), (b"CRCS", 3)] {
            file.write_all(name).unwrap();
            file.write_all(&size.to_be_bytes()).unwrap();
        }
        file.write_all(&3u32.to_be_bytes()).unwrap();
        file.write_all(b"Caml1999X030").unwrap();
        assert_eq!(debug_section(&file).unwrap(), b"debug");
    }

    #[test]
    fn other_files_have_none() {
        let mut file = tempfile::tempfile().unwrap();
        assert_eq!(debug_section(&file), None);
        file.write_all(&[0xff; 100]).unwrap();
        assert_eq!(debug_section(&file), None);
        file.write_all(b"\xff\xff\xff\xffCaml1999X030").unwrap();
        assert_eq!(debug_section(&file), None);
    }
}
