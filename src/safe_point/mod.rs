//! "Do this where the runtime can bear it."
//!
//! Some work can be done only while a runtime stands still at a point that it has chosen itself: a
//! heap is walked, a runtime's functions are replaced or put back. A thread that may block offers
//! a [`Task`] ([`carry_out`]), and the first mutator that comes to a safe point ([`at_safe_point`])
//! carries it out.
//!
//! - `points`: what a runtime implements so that its safe points can be used.
//! - `exchange`: the task that waits for a safe point.
//! - `turn`: the right to offer tasks, which one thread has at a time; `cancellation`: a task that
//!   nobody waits for any more.
//!
//! While no task waits, a safe point costs one load.

#![allow(unsafe_code, reason = "a task lies on the stack of the thread that offers it")]

mod cancellation;
mod exchange;
mod points;
mod turn;

pub(crate) use cancellation::Cancellation;
pub(crate) use exchange::{
    Needs, Task, Unreached, at_safe_point, carry_out, come_to_safe_point, is_wanted, wanted,
    with_lock_held,
};
pub(crate) use points::{SafePoints, register};
pub(crate) use turn::Turn;
