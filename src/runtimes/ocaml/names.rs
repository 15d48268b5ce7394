//! Names of functions without debug information, from the program's dynamic symbols.
//!
//! At the bottom of every stack is `caml_program`, which the compiler generates when a
//! program is linked, without debug information (`entry_point`,
//! `asmcomp/cmm_helpers.ml`, 4.14.1). Other such frames are rare. To read the symbol
//! table from the program's file just for that would take longer than everything else
//! that a short trace needs. The dynamic symbols are in memory already.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use heaptap_symbols::names::readable;
use heaptap_trace::Location;

use crate::runtimes::attach::symbols;
use crate::tracer::Namer;

/// How many lookups search all symbols. For more it is better to read the file and to
/// sort its symbols.
const FEW: u32 = 8;

/// Names functions of the program. `None` where the runtime is elsewhere.
pub(super) fn namer() -> Option<Namer> {
    let file = symbols::program()?;
    file.defined(c"caml_program")?;
    // Not by the first who needs it: that is the writer thread, during which the program may fork.
    let program = program_name()?;
    let asked = AtomicU32::new(0);
    Some(Arc::new(move |return_address, list| {
        // The call, which may be the last thing in its function.
        let call = (return_address as usize).wrapping_sub(1);
        let name = if file.covers(c"caml_program", call) {
            Some(c"caml_program")
        } else if asked.fetch_add(1, Ordering::Relaxed) < FEW {
            file.covering(call)
        } else {
            None
        };
        let Some(name) = name else { return false };
        let definition = &readable(name.to_bytes());
        list.add(Location { file: &program, line: 0, start_char: 0, end_char: 0, definition });
        true
    }))
}

/// The last part of the program's path.
fn program_name() -> Option<Vec<u8>> {
    let path = std::env::current_exe().ok()?;
    let name = path.file_name()?.as_bytes();
    Some(name.strip_suffix(b" (deleted)").unwrap_or(name).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_a_runtime_has_no_names() {
        assert!(namer().is_none());
        assert!(program_name().is_some_and(|name| name.starts_with(b"heaptap-")));
    }
}
