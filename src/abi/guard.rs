//! The boundary of the C ABI: a panic becomes a status.

use crate::abi::status::{HEAPTAP_STATUS_OK, HEAPTAP_STATUS_PANIC, Refused, heaptap_status};
use crate::tracer;

/// Runs the body of an export. A panic turns the tracer off.
#[inline]
pub(crate) fn guard(run: impl FnOnce() -> Result<(), Refused>) -> heaptap_status {
    match tracer::guard(run) {
        Some(Ok(())) => HEAPTAP_STATUS_OK,
        Some(Err(Refused(status))) => status,
        None => HEAPTAP_STATUS_PANIC,
    }
}
