//! Copies events in the order of time, with new ids: for joining domains, and for
//! leaving objects out.
//!
//! Keeps the new id of every object that is written and alive.

use std::collections::HashMap;

use heaptap_trace::{Allocation, Block, End, Event, EventKind, EventSource};

use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::lifecycle::Lives;
use crate::io::renaming::Renaming;
use crate::io::rewrite::Rewriting;

/// The choice of what is written.
pub(crate) trait Selection {
    /// The block to write for an allocation, if it is kept.
    fn block(&mut self, allocation: &Allocation<'_>) -> Option<Block>;

    /// The domain to write it in.
    fn domain(&self, domain: u16) -> u16;
}

/// What was left out.
pub(crate) struct SkippedEvents {
    /// Promotions and collections of objects that are not written or not alive.
    pub(crate) orphans: u64,
    /// The lives of the objects, with the events that one cannot have.
    pub(crate) lives: Lives,
}

/// Writes the events that the selection keeps.
pub(crate) fn renumber<R: Renaming>(
    input: &Input,
    events: &mut dyn EventSource,
    selection: &mut impl Selection,
    out: &mut Rewriting<R>,
) -> Result<SkippedEvents, Failure> {
    let mut live: HashMap<u64, u64> = HashMap::new();
    let mut skipped = SkippedEvents { orphans: 0, lives: Lives::new(Lives::MEMORY) };
    loop {
        let next = events.next_located().map_err(|error| input.failure(error))?;
        let Some((Event { time, domain, kind }, table)) = next else { return Ok(skipped) };
        let offence = skipped.lives.event(&Event { time, domain, kind });
        let domain = selection.domain(domain);
        if let EventKind::Alloc(allocation) = kind {
            if let Some(block) = selection.block(&allocation) {
                // Whole: the allocation before it may not be written.
                let frames = allocation.backtrace.whole();
                let id = out.allocate(domain, time, block, frames, table)?;
                live.insert(allocation.id, id);
            }
            continue;
        }
        // The format has no other kinds of event.
        let Some((end, id)) = kind.end() else { continue };
        if offence.is_some() {
            continue;
        }
        let written = match end {
            End::Promote => live.get(&id).copied(),
            End::Collect => live.remove(&id),
        };
        match written {
            Some(id) => out.end(end, domain, time, id, table)?,
            None => skipped.orphans += 1,
        }
    }
}
