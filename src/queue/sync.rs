//! The primitives that threads share: the real ones or, with `--cfg loom`, loom's,
//! which explores the interleavings of threads.
//!
//! Loom cannot observe words inside a mapping. So under loom [`Watch`] has a cell
//! for each word, which is accessed whenever the word may be.

#[cfg(not(loom))]
pub(super) use real::*;
#[cfg(loom)]
pub(super) use simulated::*;

#[cfg(not(loom))]
mod real {
    pub(in crate::queue) use crate::sys::futex::{EventCount, Ticket};
    pub(in crate::queue) use crate::sys::memory::Zeroable;
    pub(in crate::queue) use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    pub(in crate::queue) use crossbeam_queue::ArrayQueue as Queue;

    /// An array that never moves. Pages that are never touched occupy no memory.
    pub(in crate::queue) type Table<T> = crate::sys::memory::MappedArray<T>;

    pub(in crate::queue) fn table<T: Zeroable>(len: usize) -> Option<Table<T>> {
        Table::new(len)
    }

    /// Does nothing outside loom.
    pub(in crate::queue) struct Watch;

    impl Watch {
        pub(in crate::queue) fn new(_words: usize) -> Self {
            Self
        }

        #[inline(always)]
        pub(in crate::queue) fn wrote(&self, _from: usize, _count: usize) {}

        #[inline(always)]
        pub(in crate::queue) fn read(&self, _from: usize, _count: usize) {}
    }
}

#[cfg(loom)]
mod simulated {
    pub(in crate::queue) use crate::sys::memory::Zeroable;
    use core::time::Duration;
    use loom::cell::UnsafeCell;
    use loom::sync::Mutex;
    pub(in crate::queue) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    use std::collections::VecDeque;

    /// A bounded queue with crossbeam's interface.
    pub(in crate::queue) struct Queue<T> {
        items: Mutex<VecDeque<T>>,
        capacity: usize,
    }

    impl<T> Queue<T> {
        pub(in crate::queue) fn new(capacity: usize) -> Self {
            Self { items: Mutex::new(VecDeque::new()), capacity }
        }

        pub(in crate::queue) fn push(&self, item: T) -> Result<(), T> {
            let mut items = self.items.lock().unwrap();
            if items.len() == self.capacity {
                return Err(item);
            }
            items.push_back(item);
            Ok(())
        }

        pub(in crate::queue) fn pop(&self) -> Option<T> {
            self.items.lock().unwrap().pop_front()
        }

        /// Always 0: the answer only decides who is woken, and taking the lock for it
        /// would add interleavings that crossbeam's queue does not have.
        pub(in crate::queue) fn len(&self) -> usize {
            0
        }
    }

    /// An array that never moves.
    pub(in crate::queue) type Table<T> = Box<[T]>;

    pub(in crate::queue) fn table<T: Default>(len: usize) -> Option<Table<T>> {
        Some((0..len).map(|_| T::default()).collect())
    }

    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Ticket;

    /// Yields instead of sleeping: loom has no futex.
    #[derive(Debug, Default)]
    pub(in crate::queue) struct EventCount;

    impl EventCount {
        pub(in crate::queue) const fn new() -> Self {
            Self
        }

        pub(in crate::queue) fn ticket(&self) -> Ticket {
            Ticket
        }

        pub(in crate::queue) fn notify(&self) -> bool {
            false
        }

        pub(in crate::queue) fn wait(&self, _ticket: Ticket, _timeout: Duration) {
            loom::thread::yield_now();
        }
    }

    /// A cell for each word of the pool. Loom reports concurrent accesses.
    pub(in crate::queue) struct Watch {
        cells: Vec<UnsafeCell<()>>,
    }

    impl Watch {
        pub(in crate::queue) fn new(words: usize) -> Self {
            Self { cells: (0..words).map(|_| UnsafeCell::new(())).collect() }
        }

        pub(in crate::queue) fn wrote(&self, from: usize, count: usize) {
            self.cells[from..from + count].iter().for_each(|cell| cell.with_mut(|_| ()));
        }

        pub(in crate::queue) fn read(&self, from: usize, count: usize) {
            self.cells[from..from + count].iter().for_each(|cell| cell.with(|_| ()));
        }
    }
}
