//! What a loaded file says of its symbols: how large they are, and what those
//! of other files that it uses were resolved to.
//!
//! `dladdr1` tells sizes too, but goes over all symbols each time, of which an
//! OCaml program has tens of thousands. Here they are gone over once.

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use super::symbols::Symbol;

/// `RTLD_DL_LINKMAP` (`dlfcn.h`, glibc).
const WITH_MAP: libc::c_int = 2;

/// The begin of glibc's `struct link_map` (`link.h`).
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: *const Dynamic,
}

/// `Elf64_Dyn`
#[repr(C)]
#[derive(Clone, Copy)]
struct Dynamic {
    tag: i64,
    value: usize,
}

/// `Elf64_Rela`
#[repr(C)]
struct Relocation {
    offset: usize,
    info: u64,
    addend: usize,
}

/// `R_X86_64_64` and `R_X86_64_GLOB_DAT`: a word that holds a symbol's address.
const ADDRESSES: [u32; 2] = [1, 6];

const DT_NULL: i64 = 0;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

/// The symbols of one file.
pub(super) struct File {
    map: &'static LinkMap,
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
        // SAFETY: the loader's, which stays as long as the file: one with a
        // runtime in it stays.
        let map = unsafe { &*map.cast::<LinkMap>() };
        let symbols = map.find(DT_SYMTAB)? as *const libc::Elf64_Sym;
        // SAFETY: the loader has relocated these.
        let count = unsafe { symbol_count(map.find(DT_GNU_HASH)?) };
        Some(File { map, symbols, count })
    }

    /// Fills in the sizes of the symbols at these addresses; 0 if there is none.
    pub(super) fn measure(&self, symbols: &mut [Symbol]) {
        let addresses = || symbols.iter().map(|symbol| symbol.address);
        let first = addresses().min().unwrap_or(0);
        let last = addresses().max().unwrap_or(0);
        for index in 0..self.count {
            // SAFETY: within the table.
            let entry = unsafe { self.symbols.wrapping_add(index).read() };
            let address = self.map.base.wrapping_add(entry.st_value as usize);
            if !(first..=last).contains(&address) {
                continue;
            }
            for symbol in symbols.iter_mut().filter(|symbol| symbol.address == address) {
                symbol.size = entry.st_size as usize;
            }
        }
    }

    /// The path it was loaded from; empty for the program itself.
    pub(super) fn path(&self) -> &'static CStr {
        // SAFETY: the loader's string.
        unsafe { CStr::from_ptr(self.map.name) }
    }

    /// The address of another file's symbol, as this file uses it: the loader
    /// has written it where this file looks it up.
    pub(super) fn imported(&self, name: &CStr) -> Option<usize> {
        let strings = self.map.find(DT_STRTAB)?;
        let relocations = self.map.find(DT_RELA)? as *const Relocation;
        let count = self.map.find(DT_RELASZ)? / size_of::<Relocation>();
        (0..count).find_map(|index| {
            // SAFETY: within the table.
            let relocation = unsafe { relocations.wrapping_add(index).read() };
            let (symbol, kind) = ((relocation.info >> 32) as usize, relocation.info as u32);
            if symbol == 0 || symbol >= self.count || !ADDRESSES.contains(&kind) {
                return None;
            }
            // SAFETY: within the table.
            let entry = unsafe { self.symbols.wrapping_add(symbol).read() };
            // SAFETY: a string of the file's.
            let known =
                unsafe { CStr::from_ptr((strings + entry.st_name as usize) as *const c_char) };
            if known != name {
                return None;
            }
            let place = self.map.base.wrapping_add(relocation.offset) as *const usize;
            // SAFETY: a word of the file's data.
            let value = unsafe { place.read() }.wrapping_sub(relocation.addend);
            (value != 0).then_some(value)
        })
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
