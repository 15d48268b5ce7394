//! Functions of interpreters, places, and kinds of blocks.

use std::ffi::c_char;

use crate::abi::guard::guard;
use crate::abi::handle::{heaptap_tracer, session};
use crate::abi::pointer::{bytes, check, optional_bytes, write};
use crate::abi::status::{
    HEAPTAP_STATUS_MEMORY, HEAPTAP_STATUS_OPTION, HEAPTAP_STATUS_ORDER, Refused, heaptap_status,
};
use crate::abi::versioned::{VersionedStruct, read_versioned};
use crate::tracer::HostFunction;

/// A function of an interpreter, and the lines of its instructions.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct heaptap_function {
    /// `sizeof(heaptap_function)`.
    pub size: usize,
    /// The file's name. NULL: unknown.
    pub file: *const c_char,
    /// The function's name. NULL: unknown.
    pub name: *const c_char,
    /// The line of each instruction; 0: unknown.
    pub lines: *const u32,
    /// The number of instructions, from 1 to 2^32.
    pub count: usize,
    /// Must be zero.
    pub reserved: [u8; 32],
}

// SAFETY: `repr(C)`, starts with its size, no padding; numbers and pointers only.
unsafe impl VersionedStruct for heaptap_function {
    const FIRST_SIZE: usize = 72;

    fn reserved_is_zero(&self) -> bool {
        self.reserved == [0; 32]
    }
}

/// Describes a function, and writes the code of its first instruction to `*first`: that of another
/// is `*first` plus its index. A walker returns these codes in place of addresses.
///
/// Everything is copied: the function may die at once, and its codes still mean the same. They are
/// never given to another function; one with the same names and lines gets the same codes. Keeps
/// four bytes for each instruction until the process ends.
///
/// Any thread, not inside a hook or a `heaptap_walk_fn`: describe a function when it is loaded, or
/// when a walk first meets it the next time that it can be described. Takes a lock and allocates.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_function_add(
    tracer: *mut heaptap_tracer,
    function: *const heaptap_function,
    first: *mut u64,
) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `tracer` to be NULL or a handle.
        let session = unsafe { session(tracer) }?;
        // SAFETY: this function requires `function` to be NULL or a struct of the size that it
        // starts with.
        let heaptap_function { file, name, lines, count, .. } =
            unsafe { read_versioned(function) }?;
        check(first)?;
        check(lines)?;
        if count == 0 || count > 1 << 32 {
            return Err(Refused(HEAPTAP_STATUS_OPTION));
        }
        // SAFETY: not NULL, aligned, and the header requires `count` lines there.
        let lines = unsafe { std::slice::from_raw_parts(lines, count) }.to_vec();
        // SAFETY: the header requires `file` to be NULL or to end with a NUL.
        let file = unsafe { optional_bytes(file) };
        // SAFETY: the header requires `name` to be NULL or to end with a NUL.
        let name = unsafe { optional_bytes(name) };
        let code = session.names.add(HostFunction { file, name, lines });
        let code = code.ok_or(Refused(HEAPTAP_STATUS_MEMORY))?;
        // SAFETY: this function requires `first` to be NULL or room for the result.
        unsafe { write(first, code) }
    })
}

/// Writes a code for a place to `*code`: `heaptap_function_add` for one line, for hosts that walk
/// their stack before they report a block (`heaptap_major_hit_at`). The same place gets the same
/// code. `file` and `name` have so many bytes and need not end with a NUL; bytes after the first
/// 1,024 are ignored.
///
/// Any thread, not inside a hook. Takes a lock, and allocates for a new place.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_place_intern(
    tracer: *mut heaptap_tracer,
    file: *const c_char,
    file_length: usize,
    name: *const c_char,
    name_length: usize,
    line: u32,
    code: *mut u64,
) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `tracer` to be NULL or a handle.
        let session = unsafe { session(tracer) }?;
        check(code)?;
        // SAFETY: this function requires `file` to be NULL or to have so many bytes.
        let file = unsafe { counted_bytes(file, file_length) };
        // SAFETY: this function requires `name` to be NULL or to have so many bytes.
        let name = unsafe { counted_bytes(name, name_length) };
        let interned = session.names.add(HostFunction { file, name, lines: vec![line] });
        let interned = interned.ok_or(Refused(HEAPTAP_STATUS_MEMORY))?;
        // SAFETY: this function requires `code` to be NULL or room for the result.
        unsafe { write(code, interned) }
    })
}

/// Names a kind of blocks, from 1 to 255, for readers of the trace: a table, a string, a class.
/// 0 is the kind of blocks whose kind is not known.
///
/// Kinds are given to `heaptap_major_alloc_kind` and the functions beside it. Name a kind before
/// its first block is allocated. `HEAPTAP_STATUS_ORDER`: it has another name.
///
/// Any thread, not inside a hook. Takes a lock.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_kind_name(
    tracer: *mut heaptap_tracer,
    kind: u8,
    name: *const c_char,
) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `tracer` to be NULL or a handle.
        let session = unsafe { session(tracer) }?;
        // SAFETY: this function requires `name` to be NULL or to end with a NUL.
        let name = unsafe { bytes(name) }?;
        if kind == 0 || name.is_empty() {
            return Err(Refused(HEAPTAP_STATUS_OPTION));
        }
        let is_named = session.names.name_kind(kind, &name);
        is_named.then_some(()).ok_or(Refused(HEAPTAP_STATUS_ORDER))
    })
}

/// # Safety
/// If not NULL, there are `length` bytes.
unsafe fn counted_bytes(text: *const c_char, length: usize) -> Vec<u8> {
    if text.is_null() {
        return Vec::new();
    }
    let length = length.min(MAX_NAME);
    // SAFETY: not NULL, and this function requires so many bytes or more.
    unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) }.to_vec()
}

/// The most bytes of a name that are kept.
const MAX_NAME: usize = 1_024;
