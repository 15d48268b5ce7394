//! Which module a code address is in, and where its unwind tables are.
//!
//! Asked of the C library's `_dl_find_object` (glibc 2.35 and later, `dlfcn.h`),
//! which the exception unwinders use too: it takes no lock, allocates nothing,
//! and knows at once of every dlopen and dlclose. Where it does not exist there
//! are no native frames.

#![allow(unsafe_code, reason = "calls the C library and reads mapped tables")]

use core::ffi::{c_char, c_int, c_void};
use core::ops::Range;

/// `struct dl_find_object` of x86-64 (`dlfcn.h`, `bits/dl_find_object.h`, glibc
/// 2.36).
#[repr(C)]
struct Answer {
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
    _addr: usize,
    /// Empty for the main program.
    name: *const c_char,
}

type FindObject = unsafe extern "C" fn(*const c_void, *mut Answer) -> c_int;

/// A module in memory.
pub(super) struct Module {
    pub(super) range: Range<u64>,
    /// From `.eh_frame_hdr` to the module's end.
    pub(super) tables: &'static [u8],
    is_program: bool,
}

/// The modules of this process.
pub(crate) struct Modules {
    find: FindObject,
    /// Our own, if it is a library of its own; else empty.
    own: Range<u64>,
}

impl Modules {
    /// `None` where the C library cannot say. Not inside hooks.
    pub(crate) fn new() -> Option<Self> {
        // SAFETY: a NUL-terminated name and a handle that always is valid.
        let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
        if symbol.is_null() {
            return None;
        }
        // SAFETY: the function of that name has this type.
        let find = unsafe { core::mem::transmute::<*mut c_void, FindObject>(symbol) };
        let mut modules = Self { find, own: 0..0 };
        let own = modules.find(Self::new as *const () as u64)?;
        if !own.is_program {
            modules.own = own.range;
        }
        Some(modules)
    }

    /// Whether the address is in this library itself.
    pub(super) fn is_own(&self, pc: u64) -> bool {
        self.own.contains(&pc)
    }

    pub(super) fn find(&self, pc: u64) -> Option<Module> {
        let mut answer = core::mem::MaybeUninit::<Answer>::zeroed();
        // SAFETY: any address may be asked for; the answer has its type.
        let status = unsafe { (self.find)(pc as *const c_void, answer.as_mut_ptr()) };
        // SAFETY: all zeroes is a value of it, too.
        let answer = unsafe { answer.assume_init() };
        let (start, end) = (answer.map_start as u64, answer.map_end as u64);
        let tables = answer.eh_frame as u64;
        if status != 0 || answer.link_map.is_null() || !(start..end).contains(&tables) {
            return None;
        }
        // SAFETY: the C library's own record of a loaded module, which has code
        // on the stack and so stays.
        let name = unsafe { (*answer.link_map).name };
        // SAFETY: a NUL-terminated name.
        let is_program = !name.is_null() && unsafe { *name } == 0;
        // SAFETY: within the module, whose code is on the stack, so that it stays
        // mapped while we look. Between its segments there may be pages that
        // cannot be read, but the tables do not lead there.
        let tables =
            unsafe { core::slice::from_raw_parts(answer.eh_frame, (end - tables) as usize) };
        Some(Module { range: start..end, tables, is_program })
    }
}
