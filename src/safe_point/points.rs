//! What a runtime implements so that its safe points can be used.

use std::sync::OnceLock;

/// A runtime that comes to safe points.
pub(crate) trait SafePoints: Sync {
    /// Looks up what [`SafePoints::poke`] needs. On the ordering thread, before each task; may
    /// allocate.
    fn prepare(&self) {}

    /// Asks the runtime to come to a safe point soon. On the ordering thread, again and
    /// again until it has.
    fn poke(&self);

    /// Calls `work` if no thread of the program can touch the heap meanwhile, because all are
    /// blocked in the kernel. Returns whether it did. On the ordering thread. Not for a runtime that can
    /// be asked to collect, nor for a host, which decides itself when its heap can be walked.
    fn at_rest(&self, _work: &mut dyn FnMut()) -> bool {
        false
    }

    /// Comes to a safe point, if this thread can: it is one of the program's, and has called us or
    /// `exit`. Otherwise does nothing.
    fn come_to_safe_point(&self);
}

static POINTS: OnceLock<&'static dyn SafePoints> = OnceLock::new();

/// Has tasks carried out at the safe points of this runtime. False if there is another: the first
/// one stays.
pub(crate) fn register(points: &'static dyn SafePoints) -> bool {
    POINTS.set(points).is_ok()
}

/// The runtime whose safe points are used.
pub(super) fn registered() -> Option<&'static dyn SafePoints> {
    POINTS.get().copied()
}
