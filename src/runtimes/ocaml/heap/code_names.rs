//! Names of the code addresses in a snapshot, from the compiler's own debug information.
//!
//! Stripped programs have it too: native code in its frame tables, which know the return
//! addresses of frames, and bytecode in its debug section, which also knows functions.
//! On the ordering thread: allocates.

use heaptap_heap::{Name, Suspended};
use heaptap_symbols::SourceLocation;

use crate::runtimes::ocaml::bytecode::{Code, CodeLocations};
use crate::runtimes::ocaml::{MajorVersion, frames};
use crate::sys::process_memory::ProcessMemory;

fn name<'a>(address: u64, found: SourceLocation<'a>) -> Name<'a> {
    let SourceLocation { function, file, line, .. } = found;
    Name { address, function, file, line }
}

/// Names the frames of native code. Where calls were inlined, `found` is called for each,
/// outermost first. Functions are left to the program's symbols.
pub(crate) fn of_native(version: MajorVersion, codes: &Suspended, found: &mut dyn FnMut(Name<'_>)) {
    let memory = ProcessMemory::new();
    for table in frames::all_tables(version) {
        // A table that is not as expected names nothing.
        let _ = table.locate(&codes.return_addresses, &memory, &mut |address, location| {
            found(name(address, location));
        });
    }
}

/// Names frames and functions of bytecode.
pub(crate) fn of_bytecode(code: Option<Code>, codes: &Suspended, found: &mut dyn FnMut(Name<'_>)) {
    let Some(code) = code else { return };
    let locations = CodeLocations::read(code);
    for &address in &codes.codes {
        let is_return_address = codes.return_addresses.binary_search(&address).is_ok();
        locations.locate(address, is_return_address, |location| found(name(address, location)));
    }
}
