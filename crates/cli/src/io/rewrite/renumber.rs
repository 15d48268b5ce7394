//! Copies events in the order of time, with new ids: for joining domains, and for
//! leaving objects out.
//!
//! Keeps the new id of every object that is written and alive.

use std::collections::HashMap;

use heaptap_trace::{End, EventKind, EventSource, TraceFormat};

use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::lifecycle::Lives;
use crate::io::rewrite::Selection;
use crate::io::rewrite::renaming::Renaming;
use crate::io::rewrite::writing::Rewriting;

/// Writes the events of the objects that are selected, or of all. Returns the lives of the objects, with
/// the events that were left out because an object cannot have them.
pub(super) fn renumber<R: Renaming>(
    input: &Input,
    events: &mut dyn EventSource,
    format: TraceFormat,
    mut selection: Option<Selection<'_>>,
    out: &mut Rewriting<R>,
) -> Result<Lives, Failure> {
    let mut live: HashMap<u64, u64> = HashMap::new();
    let mut lives = Lives::new(Lives::MEMORY);
    let mut orphans = 0;
    input.each_event(events, |event, table| {
        let offence = lives.event(event);
        let (domain, time) = (if format.has_one_domain() { 0 } else { event.domain }, event.time);
        if let EventKind::Alloc(allocation) = &event.kind {
            let block = match &mut selection {
                Some(select) => select(allocation),
                None => Some(allocation.block()),
            };
            if let Some(block) = block {
                // Whole: the allocation before it may not be written.
                let frames = allocation.backtrace.whole();
                let id = out.allocate(domain, time, block, frames, table)?;
                live.insert(allocation.id, id);
            }
            return Ok(());
        }
        // The format has no other kinds of event.
        let Some((end, id)) = event.kind.end().filter(|_| offence.is_none()) else { return Ok(()) };
        let written = match end {
            End::Promote => live.get(&id).copied(),
            End::Collect => live.remove(&id),
        };
        match written {
            Some(id) => out.end(end, domain, time, id, table)?,
            None => orphans += 1,
        }
        Ok(())
    })?;
    input.end_progress();
    if selection.is_none() {
        input.say_left_out(orphans, "objects not allocated before");
    }
    Ok(lives)
}
