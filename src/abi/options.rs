//! The options of a trace.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::time::Duration;

use heaptap_settings::Recorder;

use crate::abi::frames::{heaptap_locate_fn, heaptap_places};
use crate::abi::pointer::{bytes, optional_bytes};
use crate::abi::status::{HEAPTAP_STATUS_OPTION, HEAPTAP_STATUS_RATE, Refused};
use crate::abi::versioned::VersionedStruct;
use crate::tracer::{Locator, Options, Rate, RecorderLimits, RotationLimits, Tracking, WhenFull};

/// `when_full`: wait up to `wait_ms` for the writer, then drop the sample and
/// count it.
pub const HEAPTAP_FULL_WAIT: u32 = 0;
/// `when_full`: drop the sample and count it at once.
pub const HEAPTAP_FULL_DROP: u32 = 1;

/// `follow`: with `heaptap_young_sweep` and `heaptap_major_sweep`.
pub const HEAPTAP_FOLLOW_SWEEPS: u32 = 0;
/// `follow`: with `heaptap_block_promote`, `heaptap_block_move` and
/// `heaptap_block_collect`.
pub const HEAPTAP_FOLLOW_ADDRESSES: u32 = 1;

/// `native_frames`: C frames are left out of backtraces.
pub const HEAPTAP_NATIVE_OFF: u32 = 0;
/// `native_frames`: C frames between a sample and the innermost managed frame
/// are unwound, if `native_limit` in `heaptap_stack` is set.
pub const HEAPTAP_NATIVE_ON: u32 = 1;

/// The options of a trace. Zero in a field means its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct heaptap_options {
    /// `sizeof(heaptap_options)`.
    pub size: usize,
    /// The trace file. In its name `%p` stands for the process id, `%e` for the
    /// executable's name, `%t` for the time in seconds and `%%` for a percent
    /// sign. With `%p`, a forked child is traced into its own file; without, it
    /// is not traced.
    pub file: *const c_char,
    /// The probability with which each allocated word is sampled, from 1e-7 to
    /// 1. Default: 1e-5.
    pub rate: f64,
    /// The seed of the sampler. With the same seed, a program that does the same
    /// gives the same samples. Default: a new seed in each run.
    pub seed: u64,
    /// The number of header words of a block: the address by which the runtime
    /// knows a block is this many words after its start. At most 8.
    pub header_words: u32,
    /// 1: one mutator at a time, and a file that every reader opens (version
    /// 2). 0: any number of mutators, and a file with a domain for each (version
    /// 3).
    pub max_mutators: u32,
    /// The most frames in a backtrace, of which the innermost are kept. Default
    /// and upper bound: 262,144.
    pub max_frames: u32,
    /// One of `HEAPTAP_FULL_...`: what to do when the writer has fallen behind.
    pub when_full: u32,
    /// The longest wait for the writer, in milliseconds. Default: 1,000; at most
    /// 60,000.
    pub wait_ms: u32,
    /// One of `HEAPTAP_FOLLOW_...`: how the host reports what becomes of blocks.
    pub follow: u32,
    /// One of `HEAPTAP_NATIVE_...`: whether C frames are unwound.
    pub native_frames: u32,
    /// Memory for events on their way to the writer, in KiB. Default: 8,192; from
    /// 256 to 4,194,304.
    pub buffer_kib: u32,
    /// A name for the trace, or NULL.
    pub context: *const c_char,
    /// The runtime's parameters, for the trace's readers, or NULL.
    pub runtime_params: *const c_char,
    /// Finds the places of codes that are in no frame table. NULL: such codes are
    /// return addresses, and the program's debug information has their places.
    pub locate: heaptap_locate_fn,
    /// Passed to `locate`.
    pub locate_host: *mut c_void,
    /// The trace is a series of files, each of which has at most so many bytes, its sidecars
    /// included; from 64,000. 0: no limit.
    pub rotate_bytes: u64,
    /// The trace is a series of files, each of which covers at most so many seconds. 0: no limit.
    pub rotate_seconds: u32,
    /// The trace is a series of files, of which so many are kept, from 2 to 1,000,000. Without a
    /// limit for a file the next one begins with `heaptap_tracer_next_part` only. Default, if
    /// there is one: 20. If all three are 0 the trace is one file.
    pub keep: u32,
    /// What the trace may cost, by the processor time of the program: 0.01 for one per cent, from 0.0001
    /// to 0.5. The rate then changes as the program does, up to `rate`, whose default is then 0.01. 0:
    /// the rate stays as it is.
    pub budget: f64,
    /// The trace is kept in memory, of which this many of the last seconds, and written to a
    /// directory of files when the command `recorder` asks for it (`heaptap_control_command`), when
    /// memory runs short, or when a signal ends the process that has no handler. At most 604,800.
    /// Not together with the limits of a series. 0: the trace is written all the time.
    pub recorder_seconds: u32,
    /// The most memory of a recorder, in MiB, from 8 to 16,384. Default: 64. Less time is kept if it
    /// does not fit.
    pub recorder_mib: u32,
    /// Must be zero.
    pub reserved: [u8; 32],
}

// SAFETY: `repr(C)`, starts with its size, no padding; numbers, pointers and an
// optional function pointer, which the header requires to be a function or NULL.
unsafe impl VersionedStruct for heaptap_options {
    const FIRST_SIZE: usize = 160;

    fn reserved_is_zero(&self) -> bool {
        self.reserved == [0; 32]
    }
}

impl heaptap_options {
    /// Checks everything except the file, which the environment may name instead.
    ///
    /// # Safety
    /// The strings are NULL or end with a NUL.
    pub(crate) unsafe fn checked(&self) -> Result<Options, Refused> {
        let rate = match self.rate {
            0.0 => Rate::DEFAULT,
            rate => Rate::new(rate).ok_or(Refused(HEAPTAP_STATUS_RATE))?,
        };
        let is_budget =
            self.budget == 0.0 || heaptap_settings::BUDGETS.contains(&(self.budget * 100.0));
        let max_frames = or_default(self.max_frames as usize, Options::MAX_FRAMES);
        let buffer_kib = or_default(self.buffer_kib as usize, Options::BUFFER_KIB);
        let in_range = self.header_words <= 8
            && self.max_mutators <= 1
            && max_frames <= Options::MAX_FRAMES
            && (256..=4 << 20).contains(&buffer_kib)
            && self.wait_ms <= 60_000
            && self.native_frames <= HEAPTAP_NATIVE_ON
            && is_budget;
        if !in_range {
            return Err(Refused(HEAPTAP_STATUS_OPTION));
        }
        let wait = match self.wait_ms {
            0 => Options::WAIT,
            wait_ms => Duration::from_millis(u64::from(wait_ms)),
        };
        let mut options = Options {
            seed: self.seed,
            header_words: self.header_words as usize,
            one_mutator: self.max_mutators == 1,
            max_frames,
            when_full: match self.when_full {
                HEAPTAP_FULL_WAIT => WhenFull::Wait(wait),
                HEAPTAP_FULL_DROP => WhenFull::Drop,
                _ => return Err(Refused(HEAPTAP_STATUS_OPTION)),
            },
            tracking: match self.follow {
                HEAPTAP_FOLLOW_SWEEPS => Tracking::Sweeps,
                HEAPTAP_FOLLOW_ADDRESSES => Tracking::Addresses,
                _ => return Err(Refused(HEAPTAP_STATUS_OPTION)),
            },
            rotation: self.rotation()?,
            recorder: self.recorder()?,
            native_frames: self.native_frames == HEAPTAP_NATIVE_ON,
            buffers: Options::buffers_in(buffer_kib),
            // SAFETY: this function requires `context` to be NULL or to end with a NUL.
            context: unsafe { optional_bytes(self.context) },
            // SAFETY: this function requires `runtime_params` to be NULL or to end with a NUL.
            runtime_params: unsafe { optional_bytes(self.runtime_params) },
            locate: self.locator(),
            ..Options::new(Vec::new(), rate)
        };
        if self.budget != 0.0 {
            options.set_budget(self.budget, Some(rate).filter(|_| self.rate != 0.0));
        }
        Ok(options)
    }

    /// The file's name, which is required.
    ///
    /// # Safety
    /// The string is NULL or ends with a NUL.
    pub(crate) unsafe fn file(&self) -> Result<Vec<u8>, Refused> {
        // SAFETY: this function requires `file` to be NULL or to end with a NUL.
        unsafe { bytes(self.file) }
    }

    /// When the trace goes on in another file.
    fn rotation(&self) -> Result<Option<RotationLimits>, Refused> {
        if (self.rotate_bytes, self.rotate_seconds, self.keep) == (0, 0, 0) {
            return Ok(None);
        }
        let bytes = Some(self.rotate_bytes).filter(|&bytes| bytes != 0);
        let age = Some(self.rotate_seconds).filter(|&seconds| seconds != 0);
        let keep = or_default(self.keep as usize, heaptap_settings::DEFAULT_KEEP as usize);
        let in_range = bytes.is_none_or(|bytes| bytes >= heaptap_settings::MIN_PART)
            && (2..=1_000_000).contains(&keep);
        let age = age.map(|seconds| Duration::from_secs(u64::from(seconds)));
        let limits = RotationLimits { bytes, age, keep };
        in_range.then_some(Some(limits)).ok_or(Refused(HEAPTAP_STATUS_OPTION))
    }

    /// What is kept in memory instead of being written.
    fn recorder(&self) -> Result<Option<RecorderLimits>, Refused> {
        if (self.recorder_seconds, self.recorder_mib) == (0, 0) {
            return Ok(None);
        }
        let time = Duration::from_secs(u64::from(self.recorder_seconds));
        let bytes = match self.recorder_mib {
            0 => Recorder::DEFAULT_BYTES,
            mib => u64::from(mib) << 20,
        };
        let in_range = !time.is_zero()
            && time <= Recorder::LONGEST
            && (Recorder::MIN_BYTES..=Recorder::MAX_BYTES).contains(&bytes)
            && self.rotation()?.is_none();
        let limits = RecorderLimits { time, bytes, at_exit: false };
        in_range.then_some(Some(limits)).ok_or(Refused(HEAPTAP_STATUS_OPTION))
    }

    /// The host's function for places of codes.
    fn locator(&self) -> Option<Locator> {
        let locate = self.locate?;
        let host = self.locate_host as usize;
        Some(Arc::new(move |code, list| {
            let mut places = heaptap_places::new(list);
            // SAFETY: the host's function of the documented type; `places` outlives the
            // call.
            unsafe { locate(host as *mut c_void, code, &raw mut places) };
        }))
    }
}

fn or_default(value: usize, default: usize) -> usize {
    if value == 0 { default } else { value }
}
