//! The threads of the systhreads library (`otherlibs/systhreads/st_stubs.c`, 4.12.1 to
//! 4.14.1 and 5.3.0), found through the roots that it reports.
//!
//! The library keeps a ring of structures and reports the address of the first word of
//! each, beginning with the running thread's. Whether an address is such a structure is
//! tried with reads that cannot fault.

use super::words::{Words, is_pointer};
use crate::sys::memory::MappedVec;
use crate::sys::process_memory::read_word;
use crate::tracer::WORD;

/// Words of `struct caml_thread_struct`, in all of these releases.
const DESCRIPTOR: usize = 0;
const NEXT: usize = 1;
const PREVIOUS: usize = 2;
/// In OCaml 4.
const LOCAL_ROOTS: usize = 8;

/// More threads than this are taken for a ring that does not close.
const MOST: usize = 1 << 16;

/// A thread, by the address of its structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thread(pub(in crate::runtimes::ocaml) usize);

impl Thread {
    /// Its `Thread.id`; 0 if it has none yet.
    pub(crate) fn id(self, words: Words) -> u32 {
        self.known_id(words).unwrap_or(0)
    }

    /// Its `Thread.id`. The descriptor is a block that begins with it, and `Val_unit` until the
    /// thread has begun.
    pub(crate) fn known_id(self, words: Words) -> Option<u32> {
        let descriptor = words.field(self.0, DESCRIPTOR);
        is_pointer(descriptor).then(|| (words.field(descriptor, 0) >> 1) as u32)
    }

    /// `local_roots` of OCaml 4.
    pub(crate) fn local_roots(self, words: Words) -> usize {
        words.field(self.0, LOCAL_ROOTS)
    }
}

/// All threads, if `first` is the address of the structure of one. The first stays first.
pub(crate) fn ring(first: usize) -> Option<MappedVec<Thread>> {
    let word = |thread: usize, index: usize| read_word(thread.wrapping_add(index * WORD));
    let mut threads = MappedVec::new(64)?;
    let mut thread = first;
    loop {
        let next = word(thread, NEXT)?;
        if !next.is_multiple_of(WORD) || word(next, PREVIOUS)? != thread {
            return None;
        }
        if threads.len() == MOST || !threads.push(Thread(thread)) {
            return None;
        }
        if next == first {
            return Some(threads);
        }
        thread = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_followed_until_it_closes() {
        let mut structures = [[0usize; 9]; 3];
        let addresses: Vec<usize> =
            structures.iter().map(|structure| structure.as_ptr() as usize).collect();
        for (index, structure) in structures.iter_mut().enumerate() {
            structure[NEXT] = addresses[(index + 1) % 3];
            structure[PREVIOUS] = addresses[(index + 2) % 3];
        }
        let threads = ring(addresses[1]).unwrap();
        let expected = [1, 2, 0].map(|index| Thread(addresses[index]));
        assert_eq!(threads[..], expected);
        structures[2][PREVIOUS] = addresses[0];
        assert!(ring(std::hint::black_box(&structures)[1].as_ptr() as usize).is_none());
        assert!(ring(8).is_none(), "there is nothing");
    }
}
