//! How large functions are where no symbol table says: the unwind tables do.
//!
//! A static program has neither symbols nor a header to its unwind tables. But
//! the compiler's library knows them, registered or not, and is linked into
//! whatever can unwind (`_Unwind_Find_FDE`, `libgcc/unwind-dw2-fde.c`, GCC 12).

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

/// `DW_EH_PE_pcrel | DW_EH_PE_sdata4`: four bytes for an address, as compilers
/// write them for amd64.
const FOUR_BYTES: u8 = 0x1b;

/// Fills in the sizes of the functions at these addresses; 0 if nothing is known.
pub(super) fn measure(symbols: &mut [Symbol]) {
    for symbol in symbols {
        symbol.size = size(symbol.address).unwrap_or(0);
    }
}

fn size(function: usize) -> Option<usize> {
    let mut bases = Bases { text: ptr::null(), data: ptr::null(), function: ptr::null() };
    // SAFETY: any address may be asked for, and there is room for the answer.
    let entry = unsafe { _Unwind_Find_FDE(function as *const c_void, &raw mut bases) };
    if entry.is_null() || bases.function as usize != function {
        return None;
    }
    // Length, distance back to the common entry, first address, size.
    // SAFETY: an entry of the table.
    let word = |index: usize| unsafe { entry.cast::<u32>().wrapping_add(index).read_unaligned() };
    let common = entry.wrapping_add(4).wrapping_sub(word(1) as usize);
    // Length, a zero, the version, what more there is as a text, then one byte
    // each for three numbers and the length of the next, and how addresses are
    // written.
    // SAFETY: the entry that this one belongs to, which is longer.
    let byte = |index: usize| unsafe { common.wrapping_add(index).read() };
    let text = (byte(9), byte(10), byte(11), byte(12));
    // `S`: frames that a signal may interrupt, such as those of OCaml 5.
    let numbers = match text {
        (b'z', b'R', 0, _) => 12,
        (b'z', b'R', b'S', 0) => 13,
        _ => return None,
    };
    let is_short = [0, 2, 3].iter().all(|index| byte(numbers + index) < 0x80);
    let is_known = byte(8) == 1 && is_short && byte(numbers + 4) == FOUR_BYTES;
    is_known.then_some(word(3) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::attach::image::LoadedImage;

    /// As the symbol table has it.
    #[test]
    fn functions_are_as_large_as_their_symbols_say() {
        let names = [c"getenv", c"malloc", c"qsort", c"printf"];
        // SAFETY: C strings.
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
    fn what_is_not_the_start_of_a_function_has_no_size() {
        // SAFETY: a C string.
        let inside = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"malloc".as_ptr()) } as usize + 1;
        let mut symbols = [inside, 8, &raw const inside as usize];
        assert!(symbols.iter_mut().all(|address| size(*address).is_none()));
    }
}
