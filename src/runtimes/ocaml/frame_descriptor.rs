//! One descriptor in OCaml's frame tables: a return address, what is known about its frame,
//! and where its source is. `frame_table` has the layout.

#![allow(unsafe_code, reason = "reads tables that the host owns")]

use heaptap_symbols::SourceLocation;
use heaptap_symbols::ocaml_debuginfo::{self, Memory, Packing};
use heaptap_trace::{Location, LocationList};

use super::version::MajorVersion;
use crate::stack::formats::{Explained, FrameRecords, LOWEST_CODE, TableDefect};
use crate::sys::process_memory::ProcessMemory;

pub(super) const RETURN_TO_C: u16 = 0xFFFF;
pub(super) const HAS_DEBUG: u16 = 1;
pub(super) const HAS_ALLOCATIONS: u16 = 2;
const FLAGS: u16 = 3;

/// Where its number of live slots is, and where these are.
pub(super) const LIVE_COUNT: usize = 10;
pub(super) const LIVE_SLOTS: usize = 12;

/// The slots of a frame that hold values.
pub(super) struct LiveSlots {
    /// Its size and flags, or [`RETURN_TO_C`].
    pub(super) frame: u16,
    /// From the stack pointer; an odd one is the number of a register.
    pub(super) offsets: &'static [u16],
}

impl LiveSlots {
    /// # Safety
    /// A descriptor of the program lies there, which is never unloaded.
    pub(super) unsafe fn read(descriptor: usize) -> LiveSlots {
        // SAFETY: every descriptor has a frame size.
        let frame = unsafe { ((descriptor + 8) as *const u16).read() };
        // SAFETY: every descriptor has a number of live slots.
        let count = unsafe { ((descriptor + LIVE_COUNT) as *const u16).read() };
        let count = if frame == RETURN_TO_C { 0 } else { usize::from(count) };
        let slots = (descriptor + LIVE_SLOTS) as *const u16;
        // SAFETY: that many slots follow.
        LiveSlots { frame, offsets: unsafe { std::slice::from_raw_parts(slots, count) } }
    }

    /// The bytes from its stack pointer to that of its caller.
    pub(super) fn size(&self) -> usize {
        usize::from(self.frame & !FLAGS)
    }

    /// The addresses of the slots. `regs` is where registers were saved.
    pub(super) fn slots(&self, sp: usize, regs: usize) -> impl Iterator<Item = usize> + use<> {
        self.offsets.iter().map(move |&offset| match usize::from(offset) {
            offset if offset & 1 == 1 => regs.wrapping_add((offset >> 1) * size_of::<usize>()),
            offset => sp + offset,
        })
    }
}

/// One descriptor, read.
pub(super) struct Descriptor {
    pub(super) return_address: u64,
    frame: u16,
    live: u16,
    /// How many debug-info offsets there are, and where the first lies.
    offsets: usize,
    offsets_at: u64,
    /// Where the next descriptor begins.
    pub(super) end: u64,
}

/// # Safety
/// The bytes at `address` must be readable; any alignment.
pub(super) unsafe fn read<T: Copy>(address: u64) -> T {
    // SAFETY: readable, by this function's contract.
    unsafe { core::ptr::read_unaligned(address as *const T) }
}

impl Descriptor {
    /// # Safety
    /// A descriptor lies at `at`.
    pub(super) unsafe fn read(at: u64) -> Self {
        // SAFETY: every descriptor begins with a return address of 8 bytes.
        let return_address = unsafe { read::<u64>(at) };
        // SAFETY: every descriptor has a frame size.
        let frame = unsafe { read::<u16>(at + 8) };
        // SAFETY: every descriptor has a number of live slots.
        let live = unsafe { read::<u16>(at + 10) };
        let mut end = at + 12 + 2 * u64::from(live);
        let (mut offsets, mut offsets_at) = (0, 0);
        if frame != RETURN_TO_C {
            let mut parts = 1;
            if frame & HAS_ALLOCATIONS != 0 {
                // SAFETY: the flag says that a count follows the live slots.
                parts = u64::from(unsafe { read::<u8>(end) });
                end += 1 + parts;
            }
            if frame & HAS_DEBUG != 0 {
                offsets_at = end.next_multiple_of(4);
                offsets = parts as usize;
                end = offsets_at + 4 * parts;
            }
        }
        let end = end.next_multiple_of(8);
        Self { return_address, frame, live, offsets, offsets_at, end }
    }

    /// `None` if it is the return from a callback to C.
    pub(super) fn size(&self) -> Result<Option<u64>, TableDefect> {
        if self.return_address < LOWEST_CODE {
            return Err(TableDefect::ReturnAddress(self.return_address));
        }
        if self.frame == RETURN_TO_C && self.live == 0 {
            return Ok(None);
        }
        let size = self.frame & !FLAGS;
        if self.frame == RETURN_TO_C || size == 0 || !size.is_multiple_of(8) {
            let (return_address, size) = (self.return_address, u32::from(self.frame));
            return Err(TableDefect::FrameSize { return_address, size });
        }
        Ok(Some(u64::from(size)))
    }

    /// The address of its debug info: that of the allocated part `part`, or else the
    /// first there is, as `debuginfo_extract` in `runtime/backtrace_nat.c` (4.14.1,
    /// 5.3.0) has it.
    pub(super) fn debug_info(&self, part: Option<usize>) -> Option<u64> {
        let info = |index: usize| {
            let at = self.offsets_at + 4 * index as u64;
            // SAFETY: one of the offsets of a descriptor that was read by `Self::read`.
            let offset = unsafe { read::<u32>(at) };
            (offset != 0).then(|| at + u64::from(offset))
        };
        let has_parts = self.frame & HAS_ALLOCATIONS != 0;
        match part.filter(|_| has_parts) {
            Some(index) if index < self.offsets => info(index),
            Some(_) => None,
            None => (0..self.offsets).find_map(info),
        }
    }

    /// Emits its source locations, outermost function first.
    pub(super) fn locate(
        &self,
        part: Option<usize>,
        version: MajorVersion,
        memory: &ProcessMemory,
        emit: &mut dyn FnMut(SourceLocation<'_>),
    ) -> Explained {
        let Some(address) = self.debug_info(part) else {
            // Where OCaml's compiler leaves none, there is no DWARF either.
            return Explained::WithoutDebugInfo;
        };
        let is_read = ocaml_debuginfo::locate(memory, address, packing(version), emit);
        if is_read { Explained::Fully } else { Explained::Unreadable }
    }
}

fn packing(version: MajorVersion) -> Packing {
    match version {
        MajorVersion::Four => Packing::Until5_1,
        MajorVersion::Five => Packing::Since5_2,
    }
}

/// Tables whose records are OCaml's frame descriptors.
pub(super) trait OfDescriptors: Send + Sync {
    /// The OCaml that made them.
    fn version(&self) -> MajorVersion;
}

impl<T: OfDescriptors> FrameRecords for T {
    unsafe fn part_key(&self, record: u64, part: usize) -> Option<u64> {
        // SAFETY: by this function's contract a descriptor lies at `record`.
        unsafe { Descriptor::read(record) }.debug_info(Some(part))
    }

    unsafe fn locate(
        &self,
        record: u64,
        part: Option<usize>,
        memory: &ProcessMemory,
        list: &mut LocationList,
    ) -> Explained {
        // SAFETY: by this function's contract a descriptor lies at `record`.
        let descriptor = unsafe { Descriptor::read(record) };
        descriptor.locate(part, self.version(), memory, &mut |place| {
            list.add(Location {
                file: place.file,
                line: place.line,
                start_char: place.start_char,
                end_char: place.end_char,
                definition: place.function,
            });
        })
    }
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        ProcessMemory::read(self, address, into)
    }
}

/// Return address and size of the descriptor at `record`. `None` if it is a return
/// to C, or not a descriptor.
///
/// # Safety
/// A descriptor lies at `record`.
pub(super) unsafe fn plain_frame(record: u64) -> Option<(u64, u64)> {
    // SAFETY: a descriptor, by this function's contract.
    let descriptor = unsafe { Descriptor::read(record) };
    Some((descriptor.return_address, descriptor.size().ok()??))
}
