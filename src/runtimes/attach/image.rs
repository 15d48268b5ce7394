//! What a loaded file says of its symbols: how large they are, what covers an
//! address, and what those of other files that it uses were resolved to.
//!
//! `dladdr1` tells sizes too, but goes over all symbols each time, of which an
//! OCaml program has tens of thousands. Here they are looked up by their names.

use std::ffi::{CStr, c_char, c_int, c_void};

/// A function of the program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Symbol {
    pub(crate) address: usize,
    /// In bytes; 0 if it is not known.
    pub(crate) size: usize,
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

/// `STT_NOTYPE`, `STT_OBJECT` and `STT_FUNC`: what is at a symbol's address. Of
/// others only the loader knows where they are.
const PLAIN: [u8; 3] = [0, 1, STT_FUNC];
const STT_FUNC: u8 = 2;
/// Who sees a symbol: everybody.
const STB_GLOBAL: u8 = 1;

const DT_NULL: i64 = 0;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

/// The symbols of one file.
pub(crate) struct LoadedImage {
    /// What its addresses are counted from.
    base: usize,
    path: *const c_char,
    dynamic: *const Dynamic,
    symbols: *const libc::Elf64_Sym,
    /// Where their names are.
    strings: usize,
    hashes: Hashes,
}

// SAFETY: the loader's tables, which nobody changes.
unsafe impl Send for LoadedImage {}
// SAFETY: as above.
unsafe impl Sync for LoadedImage {}

/// A question for the loader.
struct Search {
    address: usize,
    found: Option<LoadedImage>,
}

impl LoadedImage {
    /// The file that holds an address.
    pub(crate) fn of(address: usize) -> Option<LoadedImage> {
        let mut search = Search { address, found: None };
        // SAFETY: the function gets what it expects.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
        search.found
    }

    fn of_loaded(info: &libc::dl_phdr_info, dynamic: &libc::Elf64_Phdr) -> Option<LoadedImage> {
        let base = info.dlpi_addr as usize;
        // The loader's tables stay as long as the file: one with a runtime in it
        // stays.
        let dynamic = base.wrapping_add(dynamic.p_vaddr as usize) as *const Dynamic;
        let symbols = find(dynamic, DT_SYMTAB)? as *const libc::Elf64_Sym;
        let strings = find(dynamic, DT_STRTAB)?;
        // SAFETY: the loader has relocated the address.
        let hashes = unsafe { Hashes::at(find(dynamic, DT_GNU_HASH)?) };
        Some(LoadedImage { base, path: info.dlpi_name, dynamic, symbols, strings, hashes })
    }

    /// What the kernel was asked to run, where that has symbols.
    pub(crate) fn of_program() -> Option<LoadedImage> {
        // SAFETY: asks the kernel's table; takes nothing else.
        LoadedImage::of(unsafe { libc::getauxval(libc::AT_PHDR) } as usize)
    }

    /// The address of a function or variable that is in the file, and in no thread.
    pub(crate) fn defined(&self, name: &CStr) -> Option<usize> {
        let mut entries = self.hashes.chain(name).map(|index| self.entry(index));
        let found = entries.find(|entry| {
            let is_plain = PLAIN.contains(&(entry.st_info & 15)) && entry.st_shndx != 0;
            is_plain && self.name(entry) == name
        })?;
        Some(self.base.wrapping_add(found.st_value as usize))
    }

    /// Fills in the sizes of symbols, of which the names are known too; 0 if the
    /// file does not say.
    pub(crate) fn measure(&self, symbols: &mut [Symbol], names: &[&CStr]) {
        for (symbol, name) in symbols.iter_mut().zip(names) {
            let entries = self.hashes.chain(name).map(|index| self.entry(index));
            // One name may have several versions.
            let found = entries
                .filter(|entry| self.name(entry) == *name)
                .find(|entry| self.base.wrapping_add(entry.st_value as usize) == symbol.address);
            symbol.size = found.map_or(0, |entry| entry.st_size as usize);
        }
    }

    /// Whether a function of this name covers an address.
    pub(crate) fn covers(&self, name: &CStr, address: usize) -> bool {
        let mut entries = self.hashes.chain(name).map(|index| self.entry(index));
        entries.any(|entry| self.within(&entry, address) && self.name(&entry) == name)
    }

    /// The name of the function that covers an address. Goes over all symbols, with
    /// no lock: the file stays.
    pub(crate) fn covering(&self, address: usize) -> Option<&CStr> {
        let entries = self.hashes.all().map(|index| self.entry(index));
        // Of several at one address, as those who read the whole symbol table have
        // it: a global one before others.
        let found = entries.filter(|entry| self.within(entry, address)).min_by_key(|entry| {
            (std::cmp::Reverse(entry.st_value), entry.st_info >> 4 != STB_GLOBAL, entry.st_name)
        })?;
        Some(self.name(&found))
    }

    /// Whether a symbol is a function in this file that covers an address.
    fn within(&self, entry: &libc::Elf64_Sym, address: usize) -> bool {
        let within = address.wrapping_sub(self.base).wrapping_sub(entry.st_value as usize);
        (within as u64) < entry.st_size && entry.st_info & 15 == STT_FUNC && entry.st_shndx != 0
    }

    fn entry(&self, index: usize) -> libc::Elf64_Sym {
        // SAFETY: within the table, by its hashes.
        unsafe { self.symbols.wrapping_add(index).read() }
    }

    fn name(&self, entry: &libc::Elf64_Sym) -> &CStr {
        // SAFETY: a string of the file's.
        unsafe { CStr::from_ptr((self.strings + entry.st_name as usize) as *const c_char) }
    }

    /// The path it was loaded from; empty for the program itself.
    pub(crate) fn path(&self) -> &'static CStr {
        // SAFETY: the loader's string.
        unsafe { CStr::from_ptr(self.path) }
    }

    /// The address of another file's symbol, as this file uses it: the loader
    /// has written it where this file looks it up.
    pub(crate) fn imported(&self, name: &CStr) -> Option<usize> {
        let relocations = find(self.dynamic, DT_RELA)? as *const Relocation;
        let count = find(self.dynamic, DT_RELASZ)? / size_of::<Relocation>();
        (0..count).find_map(|index| {
            // SAFETY: within the table.
            let relocation = unsafe { relocations.wrapping_add(index).read() };
            let (symbol, kind) = ((relocation.info >> 32) as usize, relocation.info as u32);
            if symbol == 0 || !ADDRESSES.contains(&kind) || self.name(&self.entry(symbol)) != name {
                return None;
            }
            let place = self.base.wrapping_add(relocation.offset) as *const usize;
            // SAFETY: a word of the file's data.
            let value = unsafe { place.read() }.wrapping_sub(relocation.addend);
            (value != 0).then_some(value)
        })
    }
}

/// Called for each file that is loaded; not 0 ends it.
unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: what the loader gives.
    let info = unsafe { &*info };
    // SAFETY: what `LoadedImage::of` has passed.
    let search = unsafe { &mut *search.cast::<Search>() };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the file's headers, so many.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let within = search.address.wrapping_sub(info.dlpi_addr as usize) as u64;
    let holds = |header: &libc::Elf64_Phdr| {
        header.p_type == libc::PT_LOAD && within.wrapping_sub(header.p_vaddr) < header.p_memsz
    };
    if !headers.iter().any(holds) {
        return 0;
    }
    let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC);
    search.found = dynamic.and_then(|dynamic| LoadedImage::of_loaded(info, dynamic));
    1
}

/// What a dynamic section says of something.
fn find(section: *const Dynamic, tag: i64) -> Option<usize> {
    let mut at = section;
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

/// A file's `DT_GNU_HASH`: four words of header, a filter, the first symbol of
/// each bucket, and for each symbol from `offset` on a word of its hash, whose
/// lowest bit ends the bucket.
struct Hashes {
    buckets: usize,
    offset: usize,
    first_bucket: usize,
    chains: usize,
}

impl Hashes {
    /// # Safety
    /// Such a table lies there.
    unsafe fn at(table: usize) -> Hashes {
        let (buckets, offset, filter) = (word(table), word(table + 4), word(table + 8));
        let first_bucket = table + 16 + filter as usize * 8;
        let chains = first_bucket + buckets as usize * 4;
        Hashes { buckets: buckets as usize, offset: offset as usize, first_bucket, chains }
    }

    /// The indices of symbols that may be of this name.
    fn chain<'a>(&'a self, name: &CStr) -> impl Iterator<Item = usize> + use<'a> {
        let times = |hash: u32, &byte: &u8| hash.wrapping_mul(33).wrapping_add(u32::from(byte));
        let wanted = name.to_bytes().iter().fold(5381, times);
        let bucket = (wanted as usize).checked_rem(self.buckets);
        let first = bucket.map_or(0, |bucket| word(self.first_bucket + bucket * 4) as usize);
        self.bucket(first).filter(move |&symbol| self.hash(symbol) | 1 == wanted | 1)
    }

    /// The indices of all symbols that have a hash: those of the file itself.
    fn all(&self) -> impl Iterator<Item = usize> {
        let firsts = (0..self.buckets).map(|bucket| word(self.first_bucket + bucket * 4) as usize);
        // They are in the order of their buckets.
        let last = self.bucket(firsts.max().unwrap_or(0)).last();
        self.offset..last.map_or(self.offset, |last| last + 1)
    }

    /// The indices from the first of a bucket on.
    fn bucket(&self, first: usize) -> impl Iterator<Item = usize> {
        let mut next = Some(first).filter(|&first| first >= self.offset && first != 0);
        std::iter::from_fn(move || {
            let symbol = next?;
            next = (self.hash(symbol) & 1 == 0).then_some(symbol + 1);
            Some(symbol)
        })
    }

    fn hash(&self, symbol: usize) -> u32 {
        word(self.chains + (symbol - self.offset) * 4)
    }
}

/// A word of a hash table.
fn word(at: usize) -> u32 {
    // SAFETY: callers stay within the table.
    unsafe { (at as *const u32).read() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `dladdr1` has it.
    #[test]
    fn sizes_are_those_of_the_symbol_table() {
        let names = [c"getpid", c"malloc", c"execve", c"strlen"];
        let addresses = names.map(|name| {
            // SAFETY: a C string.
            unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize }
        });
        let file = LoadedImage::of(addresses[0]).unwrap();
        let mut symbols = addresses.map(|address| Symbol { address, size: 0 });
        file.measure(&mut symbols, &names);
        for Symbol { address, size } in symbols {
            let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
            let mut entry: *mut c_void = std::ptr::null_mut();
            // SAFETY: room for both answers; 1 asks for the symbol.
            unsafe { libc::dladdr1(address as _, info.as_mut_ptr(), &raw mut entry, 1) };
            if !entry.is_null() {
                // SAFETY: the symbol's entry.
                let symbol = unsafe { entry.cast::<libc::Elf64_Sym>().read() };
                assert_eq!(size, symbol.st_size as usize);
            }
        }
        assert!(symbols[..3].iter().all(|symbol| symbol.size > 0));
        let mut nothing = [Symbol { address: 1, size: 7 }, Symbol { address: 1, size: 7 }];
        file.measure(&mut nothing, &[c"getpid", c"no_such_function"]);
        assert!(nothing.iter().all(|symbol| symbol.size == 0));
    }

    /// As `dladdr` has it.
    #[test]
    fn what_covers_an_address_is_found() {
        for name in [c"getpid", c"malloc", c"execve"] {
            // SAFETY: a C string.
            let start = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize };
            let file = LoadedImage::of(start).unwrap();
            let mut symbol = [Symbol { address: start, size: 0 }];
            file.measure(&mut symbol, &[name]);
            let last = start + symbol[0].size - 1;
            for address in [start, last] {
                assert!(file.covers(name, address));
                let covering = file.covering(address).unwrap();
                // Of several names for one function any will do here.
                assert!(file.covers(covering, start) && file.covers(covering, last));
            }
            for address in [start - 1, last + 1] {
                assert!(!file.covers(name, address));
                assert_ne!(file.covering(address), Some(name));
            }
            assert!(!file.covers(c"no_such_function", start));
            assert_eq!(file.defined(name), Some(start));
            assert_eq!(file.defined(c"no_such_function"), None);
        }
    }

    #[test]
    fn the_program_is_the_file_that_runs() {
        let here = the_program_is_the_file_that_runs as *const () as usize;
        let program = LoadedImage::of_program().unwrap();
        assert_eq!(program.base, LoadedImage::of(here).unwrap().base);
        // It uses this, and has it not.
        assert_eq!(program.defined(c"getauxval"), None);
    }

    #[test]
    fn every_address_of_a_file_is_of_it() {
        let here = sizes_are_those_of_the_symbol_table as *const () as usize;
        let text = LoadedImage::of(here).unwrap();
        let data = LoadedImage::of(&raw const DATA as usize).unwrap();
        assert_eq!(text.base, data.base);
        assert_eq!(text.path(), c"");
        assert!(LoadedImage::of(16).is_none());
    }

    static DATA: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(1);
}
