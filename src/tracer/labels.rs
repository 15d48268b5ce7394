//! Labels: names for the work that mutators do, such as requests they serve.
//!
//! A label is the outermost frame of a backtrace, so every reader shows it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
