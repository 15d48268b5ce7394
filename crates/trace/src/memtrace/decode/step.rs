//! Steps: how each frame of a backtrace is found from the one before it.

/// The step to one frame. 0 follows the prediction of the previous slot.
/// Otherwise the low 14 bits are a slot that an entry names, and one of the high
/// two bits is set, so that the kind of a step is its sign.
pub(crate) type Step = i16;

/// Marks a step to a slot that an entry names.
pub(crate) const NAMED: Step = 1 << 14;

/// Marks the first step of a backtrace, which an entry names too.
pub(crate) const FIRST: Step = Step::MIN;
