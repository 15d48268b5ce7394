//! The boundary that no panic crosses.
//!
//! Everything that the host calls runs inside [`guard`]: a panic that unwinds into
//! foreign code is undefined behaviour, and a defect here must not end the host.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::tracer::process::turn_off_after_panic;

/// Runs `run`. A panic turns the tracer off and returns `None`.
#[inline]
pub(crate) fn guard<R>(run: impl FnOnce() -> R) -> Option<R> {
    // The session is off after a panic, so what it leaves behind is hardly used.
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => Some(result),
        Err(_) => {
            turn_off_after_panic();
            None
        }
    }
}
