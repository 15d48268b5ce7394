//! The domains that are traced, by the addresses of their states.
//!
//! The runtime's own word for its profiler stays the runtime's, so that a session can end. The
//! state of a domain is never freed, and used again by a later domain (`domain_create`,
//! `runtime/domain.c`, 5.3.0), so an entry of the table stays for good.
//!
//! Hooks look up without a lock.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Twice as many as there can be domains (`Max_domains_max`, `runtime/caml/domain.h`): half of the
/// entries are free.
const ENTRIES: usize = 8192;

/// An open-addressed hash table of what belongs to each state.
pub(super) struct DomainTable<T> {
    entries: [Entry<T>; ENTRIES],
}

/// A state, and what belongs to it.
struct Entry<T> {
    /// 0 if it is free; set once.
    state: AtomicUsize,
    /// NULL if the domain is not traced.
    domain: AtomicPtr<T>,
}

impl<T> Entry<T> {
    const fn free() -> Entry<T> {
        Entry { state: AtomicUsize::new(0), domain: AtomicPtr::new(ptr::null_mut()) }
    }
}

impl<T> DomainTable<T> {
    pub(super) const fn new() -> DomainTable<T> {
        DomainTable { entries: [const { Entry::free() }; ENTRIES] }
    }

    /// The entries from the first that may have a state.
    fn candidates(&self, state: usize) -> impl Iterator<Item = &Entry<T>> {
        let hash = (state >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51;
        let (before, from) = self.entries.split_at(hash % ENTRIES);
        from.iter().chain(before)
    }

    /// What belongs to this state; NULL if its domain is not traced.
    #[inline]
    pub(super) fn find(&self, state: usize) -> *mut T {
        for entry in self.candidates(state) {
            match entry.state.load(Ordering::Acquire) {
                0 => break,
                known if known == state => return entry.domain.load(Ordering::Acquire),
                _ => {}
            }
        }
        ptr::null_mut()
    }

    /// Puts something there, and returns what was there before. `None` if there is no room.
    pub(super) fn replace(&self, state: usize, domain: *mut T) -> Option<*mut T> {
        self.candidates(state).find_map(|entry| {
            let claim = |known| (known == 0).then_some(state);
            let known = match entry.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, claim) {
                Ok(_) => state,
                Err(known) => known,
            };
            (known == state).then(|| entry.domain.swap(domain, Ordering::AcqRel))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_found_by_their_states() {
        static TABLE: DomainTable<u8> = DomainTable::new();
        // Dense addresses, whose entries collide.
        let states: Vec<usize> = (1..4096).map(|number| number * 16).collect();
        let domain = |state: usize| (state * 2) as *mut u8;
        assert!(states.iter().all(|&state| TABLE.find(state).is_null()));
        for &state in &states {
            assert_eq!(TABLE.replace(state, domain(state)), Some(ptr::null_mut()));
        }
        assert!(states.iter().all(|&state| TABLE.find(state) == domain(state)));
        assert_eq!(TABLE.replace(16, ptr::null_mut()), Some(domain(16)));
        assert!(TABLE.find(16).is_null() && TABLE.find(32) == domain(32));
    }
}
