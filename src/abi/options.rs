//! What a host chooses.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::time::Duration;

use crate::abi::frames::{heaptap_locate_fn, heaptap_places};
use crate::abi::pointer::{bytes, optional_bytes};
use crate::abi::status::{HEAPTAP_STATUS_OPTION, HEAPTAP_STATUS_RATE, Refused};
use crate::abi::versioned::VersionedStruct;
use crate::sampling::Rate;
use crate::tracer::{Follow, Locator, Options, WhenFull};

/// `when_full`: wait up to `wait_ms` for the writer, then drop and count.
pub const HEAPTAP_FULL_WAIT: u32 = 0;
/// `when_full`: drop and count at once.
pub const HEAPTAP_FULL_DROP: u32 = 1;

/// `follow`: by `heaptap_young_sweep` and `heaptap_major_sweep`.
pub const HEAPTAP_FOLLOW_SWEEPS: u32 = 0;
/// `follow`: by `heaptap_block_promote`, `_move` and `_collect`.
pub const HEAPTAP_FOLLOW_ADDRESSES: u32 = 1;

/// `native_frames`: C frames are left out of backtraces.
pub const HEAPTAP_NATIVE_OFF: u32 = 0;
/// `native_frames`: C frames between a sample and the innermost managed frame
/// are unwound, if `heaptap_stack` says where they end.
pub const HEAPTAP_NATIVE_ON: u32 = 1;

/// What a trace is to be. Zero in a field means the usual value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct heaptap_options {
    /// `sizeof(heaptap_options)`.
    pub size: usize,
    /// The file to write. `%p` stands for the process id, `%e` for the
    /// executable's name, `%t` for the time in seconds, `%%` for a percent
    /// sign. With `%p`, a forked child goes on in a file of its own.
    pub file: *const c_char,
    /// The probability with which each word is sampled, from 1e-7 to 1. Usually
    /// 1e-5.
    pub rate: f64,
    /// The same seed gives the same samples in a program that does the same.
    /// Usually from the system.
    pub seed: u64,
    /// Words in front of a block that belong to it: its address as the runtime
    /// sees it is so much behind its beginning. At most 8.
    pub header_words: u32,
    /// 1: one mutator at a time, and a file that every reader opens (version
    /// 2). 0: any number, and a file with a domain for each (version 3).
    pub max_mutators: u32,
    /// The most frames in a backtrace: outer ones are cut. Usually 262,144,
    /// which is also the most.
    pub max_frames: u32,
    /// `HEAPTAP_FULL_`: what to do when the writer has fallen behind.
    pub when_full: u32,
    /// The longest wait for the writer, in milliseconds. Usually 1,000.
    pub wait_ms: u32,
    /// `HEAPTAP_FOLLOW_`: how blocks are followed to their end.
    pub follow: u32,
    /// `HEAPTAP_NATIVE_`: whether C frames are unwound.
    pub native_frames: u32,
    /// Memory for events on their way to the writer. Usually 8,192.
    pub buffer_kib: u32,
    /// A name for the trace, or NULL.
    pub context: *const c_char,
    /// The runtime's parameters as it prints them, or NULL.
    pub runtime_params: *const c_char,
    /// Explains codes that are in no frame table, or NULL: they are then looked
    /// up as return addresses in the debug information of the program.
    pub locate: heaptap_locate_fn,
    /// Handed to `locate`.
    pub locate_host: *mut c_void,
    /// Zero.
    pub reserved: [u8; 64],
}

// SAFETY: `repr(C)`, begins with its size; numbers, pointers and an optional
// function pointer, which the header requires to be one or NULL.
unsafe impl VersionedStruct for heaptap_options {
    const FIRST_SIZE: usize = 160;

    const ZERO: Self = heaptap_options {
        size: 0,
        file: std::ptr::null(),
        rate: 0.0,
        seed: 0,
        header_words: 0,
        max_mutators: 0,
        max_frames: 0,
        when_full: 0,
        wait_ms: 0,
        follow: 0,
        native_frames: 0,
        buffer_kib: 0,
        context: std::ptr::null(),
        runtime_params: std::ptr::null(),
        locate: None,
        locate_host: std::ptr::null_mut(),
        reserved: [0; 64],
    };

    fn reserved_is_zero(&self) -> bool {
        self.reserved == [0; 64]
    }
}

impl heaptap_options {
    /// Checks all but the file, which the environment may name instead.
    ///
    /// # Safety
    /// The strings are NULL or end with a NUL.
    pub(crate) unsafe fn checked(&self) -> Result<Options, Refused> {
        let rate = match self.rate {
            0.0 => Rate::DEFAULT,
            rate => Rate::new(rate).ok_or(Refused(HEAPTAP_STATUS_RATE))?,
        };
        let max_frames = or_usual(self.max_frames as usize, Options::MAX_FRAMES);
        let buffer_kib = or_usual(self.buffer_kib as usize, Options::BUFFER_KIB);
        let fine = self.header_words <= 8
            && self.max_mutators <= 1
            && max_frames <= Options::MAX_FRAMES
            && (256..=4 << 20).contains(&buffer_kib)
            && self.wait_ms <= 60_000
            && self.native_frames <= HEAPTAP_NATIVE_ON;
        if !fine {
            return Err(Refused(HEAPTAP_STATUS_OPTION));
        }
        let wait = match self.wait_ms {
            0 => Options::WAIT,
            wait_ms => Duration::from_millis(u64::from(wait_ms)),
        };
        Ok(Options {
            seed: self.seed,
            header_words: self.header_words as usize,
            one_mutator: self.max_mutators == 1,
            max_frames,
            when_full: match self.when_full {
                HEAPTAP_FULL_WAIT => WhenFull::Wait(wait),
                HEAPTAP_FULL_DROP => WhenFull::Drop,
                _ => return Err(Refused(HEAPTAP_STATUS_OPTION)),
            },
            follow: match self.follow {
                HEAPTAP_FOLLOW_SWEEPS => Follow::Sweeps,
                HEAPTAP_FOLLOW_ADDRESSES => Follow::Addresses,
                _ => return Err(Refused(HEAPTAP_STATUS_OPTION)),
            },
            native_frames: self.native_frames == HEAPTAP_NATIVE_ON,
            buffers: Options::buffers_in(buffer_kib),
            // SAFETY: the caller's promise.
            context: unsafe { optional_bytes(self.context) },
            // SAFETY: the caller's promise.
            runtime_params: unsafe { optional_bytes(self.runtime_params) },
            locate: self.locator(),
            ..Options::new(Vec::new(), rate)
        })
    }

    /// The file's name, which must be there.
    ///
    /// # Safety
    /// The string is NULL or ends with a NUL.
    pub(crate) unsafe fn file(&self) -> Result<Vec<u8>, Refused> {
        // SAFETY: the caller's promise.
        unsafe { bytes(self.file) }
    }

    /// The host's own way of explaining codes.
    fn locator(&self) -> Option<Locator> {
        let locate = self.locate?;
        let host = self.locate_host as usize;
        Some(Arc::new(move |code, list| {
            let mut places = heaptap_places::new(list);
            // SAFETY: the host's function, called as the header says.
            unsafe { locate(host as *mut c_void, code, &raw mut places) };
        }))
    }
}

fn or_usual(value: usize, usual: usize) -> usize {
    if value == 0 { usual } else { value }
}
