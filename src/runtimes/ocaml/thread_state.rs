//! What the program says of each of its threads: its label, and whether nothing is sampled.
//!
//! It is kept by the operating system's thread, and not with what the runtime keeps for a thread: that
//! is the runtime's own, before, during and after a session. Threads of OCaml are threads of the
//! system, in every version. Set whether a session is live or not, so that a session that begins
//! finds the label of every thread.

use std::sync::OnceLock;

use crate::sys::thread_word::ThreadWord;

/// The label, and [`SUSPENDED`].
static WORD: OnceLock<Option<ThreadWord>> = OnceLock::new();

/// Nothing is sampled on this thread. Labels have 32 bits.
const SUSPENDED: usize = 1 << 32;

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadState {
    /// What it is doing, as a label; 0 for none.
    pub(super) label: u32,
    pub(super) suspended: bool,
}

/// Makes room for the states. Before the runtime starts.
pub(super) fn prepare() {
    let _ = word();
}

fn word() -> Option<&'static ThreadWord> {
    WORD.get_or_init(ThreadWord::new).as_ref()
}

/// The state of the calling thread. Callable from hooks.
pub(super) fn get() -> ThreadState {
    let word = WORD.get().and_then(Option::as_ref).map_or(0, ThreadWord::get);
    ThreadState { label: word as u32, suspended: word & SUSPENDED != 0 }
}

/// Sets it. Callable from hooks.
pub(super) fn set(state: ThreadState) {
    let ThreadState { label, suspended } = state;
    let word = label as usize | if suspended { SUSPENDED } else { 0 };
    if let Some(place) = WORD.get().and_then(Option::as_ref) {
        place.set(word);
    }
}

/// Sets the label of the calling thread, and returns the one before.
pub(super) fn set_label(label: u32) -> u32 {
    let before = get();
    set(ThreadState { label, ..before });
    before.label
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_and_a_suspension_do_not_touch_each_other() {
        prepare();
        assert_eq!(get(), ThreadState { label: 0, suspended: false });
        set(ThreadState { label: u32::MAX, suspended: true });
        assert_eq!(set_label(7), u32::MAX);
        assert_eq!(get(), ThreadState { label: 7, suspended: true });
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(set_label(8), 0));
        });
    }
}
