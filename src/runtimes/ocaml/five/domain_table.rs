//! The domains that are traced, by the addresses of their states.
//!
//! The runtime's own word for its profiler stays the runtime's, so that a session can end. The
//! state of a domain is never freed, and used again by a later domain (`domain_create`,
//! `runtime/domain.c`, 5.3.0), so an entry of the table stays for good.
//!
//! Hooks look up without a lock.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::domain::Domain;

/// Twice as many as there can be domains (`Max_domains_max`, `runtime/caml/domain.h`): half of the
/// entries are free.
const ENTRIES: usize = 8192;

/// An open-addressed hash table.
static TABLE: [Entry; ENTRIES] = [const { Entry::FREE }; ENTRIES];

/// A state, and the domain with that state.
pub(super) struct Entry {
    /// 0 if it is free; set once.
    state: AtomicUsize,
    /// NULL if the domain is not traced.
    domain: AtomicPtr<Domain>,
}

impl Entry {
    const FREE: Entry =
        Entry { state: AtomicUsize::new(0), domain: AtomicPtr::new(ptr::null_mut()) };
}

/// The entries from the first that may have a state.
fn candidates(state: usize) -> impl Iterator<Item = &'static Entry> {
    let hash = (state >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51;
    let (before, from) = TABLE.split_at(hash % ENTRIES);
    from.iter().chain(before)
}

/// The domain with this state; NULL if it is not traced.
#[inline]
pub(super) fn find(state: usize) -> *mut Domain {
    for entry in candidates(state) {
        match entry.state.load(Ordering::Acquire) {
            0 => break,
            known if known == state => return entry.domain.load(Ordering::Acquire),
            _ => {}
        }
    }
    ptr::null_mut()
}

/// Puts a domain there, and returns the one that was there before. `None` if there is no room.
pub(super) fn replace(state: usize, domain: *mut Domain) -> Option<*mut Domain> {
    candidates(state).find_map(|entry| {
        let claim = |known| (known == 0).then_some(state);
        let known = match entry.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, claim) {
            Ok(_) => state,
            Err(known) => known,
        };
        (known == state).then(|| entry.domain.swap(domain, Ordering::AcqRel))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::testing::in_a_process;

    #[test]
    fn domains_are_found_by_their_states() {
        in_a_process(module_path!(), "domains_are_found_by_their_states", || {
            // Dense addresses, whose entries collide.
            let states: Vec<usize> = (1..4096).map(|number| number * 16).collect();
            let domain = |state: usize| (state * 2) as *mut Domain;
            assert!(states.iter().all(|&state| find(state).is_null()));
            for &state in &states {
                assert_eq!(replace(state, domain(state)), Some(ptr::null_mut()));
            }
            assert!(states.iter().all(|&state| find(state) == domain(state)));
            assert_eq!(replace(16, ptr::null_mut()), Some(domain(16)));
            assert!(find(16).is_null() && find(32) == domain(32));
        });
    }
}
