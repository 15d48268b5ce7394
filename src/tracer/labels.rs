//! Labels: names for the work that mutators do, such as requests they serve.
//!
//! The protocol, for all that take part in it:
//!
//! - A label is a number that [`Labels::intern`] gives to a name, from 1; 0 is no
//!   label. Interning takes a lock, so not inside hooks. Hosts of the C ABI call
//!   `heaptap_label_intern`; a program whose runtime was attached to calls
//!   `heaptap_attached_label`.
//! - Each thread of the program has its label, 0 at first. A host sets it with
//!   `heaptap_mutator_label`. An attached program sets its own with
//!   `heaptap_attached_set_label`; the runtime's folder keeps it with the thread, and
//!   passes it to the mutator whenever another thread runs.
//! - A mutator adds its label to each backtrace as the outermost frame, so that every
//!   reader shows it. The writer thread asks [`Labels::name`] for the name.
//! - A forked child that is traced shares the table, so that numbers stay valid.
//!
//! `ocaml/heaptap_stubs.c` refers to the two functions for attached programs weakly:
//! in a program that is not traced they are NULL, and labels do nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::sys::lock::lock_until;

/// The labels of a session. Behind a lock, and never on a hook's path.
#[derive(Default)]
pub(crate) struct Labels {
    interned: Mutex<Interned>,
}

#[derive(Default)]
struct Interned {
    /// From 1 on. Not a hash map, which would ask the system for random bytes.
    numbers: BTreeMap<Vec<u8>, u32>,
    /// By number - 1.
    names: Vec<Vec<u8>>,
}

/// See [`Labels::lock_until`].
pub(crate) struct LabelsLock<'a> {
    _guard: MutexGuard<'a, Interned>,
}

impl Labels {
    /// The most labels. A host that makes one for each request would fill the
    /// memory: names beyond these share the last one.
    const MAX: usize = 65_536;
    /// The most bytes of a name; the rest is cut off.
    const MAX_NAME: usize = 1_024;
    const TOO_MANY: &'static [u8] = b"(more labels than heaptap keeps)";

    /// The number of a name, from 1 on; 0 is no label.
    pub(crate) fn intern(&self, name: &[u8]) -> u32 {
        let name = name.get(..Self::MAX_NAME).unwrap_or(name);
        let mut interned = self.lock();
        if let Some(&number) = interned.numbers.get(name) {
            return number;
        }
        let name = if interned.names.len() + 1 < Self::MAX { name } else { Self::TOO_MANY };
        if let Some(&number) = interned.numbers.get(name) {
            return number;
        }
        interned.names.push(name.to_vec());
        let number = interned.names.len() as u32;
        interned.numbers.insert(name.to_vec(), number);
        number
    }

    /// The name of a number that [`Labels::intern`] returned.
    pub(crate) fn name(&self, number: u32) -> Option<Vec<u8>> {
        let at = (number as usize).checked_sub(1)?;
        self.lock().names.get(at).cloned()
    }

    /// Keeps everyone else out until what is returned is dropped. `None` if the lock
    /// is still held at the deadline.
    pub(crate) fn lock_until(&self, deadline: Instant) -> Option<LabelsLock<'_>> {
        Some(LabelsLock { _guard: lock_until(&self.interned, deadline)? })
    }

    fn lock(&self) -> MutexGuard<'_, Interned> {
        self.interned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_is_the_same_label() {
        let labels = Labels::default();
        assert_eq!(labels.intern(b"GET /"), 1);
        assert_eq!(labels.intern(b"PUT /"), 2);
        assert_eq!(labels.intern(b"GET /"), 1);
        assert_eq!(labels.name(2).unwrap(), b"PUT /");
        assert_eq!(labels.name(0), None);
        assert_eq!(labels.name(3), None);
    }

    #[test]
    fn a_label_for_each_request_does_not_fill_the_memory() {
        let labels = Labels::default();
        for request in 0..70_000u32 {
            labels.intern(&request.to_le_bytes());
        }
        assert_eq!(labels.intern(b"one more"), Labels::MAX as u32);
        assert_eq!(labels.name(Labels::MAX as u32).unwrap(), Labels::TOO_MANY);
        assert_eq!(labels.intern(&5u32.to_le_bytes()), 6);
    }
}
