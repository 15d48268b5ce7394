//! Frame tables, and places in source files.

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

/// `size` of a frame that C code has called: see `heaptap_frame_link`. With a
/// place it is a frame like others; without one it is not shown.
pub const HEAPTAP_FRAME_BOUNDARY: u32 = 0xFFFF_FFFF;
/// No place.
pub const HEAPTAP_NO_PLACE: u32 = 0xFFFF_FFFF;

/// A frame of the neutral layout, for stacks that grow down.
///
/// With sp the stack pointer of a frame, the word at sp - 8 is the return
/// address by which the frame is known. Its caller's stack pointer is sp + size,
/// and so the caller's return address is at sp + size - 8.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct heaptap_frame {
    /// From 4,096 to 2^60 - 1, and in no other frame of any table.
    pub return_address: usize,
    /// In bytes, a multiple of 8; or `HEAPTAP_FRAME_BOUNDARY`.
    pub size: u32,
    /// An index into the table's places, or `HEAPTAP_NO_PLACE`.
    pub place: u32,
}

/// Lies at the stack pointer of a frame of size `HEAPTAP_FRAME_BOUNDARY`, which
/// C code has called: says where managed code goes on behind that C code.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct heaptap_frame_link {
    /// The stack pointer of the frame that called the C code.
    pub sp: usize,
    /// That frame's return address; 0: there is none, the stack ends here.
    pub return_address: usize,
}

/// A place in a source file.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct heaptap_place {
    /// NULL: not known.
    pub file: *const c_char,
    /// NULL: not known.
    pub function: *const c_char,
    /// From 1; 0: not known.
    pub line: u32,
    /// First character within the line.
    pub start_char: u32,
    /// Last character, counted from the same line's start.
    pub end_char: u32,
    /// An index into the table's places: the call that this is inlined into; or
    /// `HEAPTAP_NO_PLACE`.
    pub inlined_into: u32,
}

/// `format`: an array of `heaptap_frame`.
pub const HEAPTAP_FRAMES_NEUTRAL: u32 = 0;
/// `format`: a table as OCaml 4.12 to 5.1 emits it for a module.
pub const HEAPTAP_FRAMES_OCAML4: u32 = 4;
/// `format`: a table as OCaml 5.2 and later emits it for a module.
pub const HEAPTAP_FRAMES_OCAML5: u32 = 5;

/// A table of frames.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct heaptap_frame_table {
    /// `sizeof(heaptap_frame_table)`.
    pub size: usize,
    /// `HEAPTAP_FRAMES_`.
    pub format: u32,
    /// How many places there are.
    pub place_count: u32,
    /// The frames, or the runtime's own table.
    pub frames: *const c_void,
    /// How many frames there are; 0 for a runtime's own table, which knows it.
    pub count: usize,
    /// The places, or NULL if there are none.
    pub places: *const heaptap_place,
    /// Zero.
    pub reserved: [u8; 32],
}

// SAFETY: `repr(C)`, begins with its size; numbers and pointers only.
unsafe impl VersionedStruct for heaptap_frame_table {
    const FIRST_SIZE: usize = 72;

    const ZERO: Self = heaptap_frame_table {
        size: 0,
        format: 0,
        place_count: 0,
        frames: std::ptr::null(),
        count: 0,
        places: std::ptr::null(),
        reserved: [0; 32],
    };

    fn reserved_is_zero(&self) -> bool {
        self.reserved == [0; 32]
    }
}

/// Adds a table. It and its strings stay as they are until the tracer stops.
///
/// Any thread, also while others take samples; not inside a hook. Costs some
/// 20 ns a frame.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_frames_add(
    tracer: *mut heaptap_tracer,
    table: *const heaptap_frame_table,
) -> heaptap_status {
    guard(|| {
        // SAFETY: the host's promise.
        let session = unsafe { session(tracer) }?;
        // SAFETY: the host's promise.
        let table = unsafe { read_versioned(table) }?;
        check(table.frames.cast::<u64>())?;
        if !session.is_live() {
            return Err(Refused(HEAPTAP_STATUS_OFF));
        }
        let added = match table.format {
            HEAPTAP_FRAMES_NEUTRAL => {
                let (frames, places) = (table.frames.cast(), table.places.cast());
                // SAFETY: the host's promise; the layouts are the same.
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
                // SAFETY: the host promises a table in the format it names, which stays
                // as it is until the tracer stops.
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

/// Where a `heaptap_locate_fn` puts the places of a code.
pub struct heaptap_places {
    list: *mut LocationList,
}

impl heaptap_places {
    pub(crate) fn new(list: &mut LocationList) -> heaptap_places {
        heaptap_places { list }
    }
}

/// Explains a code by calling `heaptap_places_add`, for the outermost function
/// first when calls were inlined. Called on the writer thread, once for each
/// code of a domain; it must not call other functions of heaptap.
pub type heaptap_locate_fn =
    Option<unsafe extern "C-unwind" fn(host: *mut c_void, code: u64, places: *mut heaptap_places)>;

/// Adds a place of the code that is being explained. Only inside a
/// `heaptap_locate_fn`, with what that was given. The strings are copied, and
/// `inlined_into` is not looked at.
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
        // SAFETY: checked, and by the host's promise a place.
        let place = unsafe { place.read() };
        // SAFETY: checked, and by the host's promise what its function was
        // given, which lives until that returns.
        let places = unsafe { &mut *places };
        // SAFETY: the list outlives the host's function.
        let list = unsafe { &mut *places.list };
        // SAFETY: a string or NULL, by the host's promise.
        let file = unsafe { optional_bytes(place.file) };
        // SAFETY: as above.
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
