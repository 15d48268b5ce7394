//! The module of a code address, and its unwind tables.
//!
//! From the C library's `_dl_find_object` (glibc 2.35 and later, `dlfcn.h`), which
//! exception unwinders use as well: it takes no lock, allocates nothing, and knows every
//! dlopen and dlclose at once. Where it does not exist there are no native frames.

#![allow(unsafe_code, reason = "calls the C library and reads mapped tables")]

use core::ffi::{c_char, c_int, c_void};
use core::ops::Range;

use libc::{Elf64_Ehdr, Elf64_Phdr, PF_R, PT_LOAD};

/// `struct dl_find_object` of x86-64 (`dlfcn.h`, `bits/dl_find_object.h`, glibc
/// 2.36).
#[repr(C)]
struct FoundObject {
    flags: u64,
    map_start: *const u8,
    map_end: *const u8,
    link_map: *const LinkMap,
    /// The segment `PT_GNU_EH_FRAME`, that is `.eh_frame_hdr`.
    eh_frame: *const u8,
    reserved: [u64; 7],
}

/// The head of `struct link_map` (`link.h`, glibc 2.36).
#[repr(C)]
struct LinkMap {
    /// How far the module is from where its headers place it.
    addr: u64,
    /// Empty for the main program.
    name: *const c_char,
}

type FindObject = unsafe extern "C" fn(*const c_void, *mut FoundObject) -> c_int;

/// A module in memory.
pub(super) struct Module {
    pub(super) range: Range<u64>,
    /// From `.eh_frame_hdr` to the end of the segment that holds it: linkers put `.eh_frame` into the
    /// same one, and they refer to nothing else.
    pub(super) tables: &'static [u8],
    is_program: bool,
}

/// The modules of this process.
pub(crate) struct Modules {
    find: FindObject,
    /// This library's own, if it is a shared library; empty if it is linked into the
    /// program.
    own: Range<u64>,
}

impl Modules {
    /// `None` if the C library has no `_dl_find_object`. Not inside hooks.
    pub(crate) fn new() -> Option<Self> {
        // SAFETY: the name is a C string literal, and RTLD_DEFAULT is always a handle.
        let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
        if symbol.is_null() {
            return None;
        }
        // SAFETY: `dlfcn.h` of glibc declares the function of this name with this type.
        let find = unsafe { core::mem::transmute::<*mut c_void, FindObject>(symbol) };
        let mut modules = Self { find, own: 0..0 };
        let own = modules.find(Self::new as *const () as u64)?;
        if !own.is_program {
            modules.own = own.range;
        }
        Some(modules)
    }

    /// Whether an address is in this library.
    pub(super) fn is_own(&self, pc: u64) -> bool {
        self.own.contains(&pc)
    }

    pub(super) fn find(&self, pc: u64) -> Option<Module> {
        let mut found = core::mem::MaybeUninit::<FoundObject>::zeroed();
        // SAFETY: glibc accepts any address, and writes at most a `struct dl_find_object`.
        let status = unsafe { (self.find)(pc as *const c_void, found.as_mut_ptr()) };
        // SAFETY: `zeroed` initialised every byte, and any bits are valid integers and raw
        // pointers.
        let found = unsafe { found.assume_init() };
        let (start, end) = (found.map_start as u64, found.map_end as u64);
        let tables = found.eh_frame as u64;
        if status != 0 || found.link_map.is_null() || !(start..end).contains(&tables) {
            return None;
        }
        // SAFETY: glibc keeps the link map of a loaded module; this one stays loaded,
        // since a function of it is on the stack.
        let LinkMap { addr, name } = unsafe { found.link_map.read() };
        // SAFETY: glibc's names end with NUL, so there is a first byte.
        let is_program = !name.is_null() && unsafe { *name } == 0;
        // SAFETY: a module begins here, and stays loaded since a function of it is on the stack.
        let segment_end = unsafe { segment_end(start, addr, tables) }.filter(|to| *to <= end)?;
        // SAFETY: bytes of a segment that the loader has mapped from the file to be read, of a
        // module that stays loaded.
        let tables =
            unsafe { core::slice::from_raw_parts(found.eh_frame, (segment_end - tables) as usize) };
        Some(Module { range: start..end, tables, is_program })
    }
}

/// Where what the file holds of a readable segment ends, by the address of something in it. `None` if
/// the module does not begin with its headers, or they have no such segment.
///
/// # Safety
/// A module that stays loaded begins at `start`, and is `moved` from where its headers place it.
unsafe fn segment_end(start: u64, moved: u64, address: u64) -> Option<u64> {
    const PAGE: u64 = 4096;
    const SIZE: u64 = size_of::<Elf64_Phdr>() as u64;
    // SAFETY: the first page of a module is mapped, and readable as all that the loader maps to
    // be executed or read on x86-64.
    let header = unsafe { (start as *const Elf64_Ehdr).read_unaligned() };
    let count = u64::from(header.e_phnum);
    let is_elf = header.e_ident.starts_with(b"\x7fELF") && u64::from(header.e_phentsize) == SIZE;
    if !is_elf || header.e_phoff.checked_add(count * SIZE)? > PAGE {
        return None;
    }
    (0..count).find_map(|index| {
        let place = start + header.e_phoff + index * SIZE;
        // SAFETY: a program header, which lies in the first page.
        let segment = unsafe { (place as *const Elf64_Phdr).read_unaligned() };
        let from = moved.wrapping_add(segment.p_vaddr);
        let to = from.checked_add(segment.p_filesz)?;
        let is_readable = segment.p_type == PT_LOAD && segment.p_flags & PF_R != 0;
        (is_readable && (from..to).contains(&address)).then_some(to)
    })
}
