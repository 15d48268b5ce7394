//! The runtime's own index of its frame tables: an open-addressed hash table of
//! pointers to descriptors, by which its collector finds frames.
//!
//! OCaml 4 has it in two variables, `caml_frame_descriptors` and
//! `caml_frame_descriptors_mask` (`runtime/roots_nat.c`); OCaml 5 in a structure
//! whose address `caml_get_frame_descrs` returns (`runtime/frame_descriptors.c`). It is
//! built when the runtime starts, and rebuilt when a plugin is loaded, under the master
//! lock or while all domains stand still. So it may be read inside hooks, and nowhere
//! else.
//!
//! Its layout is proved before `main`: the runtime is lent a table, and must find the
//! descriptors in it. Of a runtime that runs (OCaml 4), under its lock, nothing is changed: we and the
//! runtime must find the same descriptors in its own table.

use std::ptr;

use super::variable::Variable;
use super::version::MajorVersion;
use crate::runtimes::attach::symbols::{function_at, lookup};

/// Where the runtime keeps the index.
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

// SAFETY: the variables are only read, inside hooks, when the runtime does not change them.
unsafe impl Send for Descriptors {}
// SAFETY: reading from several threads at once is fine, too.
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

/// A lent descriptor.
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
    /// The index of the runtime in this program, if its layout is known. Before `main`, or under the
    /// lock of a runtime that runs.
    pub(super) fn find(version: MajorVersion) -> Option<Descriptors> {
        match version {
            MajorVersion::Four => find_four(),
            MajorVersion::Five => find_five(),
        }
    }

    /// The address of the descriptor of a return address; 0 if there is none. Inside
    /// hooks only.
    pub(super) fn record(&self, return_address: u64) -> u64 {
        // SAFETY: a variable of the runtime, which does not change during a hook.
        let buckets = unsafe { self.buckets.read() };
        if buckets.is_null() {
            return 0;
        }
        let mask = match self.mask {
            // SAFETY: a variable of the runtime, which does not change during a hook.
            Mask::Four(mask) => unsafe { mask.read() },
            // SAFETY: a variable of the runtime, which does not change during a hook.
            Mask::Five(mask) => unsafe { mask.read() as usize },
        };
        let mut at = (return_address >> 3) as usize & mask;
        loop {
            // SAFETY: the mask keeps the index within the table.
            let descriptor = unsafe { buckets.wrapping_add(at).read() };
            // SAFETY: not NULL, so a descriptor, which begins with its return address.
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
    let buckets_at = lookup(c"caml_frame_descriptors")?;
    let mask_at = lookup(c"caml_frame_descriptors_mask")?;
    let next = lookup(c"caml_next_frame_descriptor")?;
    // SAFETY: `frame_descr ** caml_frame_descriptors` (`runtime/roots_nat.c`).
    let buckets: Variable<*const Bucket> = unsafe { Variable::at(buckets_at) };
    // SAFETY: `uintnat caml_frame_descriptors_mask` (`runtime/roots_nat.c`).
    let mask: Variable<usize> = unsafe { Variable::at(mask_at) };
    let mask_before = mask.get();
    // SAFETY: `frame_descr * caml_next_frame_descriptor(uintnat *, char **)`.
    let next: NextFrame = unsafe { function_at(next) };
    let found = Descriptors {
        buckets: buckets_at as *const *const Bucket,
        mask: Mask::Four(mask_at as *const usize),
    };
    if !buckets.get().is_null() {
        return agrees(&found, buckets.get(), mask_before, next).then_some(found);
    }
    if mask_before != 0 {
        return None;
    }
    let (lent, wanted) = lend();
    let stack = [1, 2, 3, 4];
    let (mut pc, mut sp) = (wanted.return_address, stack.as_ptr());
    buckets.set(lent.as_ptr());
    mask.set(lent.len() - 1);
    let descriptor = next(&raw mut pc, &raw mut sp);
    buckets.set(ptr::null());
    mask.set(mask_before);
    let is_known = descriptor == wanted.bucket() && sp == stack[2..].as_ptr() && pc == stack[1];
    is_known.then_some(found)
}

/// `caml_next_frame_descriptor`: of a return address and a stack pointer, which it moves on.
type NextFrame = extern "C" fn(*mut u64, *mut *const u64) -> Bucket;

/// Whether the runtime finds what we find, and steps over frames as we would. Under its lock.
fn agrees(index: &Descriptors, buckets: *const Bucket, mask: usize, next: NextFrame) -> bool {
    /// Descriptors that are looked at, and places of the table at most.
    const ENOUGH: usize = 32;
    const MOST: usize = 1 << 16;
    /// The words of the stack that is lent.
    const STACK: usize = 64;
    /// A frame that belongs to C, and the bits of a size that say what follows a descriptor.
    const TO_C: u16 = 0xffff;
    const FLAGS: u16 = 3;
    if mask < 1 || !(mask + 1).is_power_of_two() {
        return false;
    }
    let stack: [u64; STACK] = std::array::from_fn(|index| 0x1000 + index as u64);
    let mut seen = 0;
    for place in 0..=mask.min(MOST) {
        // SAFETY: the mask is the number of the last bucket.
        let bucket = unsafe { buckets.wrapping_add(place).read() };
        if bucket.is_null() {
            continue;
        }
        // SAFETY: not NULL, so a descriptor, which begins with its return address.
        let return_address = unsafe { bucket.read() };
        // SAFETY: behind which the size of its frame is.
        let frame_size = unsafe { bucket.wrapping_add(1).cast::<u16>().read() };
        let words = usize::from(frame_size & !FLAGS) / size_of::<u64>();
        if frame_size == TO_C || !(1..STACK).contains(&words) {
            continue;
        }
        let (mut pc, mut sp) = (return_address, stack.as_ptr());
        let found = next(&raw mut pc, &raw mut sp);
        let is_same = found == bucket && index.record(return_address) == bucket as u64;
        if !is_same || sp != stack[words..].as_ptr() || pc != stack[words - 1] {
            return false;
        }
        seen += 1;
        if seen == ENOUGH {
            break;
        }
    }
    seen > 0
}

/// `caml_find_frame_descr` has to find the lent descriptor in a lent structure,
/// and the runtime's own still has to be empty.
fn find_five() -> Option<Descriptors> {
    let get = lookup(c"caml_get_frame_descrs")?;
    let find = lookup(c"caml_find_frame_descr")?;
    // SAFETY: `frame_descr* caml_find_frame_descr(caml_frame_descrs *, uintnat)`.
    let find: extern "C" fn(*const Structure, u64) -> Bucket = unsafe { function_at(find) };
    let (lent, wanted) = lend();
    let structure =
        Structure { count: 2, mask: lent.len() as i32 - 1, buckets: lent.as_ptr(), rest: [0; 16] };
    if find(&raw const structure, wanted.return_address) != wanted.bucket() {
        return None;
    }
    // SAFETY: `caml_frame_descrs* caml_get_frame_descrs(void)`.
    let get: extern "C" fn() -> *const Structure = unsafe { function_at(get) };
    let own = get();
    // SAFETY: the runtime's structure, a variable that lives as long as the program.
    let buckets = unsafe { &raw const (*own).buckets };
    // SAFETY: the runtime's structure, a variable that lives as long as the program.
    let mask = unsafe { &raw const (*own).mask };
    // SAFETY: a field of the structure; no other thread runs OCaml yet.
    let is_empty = unsafe { buckets.read().is_null() };
    // SAFETY: a field of the structure; no other thread runs OCaml yet.
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
