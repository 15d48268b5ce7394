//! A text that the program sets: no lock, which a forked child could find locked for ever.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Each pointer is NULL or owns a text.
#[derive(Default)]
pub(crate) struct TextCell {
    /// What was set since the last look.
    pending: AtomicPtr<String>,
    /// What the last look found. Only the thread that looks reads or writes it: the writer thread,
    /// or in a forked child, which has none yet, the thread that starts one.
    seen: AtomicPtr<String>,
}

impl TextCell {
    pub(crate) fn set(&self, text: String) {
        drop(replace(&self.pending, Some(text)));
    }

    /// The text, if one was set since the last call.
    pub(super) fn take(&self) -> Option<String> {
        let text = replace(&self.pending, None)?;
        drop(replace(&self.seen, Some(text.clone())));
        Some(text)
    }

    /// The text of the last call that returned one. Only where no other thread takes it.
    pub(super) fn seen(&self) -> Option<String> {
        // SAFETY: NULL, or a text that only this thread takes out.
        unsafe { self.seen.load(Ordering::Acquire).as_ref() }.cloned()
    }
}

impl Drop for TextCell {
    fn drop(&mut self) {
        drop(replace(&self.pending, None));
        drop(replace(&self.seen, None));
    }
}

/// Puts a text into a place, and returns the one that was there.
fn replace(place: &AtomicPtr<String>, text: Option<String>) -> Option<String> {
    let new = text.map_or(null_mut(), |text| Box::into_raw(Box::new(text)));
    let old = place.swap(new, Ordering::AcqRel);
    // SAFETY: not NULL, it came from `Box::into_raw` above, and nobody else finds it any more.
    (!old.is_null()).then(|| *unsafe { Box::from_raw(old) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_taken_once_and_remembered() {
        let cell = TextCell::default();
        assert_eq!((cell.take(), cell.seen()), (None, None));
        cell.set("a".into());
        cell.set("b".into());
        assert_eq!(cell.seen(), None);
        assert_eq!((cell.take(), cell.take()), (Some("b".into()), None));
        assert_eq!(cell.seen(), Some("b".into()));
        cell.set("c".into());
        assert_eq!(cell.seen(), Some("b".into()));
    }

    #[test]
    fn threads_may_set_it_while_it_is_taken() {
        let cell = TextCell::default();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..10_000).for_each(|number| cell.set(format!("text {number}"))));
            }
            for _ in 0..10_000 {
                assert!(cell.take().is_none_or(|text| text.starts_with("text ")));
            }
        });
    }
}
