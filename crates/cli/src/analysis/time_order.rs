//! One trace in the order of time.
//!
//! The file of a single domain is in that order and is read as it is; when a second
//! domain appears, the reading begins again with the domains merged.

use std::ops::ControlFlow;

use heaptap_trace::{Event, EventSource, LocationTable};

use crate::exit_status::Failure;
use crate::io::input::Input;

/// Passes every event to `state`, in the order of time. `fresh` makes another state
/// if it turns out that the file is not in that order.
pub(crate) fn in_time_order<S>(
    input: &Input,
    fresh: impl Fn() -> S,
    state: &mut S,
    event: impl Fn(&mut S, &Event<'_>, &LocationTable),
) -> Result<Box<dyn EventSource>, Failure> {
    let mut reader = input.in_file_order()?;
    let mut domain = None;
    let read = reader.for_each(&mut |next, table| {
        if *domain.get_or_insert(next.domain) != next.domain {
            return ControlFlow::Break(());
        }
        event(state, next, table);
        ControlFlow::Continue(())
    });
    if read.map_err(|error| input.failure(error))?.is_continue() {
        return Ok(reader);
    }
    *state = fresh();
    let mut reader = input.in_time_order()?;
    input.each_event(&mut *reader, |next, table| {
        event(state, next, table);
        Ok(())
    })?;
    Ok(reader)
}
