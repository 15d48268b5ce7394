//! Copies events in the order of time, with new ids: for joining domains, and for
//! leaving objects out.
//!
//! Keeps the new id of every object that is written and alive.

use std::collections::HashMap;

use heaptap_codec::seeded::Seeded;
use heaptap_trace::{Allocation, Block, End, EventKind, EventSource};

use crate::exit_status::VerbResult;
use crate::io::lifecycle::Lives;
use crate::io::rewrite::renaming::Renaming;
use crate::io::rewrite::{LEFT_OUT, Rewrite, end};

/// Chooses the block to write for an allocation, if it is kept.
type Selection<'a> = &'a mut dyn FnMut(&Allocation<'_>) -> Option<Block>;

impl<R: Renaming> Rewrite<'_, R> {
    /// Assigns new ids to all objects, or to those that are selected.
    pub(crate) fn renumber(
        self,
        events: &mut dyn EventSource,
        mut selection: Option<Selection<'_>>,
    ) -> VerbResult {
        let (input, format) = (self.input, self.format);
        let mut out = self.begin(events)?;
        let mut live: HashMap<u64, u64, Seeded> = HashMap::default();
        let mut lives = Lives::new(Lives::MEMORY);
        let mut orphans = 0;
        input.each_event(events, |event, table| {
            let offence = lives.event(event);
            let domain = if format.has_one_domain() { 0 } else { event.domain };
            if let EventKind::Alloc(allocation) = &event.kind {
                let block = match &mut selection {
                    Some(select) => select(allocation),
                    None => Some(allocation.block()),
                };
                if let Some(block) = block {
                    // Whole: the allocation before it may not be written.
                    let frames = allocation.backtrace.whole();
                    let id = out.allocate(domain, event.time, block, frames, table)?;
                    live.insert(allocation.id, id);
                }
            }
            // The format has no other kinds of event.
            let Some((end, id)) = event.kind.end().filter(|_| offence.is_none()) else {
                return Ok(());
            };
            let written = match end {
                End::Promote => live.get(&id).copied(),
                End::Collect => live.remove(&id),
            };
            match written {
                Some(id) => return out.end(end, domain, event.time, id, table),
                None => orphans += 1,
            }
            Ok(())
        })?;
        input.end_progress();
        if selection.is_none() {
            input.say_left_out(orphans, "objects not allocated before");
        }
        end(input, out, events, lives, &|_| Some(LEFT_OUT))
    }
}
