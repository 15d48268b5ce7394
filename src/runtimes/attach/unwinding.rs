//! The sizes of functions that no symbol table names, from the unwind tables.
//!
//! A static program has neither dynamic symbols nor a header to its unwind tables.
//! But libgcc finds them, registered or not, and is linked into every program that
//! can unwind (`_Unwind_Find_FDE`, `libgcc/unwind-dw2-fde.c`, GCC 12).
//!
//! Entries are as in the *Linux Standard Base*, section on exception frames. Not
//! inside hooks: libgcc may take a lock.

use std::ffi::c_void;
use std::ptr;

use super::image::Symbol;

/// `struct dwarf_eh_bases` (`libgcc/unwind-dw2-fde.h`, GCC 12).
#[repr(C)]
struct Bases {
    text: *const c_void,
    data: *const c_void,
    function: *const c_void,
}

unsafe extern "C" {
    fn _Unwind_Find_FDE(pc: *const c_void, bases: *mut Bases) -> *const u8;
}

/// `DW_EH_PE_pcrel | DW_EH_PE_sdata4`: addresses as four bytes, as compilers write
/// them for amd64.
const PCREL_SDATA4: u8 = 0x1b;

/// The offset of the augmentation string in a common information entry, after its
/// length, a zero and the version, which is one byte.
const AUGMENTATION: usize = 9;

/// Fills in the sizes of the functions at these addresses; 0 if they are not known.
pub(super) fn measure(symbols: &mut [Symbol]) {
    for symbol in symbols {
        symbol.size = size(symbol.address).unwrap_or(0);
    }
}

/// The size of the function that begins at this address.
fn size(function: usize) -> Option<usize> {
    let mut bases = Bases { text: ptr::null(), data: ptr::null(), function: ptr::null() };
    // SAFETY: libgcc accepts any address, and writes its answer into `bases`, which
    // has the type it declares.
    let entry = unsafe { _Unwind_Find_FDE(function as *const c_void, &raw mut bases) };
    if entry.is_null() || bases.function as usize != function {
        return None;
    }
    // A frame description entry: its length, the distance back to its common
    // information entry, the function's address, its size.
    // SAFETY: libgcc returned such an entry, whose first four words are read.
    let word = |index: usize| unsafe { entry.cast::<u32>().wrapping_add(index).read_unaligned() };
    let common = entry.wrapping_add(4).wrapping_sub(word(1) as usize);
    // SAFETY: the common information entry that the entry refers to; what is read
    // below ends within it if the bytes before are as expected.
    let byte = |index: usize| unsafe { common.wrapping_add(index).read() };
    // `z`: the length of the augmentation data; `R`: the encoding of addresses; `S`:
    // frames that a signal interrupts, such as those of OCaml 5.
    let augmentation = [0, 1, 2, 3].map(|index| byte(AUGMENTATION + index));
    let after = match augmentation {
        [b'z', b'R', 0, _] => AUGMENTATION + 3,
        [b'z', b'R', b'S', 0] => AUGMENTATION + 4,
        _ => return None,
    };
    // Then the alignment factors of code and data, the return address register and
    // the length of the augmentation data, one byte each if they are below 128; and
    // the encoding.
    let is_short = [0, 2, 3].iter().all(|index| byte(after + index) < 0x80);
    let is_known = byte(8) == 1 && is_short && byte(after + 4) == PCREL_SDATA4;
    is_known.then_some(word(3) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::attach::image::LoadedImage;

    /// The symbol table is the oracle.
    #[test]
    fn functions_are_as_large_as_their_symbols_say() {
        let names = [c"getenv", c"malloc", c"qsort", c"printf"];
        // SAFETY: `RTLD_DEFAULT` is a valid handle, and the names are C strings.
        let addresses =
            names.map(|name| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize });
        let mut by_table = addresses.map(|address| Symbol { address, size: 0 });
        LoadedImage::of(addresses[0]).unwrap().measure(&mut by_table, &names);
        let mut by_unwinding = addresses.map(|address| Symbol { address, size: 0 });
        measure(&mut by_unwinding);
        for (table, unwinding) in by_table.iter().zip(&by_unwinding) {
            assert!(table.size > 0);
            assert_eq!(unwinding.size, table.size);
        }
    }

    #[test]
    fn other_addresses_have_no_size() {
        // SAFETY: `RTLD_DEFAULT` is a valid handle, and the name is a C string.
        let inside = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"malloc".as_ptr()) } as usize + 1;
        let mut symbols = [inside, 8, &raw const inside as usize];
        assert!(symbols.iter_mut().all(|address| size(*address).is_none()));
    }
}
