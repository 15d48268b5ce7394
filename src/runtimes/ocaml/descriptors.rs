//! The runtime's own index of its frame tables: an open-addressed hash table of
//! pointers to descriptors, which its collector finds frames by.
//!
//! OCaml 4 has it in two variables, `caml_frame_descriptors` and
//! `caml_frame_descriptors_mask` (`runtime/roots_nat.c`); OCaml 5 in a structure
//! that `caml_get_frame_descrs` tells the place of
//! (`runtime/frame_descriptors.c`). It is made when the runtime starts, and made
//! anew when a plugin is loaded, under the master lock or while all domains stand
//! still. So it may be read inside hooks, and nowhere else.
//!
//! That it is laid out as known is proved before: the runtime is lent a table of
//! ours, and must find in it what we have put there.

use std::ptr;

use super::version::MajorVersion;
use crate::runtimes::attach::symbols::lookup;

/// Where the runtime keeps the table.
#[derive(Clone, Copy)]
pub(super) struct Descriptors {
    /// Of the pointer to the first bucket: NULL before the runtime starts.
    buckets: *const *const Bucket,
    mask: Mask,
}

/// A pointer to a descriptor, which begins with its return address; NULL if it
/// is free.
type Bucket = *const u64;

/// Where the number of the last bucket is.
#[derive(Clone, Copy)]
enum Mask {
    /// A `uintnat`.
    Four(*const usize),
    /// An `int`.
    Five(*const i32),
}

// SAFETY: variables of the runtime, which are read as the module says.
unsafe impl Send for Descriptors {}
// SAFETY: as above.
unsafe impl Sync for Descriptors {}

/// `struct caml_frame_descrs` (`runtime/frame_descriptors.c`, 5.3.0), as far as
/// it matters.
#[repr(C)]
struct Structure {
    count: i32,
    mask: i32,
    buckets: *const Bucket,
    /// Not used to find a descriptor.
    rest: [u64; 16],
}

/// A descriptor of ours.
#[repr(C, align(8))]
struct Lent {
    return_address: u64,
    frame_size: u16,
    live_slots: u16,
}

/// Both belong into the last of four buckets, so that one has to go on to the
/// first.
static LENT: [Lent; 2] = [
    Lent { return_address: 0x1018, frame_size: 16, live_slots: 0 },
    Lent { return_address: 0x2038, frame_size: 16, live_slots: 0 },
];

/// A table with these, and the one that is harder to find.
fn lend() -> ([Bucket; 4], &'static Lent) {
    let [first, second] = &LENT;
    let buckets = [second.bucket(), ptr::null(), ptr::null(), first.bucket()];
    (buckets, second)
}

impl Lent {
    fn bucket(&self) -> Bucket {
        ptr::from_ref(self).cast()
    }
}

impl Descriptors {
    /// The table of the runtime in this program, if it is as known. Before `main`.
    pub(super) fn find(version: MajorVersion) -> Option<Descriptors> {
        match version {
            MajorVersion::Four => find_four(),
            MajorVersion::Five => find_five(),
        }
    }

    /// Where the descriptor of a return address is; 0 if there is none. Inside
    /// hooks.
    pub(super) fn record(&self, return_address: u64) -> u64 {
        // SAFETY: a variable of the runtime, which nobody changes now.
        let buckets = unsafe { self.buckets.read() };
        if buckets.is_null() {
            return 0;
        }
        let mask = match self.mask {
            // SAFETY: as above.
            Mask::Four(mask) => unsafe { mask.read() },
            // SAFETY: as above.
            Mask::Five(mask) => unsafe { mask.read() as usize },
        };
        let mut at = (return_address >> 3) as usize & mask;
        loop {
            // SAFETY: a bucket of the table.
            let descriptor = unsafe { buckets.wrapping_add(at).read() };
            // SAFETY: not NULL, so a descriptor.
            if descriptor.is_null() || unsafe { descriptor.read() } == return_address {
                return descriptor as u64;
            }
            // Half of the buckets are free.
            at = (at + 1) & mask;
        }
    }
}

/// `caml_next_frame_descriptor` (`runtime/backtrace_nat.c`) has to find the lent
/// descriptor, and to step over its frame.
fn find_four() -> Option<Descriptors> {
    let buckets = lookup(c"caml_frame_descriptors")? as *mut *const Bucket;
    let mask = lookup(c"caml_frame_descriptors_mask")? as *mut usize;
    let next = lookup(c"caml_next_frame_descriptor")?;
    // SAFETY: a variable of the runtime, here and below.
    let is_made = unsafe { !buckets.read().is_null() };
    // SAFETY: as above.
    let mask_before = unsafe { mask.read() };
    if is_made || mask_before != 0 {
        return None;
    }
    // SAFETY: `frame_descr * caml_next_frame_descriptor(uintnat *, char **)`.
    let next: extern "C" fn(*mut u64, *mut *const u64) -> Bucket =
        unsafe { std::mem::transmute(next) };
    let (lent, wanted) = lend();
    let stack = [1, 2, 3, 4];
    let (mut pc, mut sp) = (wanted.return_address, stack.as_ptr());
    // SAFETY: as above. No other thread runs OCaml yet.
    unsafe { buckets.write(lent.as_ptr()) };
    // SAFETY: as above.
    unsafe { mask.write(lent.len() - 1) };
    let found = next(&raw mut pc, &raw mut sp);
    // SAFETY: as above.
    unsafe { buckets.write(ptr::null()) };
    // SAFETY: as above.
    unsafe { mask.write(mask_before) };
    let is_known = found == wanted.bucket() && sp == stack[2..].as_ptr() && pc == stack[1];
    is_known.then_some(Descriptors { buckets, mask: Mask::Four(mask) })
}

/// `caml_find_frame_descr` has to find the lent descriptor in a structure of ours,
/// and the runtime's own has to be empty still.
fn find_five() -> Option<Descriptors> {
    let get = lookup(c"caml_get_frame_descrs")?;
    let find = lookup(c"caml_find_frame_descr")?;
    // SAFETY: `frame_descr* caml_find_frame_descr(caml_frame_descrs *, uintnat)`.
    let find: extern "C" fn(*const Structure, u64) -> Bucket = unsafe { std::mem::transmute(find) };
    let (lent, wanted) = lend();
    let structure =
        Structure { count: 2, mask: lent.len() as i32 - 1, buckets: lent.as_ptr(), rest: [0; 16] };
    if find(&raw const structure, wanted.return_address) != wanted.bucket() {
        return None;
    }
    // SAFETY: `caml_frame_descrs* caml_get_frame_descrs(void)`.
    let get: extern "C" fn() -> *const Structure = unsafe { std::mem::transmute(get) };
    let own = get();
    // SAFETY: a variable of the runtime, here and below.
    let buckets = unsafe { &raw const (*own).buckets };
    // SAFETY: as above.
    let mask = unsafe { &raw const (*own).mask };
    // SAFETY: as above.
    let is_empty = unsafe { buckets.read().is_null() };
    // SAFETY: as above.
    let is_as_made = is_empty && unsafe { mask.read() } == -1;
    is_as_made.then_some(Descriptors { buckets, mask: Mask::Five(mask) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_found_as_the_runtime_finds_them() {
        let (lent, _) = lend();
        let mask = lent.len() - 1;
        let mask = Mask::Four(&raw const mask);
        let nothing = ptr::null();
        let table = Descriptors { buckets: &raw const nothing, mask };
        assert_eq!(table.record(0x1018), 0, "before the runtime starts");
        let buckets = lent.as_ptr();
        let table = Descriptors { buckets: &raw const buckets, mask };
        for lent in &LENT {
            assert_eq!(table.record(lent.return_address), lent.bucket() as u64);
        }
        for unknown in [0, 0x1010, 0x2018] {
            assert_eq!(table.record(unknown), 0);
        }
    }

    #[test]
    fn a_program_without_a_runtime_has_none() {
        assert!(Descriptors::find(MajorVersion::Four).is_none());
        assert!(Descriptors::find(MajorVersion::Five).is_none());
    }
}
