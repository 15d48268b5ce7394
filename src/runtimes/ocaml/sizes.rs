//! How large the symbols of a loaded file are.
//!
//! `dladdr1` tells it too, but goes over all symbols each time, of which an
//! OCaml program has tens of thousands. Here they are gone over once.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;

use super::symbols::Symbol;

/// `RTLD_DL_LINKMAP` (`dlfcn.h`, glibc).
const WITH_MAP: libc::c_int = 2;

/// The begin of glibc's `struct link_map` (`link.h`).
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const libc::c_char,
    dynamic: *const Dynamic,
}

/// `Elf64_Dyn`
#[repr(C)]
#[derive(Clone, Copy)]
struct Dynamic {
    tag: i64,
    value: usize,
}

const DT_NULL: i64 = 0;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

/// The symbols of one file.
pub(super) struct File {
    base: usize,
    symbols: *const libc::Elf64_Sym,
    count: usize,
}

impl File {
    /// The file that holds an address.
    pub(super) fn of(address: usize) -> Option<File> {
        let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
        let mut map: *mut c_void = ptr::null_mut();
        let address = address as *const c_void;
        // SAFETY: room for both answers.
        let found = unsafe { libc::dladdr1(address, info.as_mut_ptr(), &raw mut map, WITH_MAP) };
        if found == 0 || map.is_null() {
            return None;
        }
        // SAFETY: the loader's, which stays as long as the file.
        let map = unsafe { &*map.cast::<LinkMap>() };
        let symbols = map.find(DT_SYMTAB)? as *const libc::Elf64_Sym;
        // SAFETY: the loader has relocated these.
        let count = unsafe { symbol_count(map.find(DT_GNU_HASH)?) };
        Some(File { base: map.base, symbols, count })
    }

    /// Fills in the sizes of the symbols at these addresses; 0 if there is none.
    pub(super) fn measure(&self, symbols: &mut [Symbol]) {
        let addresses = || symbols.iter().map(|symbol| symbol.address);
        let first = addresses().min().unwrap_or(0);
        let last = addresses().max().unwrap_or(0);
        for index in 0..self.count {
            // SAFETY: within the table.
            let entry = unsafe { self.symbols.wrapping_add(index).read() };
            let address = self.base.wrapping_add(entry.st_value as usize);
            if !(first..=last).contains(&address) {
                continue;
            }
            for symbol in symbols.iter_mut().filter(|symbol| symbol.address == address) {
                symbol.size = entry.st_size as usize;
            }
        }
    }
}

impl LinkMap {
    /// What the file's dynamic section says of something.
    fn find(&self, tag: i64) -> Option<usize> {
        let mut at = self.dynamic;
        loop {
            // SAFETY: the section goes on until its end mark.
            let entry = unsafe { at.read() };
            if entry.tag == tag {
                return Some(entry.value);
            }
            if entry.tag == DT_NULL {
                return None;
            }
            at = at.wrapping_add(1);
        }
    }
}

/// How many symbols a file has: its hash table knows the last of them. Four words
/// of header, a filter, the first symbol of each bucket, and for each symbol a
/// word whose lowest bit ends its bucket.
///
/// # Safety
/// A GNU hash table lies there.
unsafe fn symbol_count(table: usize) -> usize {
    let word = |at: usize| {
        // SAFETY: a word of the table.
        let word = unsafe { (at as *const u32).read() };
        word as usize
    };
    let (buckets, offset, filter) = (word(table), word(table + 4), word(table + 8));
    let first_bucket = table + 16 + filter * 8;
    let chains = first_bucket + buckets * 4;
    let last = (0..buckets).map(|bucket| word(first_bucket + bucket * 4)).max().unwrap_or(0);
    if last < offset {
        return offset;
    }
    let mut symbol = last;
    while word(chains + (symbol - offset) * 4) & 1 == 0 {
        symbol += 1;
    }
    symbol + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `dladdr1` has it.
    #[test]
    fn sizes_are_those_of_the_symbol_table() {
        let addresses = [c"getpid", c"malloc", c"strlen"].map(|name| {
            // SAFETY: a C string.
            unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize }
        });
        let file = File::of(addresses[0]).unwrap();
        let mut symbols = addresses.map(|address| Symbol { address, size: 0 });
        file.measure(&mut symbols);
        for Symbol { address, size } in symbols {
            let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
            let mut entry: *mut c_void = ptr::null_mut();
            // SAFETY: room for both answers; 1 asks for the symbol.
            unsafe { libc::dladdr1(address as _, info.as_mut_ptr(), &raw mut entry, 1) };
            if !entry.is_null() {
                // SAFETY: the symbol's entry.
                let symbol = unsafe { entry.cast::<libc::Elf64_Sym>().read() };
                assert_eq!(size, symbol.st_size as usize);
            }
        }
        assert!(symbols[0].size > 0 && symbols[1].size > 0);
        let mut nothing = [Symbol { address: 1, size: 0 }];
        file.measure(&mut nothing);
        assert_eq!(nothing[0].size, 0);
    }
}
