//! What addresses in bytecode are, and their source locations.
//!
//! - `events`: the source location of an offset. The events of the program itself are
//!   in the debug section of the executable, marshalled (`marshal`). The runtime's own
//!   decoder allocates in the heap, so the file is read here: on the writer thread, when
//!   the first location is needed; nothing in it is trusted.
//! - `loaded`: code that is loaded while the program runs; `ranges`: its addresses;
//!   `heap`: its events; `primitives`: the runtime's functions that load it.
//! - `program`: which file the program is in; `file`: its sections.
//! - `stack`: which words of a stack are return addresses.
//! - `globals`: which slots of the table of globals are modules.
//! - `tree`: marshalled values and those in the heap, read alike.

mod events;
mod file;
mod globals;
mod heap;
mod loaded;
mod marshal;
mod primitives;
mod program;
mod ranges;
mod stack;
mod tree;

use std::sync::Arc;

use heaptap_symbols::SourceLocation;
use heaptap_trace::{Location, LocationList};

use crate::runtimes::attach::symbols;
use crate::sys::race_once::RaceOnce;
use crate::tracer::Locator;
use events::{Event, Events};
pub(super) use globals::{GlobalUnits, Unit};
use loaded::Bounds;
pub(super) use primitives::watch as watch_loading;
pub(super) use program::interpreted;
pub(super) use stack::{BytecodeStack, HandlerLink, ReturnAddresses};

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

    /// The length of the program's code; 0 until it is loaded.
    pub(super) fn size_now(self) -> usize {
        // SAFETY: `asize_t caml_code_size`.
        unsafe { (self.size as *const usize).read_volatile() }
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
    // Read by the writer thread, while the program may fork.
    let events: RaceOnce<Option<Events>> = RaceOnce::new();
    Arc::new(move |code, list: &mut LocationList| {
        let events = || events.get_or_init(read_events).as_ref();
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
        CodeLocations { addresses: code.now(), own: read_events() }
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

/// The events of the program itself, once it has begun.
fn read_events() -> Option<Events> {
    Events::parse(&program::open(Code::find()?)?.section(*b"DBUG")?)
}
