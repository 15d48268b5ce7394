//! The states of all domains.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::variables::Variables;
use crate::runtimes::ocaml::heap::{NO_MEMORY, Words};
use crate::snapshot::WalkError;
use crate::sys::memory::MappedVec;

/// The most domains that OCaml 5.3 can be asked for.
const MOST: usize = 4096;

/// The states of the domains that wait, in the order of their arrival.
static WAITING: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
/// How many there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// How many domains there can be.
pub(super) fn most(variables: &Variables) -> usize {
    variables.param(|params| params.max_domains).clamp(1, MOST)
}

/// Records the state of a domain that waits.
pub(super) fn record(place: usize, state: usize) {
    if let Some(waiting) = WAITING.get(place) {
        waiting.store(state, Ordering::Release);
    }
}

/// All domains have arrived.
pub(super) fn arrived(count: usize) {
    COUNT.store(count, Ordering::Release);
}

/// Calls `visit` with the state of each domain that waits.
pub(super) fn for_each_waiting(mut visit: impl FnMut(usize)) {
    let count = COUNT.load(Ordering::Acquire).min(MOST);
    let waiting = WAITING.get(..count).unwrap_or_default();
    waiting.iter().for_each(|state| visit(state.load(Ordering::Acquire)));
}

/// A domain.
#[derive(Clone, Copy)]
pub(super) struct DomainState {
    /// The address of its state.
    pub(super) state: usize,
    /// Whether it waits. Else it is ending, or its state is not in use; then it may still own
    /// pools, but nothing else that is valid.
    pub(super) waits: bool,
}

/// All domains, also those that are ending.
pub(super) struct Domains {
    all: MappedVec<DomainState>,
}

impl Domains {
    /// While all domains wait. In the copy, where the runtime's thread-local variables
    /// matter no more; otherwise they are restored.
    pub(super) fn find(variables: &Variables, words: Words) -> Result<Domains, WalkError> {
        let own = variables.current_state();
        let most = most(variables);
        let count = COUNT.load(Ordering::Acquire).min(MOST);
        let waiting = WAITING.get(..count).unwrap_or_default();
        let mut all = MappedVec::new(128).ok_or(NO_MEMORY)?;
        for index in 0..most {
            (variables.init_domain_self)(index as i32);
            let state = variables.current_state();
            if state == 0 {
                break;
            }
            let waits = waiting.iter().any(|waiting| waiting.load(Ordering::Acquire) == state);
            if !all.push(DomainState { state, waits }) {
                return Err(NO_MEMORY);
            }
        }
        // An `int`.
        let own_id = words.field(own, variables.heap.id) as i32;
        (variables.init_domain_self)(own_id);
        if all.iter().filter(|domain| domain.waits).count() != count {
            return Err(WalkError::Heap("the states of domains"));
        }
        Ok(Domains { all })
    }

    pub(super) fn all(&self) -> impl Iterator<Item = DomainState> {
        self.all.iter().copied()
    }

    /// Those that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = usize> {
        self.all().filter(|domain| domain.waits).map(|domain| domain.state)
    }
}
