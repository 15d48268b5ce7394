//! The boundary that no panic crosses.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::status::{HEAPTAP_STATUS_OK, HEAPTAP_STATUS_PANIC, Refused, heaptap_status};
use crate::tracer;

/// Runs an export. A panic turns the tracer off and becomes a status.
#[inline]
pub(crate) fn guard(run: impl FnOnce() -> Result<(), Refused>) -> heaptap_status {
    // What a panic leaves behind is hardly used again: the session is off.
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => HEAPTAP_STATUS_OK,
        Ok(Err(Refused(status))) => status,
        Err(_) => panicked(),
    }
}

#[cold]
#[inline(never)]
fn panicked() -> heaptap_status {
    tracer::turn_off_after_panic();
    HEAPTAP_STATUS_PANIC
}
