//! Frame tables, and places in source files.
//!
//! The structs without a size have the layout that the stack walker reads: `layout`
//! asserts that they are the same.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use heaptap_trace::{Location, LocationList};

use crate::abi::guard::guard;
use crate::abi::handle::{heaptap_tracer, session};
use crate::abi::pointer::{check, optional_bytes};
use crate::abi::status::{
    HEAPTAP_STATUS_FRAMES, HEAPTAP_STATUS_OFF, HEAPTAP_STATUS_OPTION, Refused, heaptap_status,
};
use crate::abi::versioned::{VersionedStruct, read_versioned};
use crate::runtimes::ocaml::frame_table::OcamlTable;
use crate::runtimes::ocaml::version::MajorVersion;
use crate::tracer::say;

/// `size` of a frame that was called from C code: see `heaptap_frame_link`. With a
/// place it shows in backtraces; without one it does not.
pub const HEAPTAP_FRAME_BOUNDARY: u32 = 0xFFFF_FFFF;
/// No place.
pub const HEAPTAP_NO_PLACE: u32 = 0xFFFF_FFFF;

/// A frame of the neutral format, for stacks that grow down. Its layout never
/// changes.
///
/// If sp is the stack pointer of a frame, the word at sp - 8 is the return address
/// that identifies the frame. Its caller's stack pointer is sp + size, so that the
/// caller's return address is at sp + size - 8.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct heaptap_frame {
    /// From 4,096 to 2^60 - 1, unique among all tables.
    pub return_address: usize,
    /// In bytes, a multiple of 8; or `HEAPTAP_FRAME_BOUNDARY`.
    pub size: u32,
    /// An index into the table's places, or `HEAPTAP_NO_PLACE`.
    pub place: u32,
}

/// Lies at the stack pointer of a frame of size `HEAPTAP_FRAME_BOUNDARY` and says
/// where the managed stack continues beyond the C code that called that frame. Its
/// layout never changes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct heaptap_frame_link {
    /// The stack pointer of the frame that called the C code.
    pub sp: usize,
    /// The return address of that frame. 0: the stack ends here.
    pub return_address: usize,
}

/// A place in a source file. Its layout never changes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct heaptap_place {
    /// The file's name. NULL: unknown.
    pub file: *const c_char,
    /// The function's name. NULL: unknown.
    pub function: *const c_char,
    /// The line, from 1. 0: unknown.
    pub line: u32,
    /// The first character within the line.
    pub start_char: u32,
    /// The last character, counted from the start of the same line.
    pub end_char: u32,
    /// An index into the table's places: the call into which this one is inlined.
    /// `HEAPTAP_NO_PLACE`: not inlined.
    pub inlined_into: u32,
}

/// `format`: an array of `heaptap_frame`.
pub const HEAPTAP_FRAMES_NEUTRAL: u32 = 0;
/// `format`: the frame table of a module, as OCaml 4.12 to 5.1 emits it.
pub const HEAPTAP_FRAMES_OCAML4: u32 = 4;
/// `format`: the frame table of a module, as OCaml 5.2 and later emit it.
pub const HEAPTAP_FRAMES_OCAML5: u32 = 5;

/// A table of frames.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct heaptap_frame_table {
    /// `sizeof(heaptap_frame_table)`.
    pub size: usize,
    /// One of `HEAPTAP_FRAMES_...`.
    pub format: u32,
    /// The number of places.
    pub place_count: u32,
    /// The frames, or the table in the runtime's own format.
    pub frames: *const c_void,
    /// The number of frames. 0 for a table in the runtime's own format, which
    /// contains it.
    pub count: usize,
    /// The places. NULL if there are none.
    pub places: *const heaptap_place,
    /// Must be zero.
    pub reserved: [u8; 32],
}

// SAFETY: `repr(C)`, starts with its size, no padding; numbers and pointers only.
unsafe impl VersionedStruct for heaptap_frame_table {
    const FIRST_SIZE: usize = 72;

    fn reserved_is_zero(&self) -> bool {
        self.reserved == [0; 32]
    }
}

/// Adds a frame table. The table and its strings must stay valid and unchanged
/// until the tracer stops.
///
/// Any thread, also while others take samples; not inside a hook. Costs about
/// 20 ns for each frame.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_frames_add(
    tracer: *mut heaptap_tracer,
    table: *const heaptap_frame_table,
) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `tracer` to be NULL or a handle.
        let session = unsafe { session(tracer) }?;
        // SAFETY: this function requires `table` to be NULL or a struct of the size
        // that it starts with.
        let table = unsafe { read_versioned(table) }?;
        check(table.frames.cast::<u64>())?;
        if !session.is_live() {
            return Err(Refused(HEAPTAP_STATUS_OFF));
        }
        let added = match table.format {
            HEAPTAP_FRAMES_NEUTRAL => {
                let (frames, places) = (table.frames.cast(), table.places.cast());
                // SAFETY: the host guarantees both arrays; `layout` asserts that their types
                // have the layout of the internal ones.
                unsafe {
                    session.tables.add_neutral(frames, table.count, places, table.place_count)
                }
            }
            HEAPTAP_FRAMES_OCAML4 | HEAPTAP_FRAMES_OCAML5 => {
                let version = if table.format == HEAPTAP_FRAMES_OCAML4 {
                    MajorVersion::Four
                } else {
                    MajorVersion::Five
                };
                // SAFETY: this function requires a table in the format that it names, which
                // stays unchanged until the tracer stops.
                let table = unsafe { OcamlTable::new(table.frames.cast(), version) };
                session.tables.add(Arc::new(table))
            }
            _ => return Err(Refused(HEAPTAP_STATUS_OPTION)),
        };
        added.map_err(|defect| {
            say(format_args!("a frame table was refused: {defect}"));
            Refused(HEAPTAP_STATUS_FRAMES)
        })
    })
}

/// The places of a code, which a `heaptap_locate_fn` fills in.
pub struct heaptap_places {
    list: *mut LocationList,
}

impl heaptap_places {
    pub(crate) fn new(list: &mut LocationList) -> heaptap_places {
        heaptap_places { list }
    }
}

/// Finds the places of a code and passes each to `heaptap_places_add`. If calls
/// are inlined, the outermost function comes first. Called on the writer thread,
/// once for each code of a domain. It must not call other functions of heaptap.
pub type heaptap_locate_fn =
    Option<unsafe extern "C-unwind" fn(host: *mut c_void, code: u64, places: *mut heaptap_places)>;

/// Adds a place to `places`. Only inside a `heaptap_locate_fn`, with the `places`
/// that it was given. The strings are copied; `inlined_into` is ignored.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_places_add(
    places: *mut heaptap_places,
    place: *const heaptap_place,
) -> heaptap_status {
    guard(|| {
        check(places)?;
        check(place)?;
        // SAFETY: not NULL, aligned, and this function requires a place there.
        let place = unsafe { place.read() };
        // SAFETY: not NULL, aligned, and this function requires it to be what the
        // host's `heaptap_locate_fn` was given, which lives until that returns.
        let places = unsafe { &mut *places };
        // SAFETY: `locator` borrows the list for as long as the host's function runs.
        let list = unsafe { &mut *places.list };
        // SAFETY: the header requires `file` to be NULL or to end with a NUL.
        let file = unsafe { optional_bytes(place.file) };
        // SAFETY: the header requires `function` to be NULL or to end with a NUL.
        let function = unsafe { optional_bytes(place.function) };
        list.add(Location {
            file: &file,
            line: place.line,
            start_char: place.start_char,
            end_char: place.end_char,
            definition: &function,
        });
        Ok(())
    })
}
