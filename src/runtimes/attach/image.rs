//! A loaded ELF image and its dynamic symbols.
//!
//! Answers how large a function is, which function covers an address, and where
//! another image's symbol that this one imports was resolved to. `dladdr1` reports
//! sizes too, but scans all symbols for each question, of which an OCaml program
//! has tens of thousands. Here names are looked up in the image's hash table.
//!
//! Finding an image takes the loader's lock, so not inside hooks. A found image is
//! read without locks, from any thread: its tables never change. It must stay
//! loaded, which holds for the program and for a library with a running runtime.
//!
//! Formats: System V ABI, *Dynamic Linking*.

mod gnu_hash;
mod tables;

use std::cmp::Reverse;
use std::ffi::{CStr, c_char, c_int, c_void};

use gnu_hash::GnuHash;
use tables::Tables;

/// A function of the program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Symbol {
    pub(crate) address: usize,
    /// In bytes; 0 if it is not known.
    pub(crate) size: usize,
}

/// `Elf64_Rela`
#[repr(C)]
#[derive(Clone, Copy)]
struct Relocation {
    offset: usize,
    info: u64,
    addend: usize,
}

/// `R_X86_64_64` and `R_X86_64_GLOB_DAT`: a word that holds a symbol's address.
const ADDRESS_RELOCATIONS: [u32; 2] = [1, 6];

/// `STT_NOTYPE`, `STT_OBJECT` and `STT_FUNC`: symbols that are at their address.
/// Only the loader knows where others are.
const PLAIN_TYPES: [u8; 3] = [0, 1, STT_FUNC];
const STT_FUNC: u8 = 2;
const STB_GLOBAL: u8 = 1;
const SHN_UNDEF: u16 = 0;

const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

/// An image in this process, with its dynamic symbols.
pub(crate) struct LoadedImage {
    tables: Tables,
    /// The difference between its addresses in memory and as linked.
    base: usize,
    /// The loader's string.
    path: *const c_char,
    /// The address of the dynamic section.
    dynamic: usize,
    /// The address of `DT_SYMTAB`.
    symbols: usize,
    /// The address of `DT_STRTAB`.
    strings: usize,
    hashes: GnuHash,
}

// SAFETY: `path` points to a string of the loader, which is never changed while
// the image is loaded; everything else is numbers.
unsafe impl Send for LoadedImage {}
// SAFETY: nothing is written through a `LoadedImage`, and the image's tables are
// never changed once the loader has relocated them.
unsafe impl Sync for LoadedImage {}

/// A question for the loader, and its answer.
struct Search {
    address: usize,
    found: Option<LoadedImage>,
}

impl LoadedImage {
    /// The image that holds an address, which must stay loaded. `None` if there is
    /// none, or it has no dynamic symbols. Not inside hooks.
    pub(crate) fn of(address: usize) -> Option<LoadedImage> {
        let mut search = Search { address, found: None };
        // SAFETY: `visit` has the type of a callback, and `search` is the `Search`
        // that it expects; it lives until the call returns.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
        search.found
    }

    fn of_loaded(info: &libc::dl_phdr_info, dynamic: &libc::Elf64_Phdr) -> Option<LoadedImage> {
        let base = info.dlpi_addr as usize;
        let dynamic = base.wrapping_add(dynamic.p_vaddr as usize);
        // SAFETY: `LoadedImage::of` requires an image that stays loaded; its methods
        // read what the dynamic section and the symbols refer to.
        let tables = unsafe { Tables::of_loaded() };
        let symbols = tables.dynamic(dynamic, DT_SYMTAB)?;
        let strings = tables.dynamic(dynamic, DT_STRTAB)?;
        let hashes = GnuHash::read(tables, tables.dynamic(dynamic, DT_GNU_HASH)?);
        Some(LoadedImage { tables, base, path: info.dlpi_name, dynamic, symbols, strings, hashes })
    }

    /// The program that the kernel was asked to run.
    pub(crate) fn of_program() -> Option<LoadedImage> {
        // SAFETY: reads the table that the kernel gave the process; takes no pointer.
        LoadedImage::of(unsafe { libc::getauxval(libc::AT_PHDR) } as usize)
    }

    /// The address of a function or variable that the image defines. Not of a
    /// thread-local variable.
    pub(crate) fn defined(&self, name: &CStr) -> Option<usize> {
        let found = self.entries_named(name).find(|entry| {
            PLAIN_TYPES.contains(&symbol_type(entry)) && entry.st_shndx != SHN_UNDEF
        })?;
        Some(self.base.wrapping_add(found.st_value as usize))
    }

    /// Fills in the sizes of the symbols with these names; 0 if the image has no
    /// such symbol at that address.
    pub(crate) fn measure(&self, symbols: &mut [Symbol], names: &[&CStr]) {
        for (symbol, name) in symbols.iter_mut().zip(names) {
            // A name may have several versions.
            let found = self
                .entries_named(name)
                .find(|entry| self.base.wrapping_add(entry.st_value as usize) == symbol.address);
            symbol.size = found.map_or(0, |entry| entry.st_size as usize);
        }
    }

    /// Whether a function of this name covers an address.
    pub(crate) fn covers(&self, name: &CStr, address: usize) -> bool {
        self.entries_named(name).any(|entry| self.is_function_around(&entry, address))
    }

    /// The name of the function that covers an address. Scans all symbols.
    pub(crate) fn covering(&self, address: usize) -> Option<&CStr> {
        let entries = self.hashes.all().map(|index| self.entry(index));
        // Of several at one address a global one, as `crates/symbols` chooses.
        let found = entries.filter(|entry| self.is_function_around(entry, address)).min_by_key(
            |entry| {
                let is_local = entry.st_info >> 4 != STB_GLOBAL;
                (Reverse(entry.st_value), is_local, entry.st_name)
            },
        )?;
        Some(self.name(&found))
    }

    /// Calls `found` with the name and the address of each function and variable that the
    /// image defines.
    pub(crate) fn for_each_symbol(&self, mut found: impl FnMut(&[u8], usize)) {
        for entry in self.hashes.all().map(|index| self.entry(index)) {
            if PLAIN_TYPES.contains(&symbol_type(&entry)) && entry.st_shndx != SHN_UNDEF {
                let address = self.base.wrapping_add(entry.st_value as usize);
                found(self.name(&entry).to_bytes(), address);
            }
        }
    }

    /// Whether a symbol is a function that the image defines and that covers an
    /// address.
    fn is_function_around(&self, entry: &libc::Elf64_Sym, address: usize) -> bool {
        let offset = address.wrapping_sub(self.base).wrapping_sub(entry.st_value as usize);
        let is_defined = entry.st_shndx != SHN_UNDEF;
        (offset as u64) < entry.st_size && symbol_type(entry) == STT_FUNC && is_defined
    }

    /// The symbols of this name.
    fn entries_named(&self, name: &CStr) -> impl Iterator<Item = libc::Elf64_Sym> {
        let entries = self.hashes.candidates(name).map(|index| self.entry(index));
        entries.filter(move |entry| self.name(entry) == name)
    }

    fn entry(&self, index: usize) -> libc::Elf64_Sym {
        self.tables.read(self.symbols + index * size_of::<libc::Elf64_Sym>())
    }

    fn name(&self, entry: &libc::Elf64_Sym) -> &CStr {
        // SAFETY: a symbol's name is an offset into the string table, where a NUL ends
        // every string; the image stays loaded.
        unsafe { CStr::from_ptr((self.strings + entry.st_name as usize) as *const c_char) }
    }

    /// The path it was loaded from; empty for the program itself.
    pub(crate) fn path(&self) -> &'static CStr {
        // SAFETY: `dlpi_name` is a C string that the loader keeps as long as the image.
        unsafe { CStr::from_ptr(self.path) }
    }

    /// The address of another image's symbol that this one imports, as the loader
    /// has resolved it.
    pub(crate) fn imported(&self, name: &CStr) -> Option<usize> {
        let relocations = self.tables.dynamic(self.dynamic, DT_RELA)?;
        let size = self.tables.dynamic(self.dynamic, DT_RELASZ)?;
        (relocations..relocations + size).step_by(size_of::<Relocation>()).find_map(|address| {
            let relocation: Relocation = self.tables.read(address);
            let (symbol, kind) = ((relocation.info >> 32) as usize, relocation.info as u32);
            let is_address = symbol != 0 && ADDRESS_RELOCATIONS.contains(&kind);
            if !is_address || self.name(&self.entry(symbol)) != name {
                return None;
            }
            let word: usize = self.tables.read(self.base.wrapping_add(relocation.offset));
            Some(word.wrapping_sub(relocation.addend)).filter(|&address| address != 0)
        })
    }
}

/// Calls `found` with each image that the loader has given this process and that has dynamic symbols. None of them is unloaded
/// meanwhile. Not inside hooks.
pub(crate) fn for_each_image(mut found: impl FnMut(&LoadedImage)) {
    let mut found: &mut dyn FnMut(&LoadedImage) = &mut found;
    // SAFETY: `visit_each` has the type of a callback, and gets a pointer to the function that it
    // expects, which lives until the call returns.
    unsafe { libc::dl_iterate_phdr(Some(visit_each), (&raw mut found).cast()) };
}

/// Called by the loader for each image.
///
/// # Safety
/// `info` describes a loaded image, and `found` points to a `&mut dyn FnMut(&LoadedImage)`.
unsafe extern "C" fn visit_each(
    info: *mut libc::dl_phdr_info,
    _: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: `dl_iterate_phdr` passes a valid description for the time of the call.
    let info = unsafe { &*info };
    // SAFETY: by the contract, and nobody else uses it meanwhile.
    let found = unsafe { &mut *found.cast::<&mut dyn FnMut(&LoadedImage)>() };
    // The kernel's own image is in the list, too. The loader does not relocate its tables.
    // SAFETY: reads the table that the kernel gave the process; takes no pointer.
    let is_of_kernel = info.dlpi_addr == unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    if !info.dlpi_phdr.is_null() && !is_of_kernel {
        // SAFETY: the loader keeps `dlpi_phnum` program headers at `dlpi_phdr`.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC);
        if let Some(image) = dynamic.and_then(|dynamic| LoadedImage::of_loaded(info, dynamic)) {
            found(&image);
        }
    }
    0
}

/// The lower half of `st_info`.
fn symbol_type(entry: &libc::Elf64_Sym) -> u8 {
    entry.st_info & 15
}

/// Called by the loader for each image; a result other than 0 ends the iteration.
///
/// # Safety
/// `info` describes a loaded image, and `search` points to a [`Search`].
unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: `dl_iterate_phdr` passes a valid description for the time of the call.
    let info = unsafe { &*info };
    // SAFETY: `LoadedImage::of` passes its `Search`, and nobody else uses it meanwhile.
    let search = unsafe { &mut *search.cast::<Search>() };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader keeps `dlpi_phnum` program headers at `dlpi_phdr`.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let linked = search.address.wrapping_sub(info.dlpi_addr as usize) as u64;
    let holds = |header: &libc::Elf64_Phdr| {
        header.p_type == libc::PT_LOAD && linked.wrapping_sub(header.p_vaddr) < header.p_memsz
    };
    if !headers.iter().any(holds) {
        return 0;
    }
    let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC);
    search.found = dynamic.and_then(|dynamic| LoadedImage::of_loaded(info, dynamic));
    1
}

#[cfg(test)]
mod tests;
