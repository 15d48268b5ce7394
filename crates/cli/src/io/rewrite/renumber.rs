//! Copies events in the order of time, with new ids: for joining domains, and for
//! leaving objects out.
//!
//! Keeps the new id of every object that is written and alive.

use std::collections::HashMap;
use std::path::Path;

use heaptap_codec::seeded::Seeded;
use heaptap_trace::{
    Allocation, Block, End, Event, EventKind, EventSource, LocationTable, Losses, TraceFormat,
    TraceInfo,
};

use crate::exit_status::{Failure, VerbResult};
use crate::io::lifecycle::Lives;
use crate::io::output::Output;
use crate::io::rewrite::renaming::Renaming;
use crate::io::rewrite::writing::Rewriting;
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
        let input = self.input;
        let mut out = Renumbering::of(self.format, self.begin(events)?);
        let mut lives = Lives::new(Lives::MEMORY);
        input.each_event(events, |event, table| {
            let offence = lives.event(event);
            let block = match (&event.kind, &mut selection) {
                (EventKind::Alloc(allocation), Some(select)) => select(allocation),
                (EventKind::Alloc(allocation), None) => Some(allocation.block()),
                _ if offence.is_some() => return Ok(()),
                _ => None,
            };
            out.event(event, event.time, table, block)
        })?;
        input.end_progress();
        if selection.is_none() {
            input.say_left_out(out.orphans, "objects not allocated before");
        }
        end(input, out.out, events, lives, &|_| Some(LEFT_OUT))
    }
}

/// Events that are written with new ids.
pub(crate) struct Renumbering<R> {
    out: Rewriting<R>,
    format: TraceFormat,
    /// The new id of every object that is written and alive.
    live: HashMap<u64, u64, Seeded>,
    /// Ends of objects that are not written.
    orphans: u64,
}

impl<R: Renaming> Renumbering<R> {
    fn of(format: TraceFormat, out: Rewriting<R>) -> Renumbering<R> {
        Renumbering { out, format, live: HashMap::default(), orphans: 0 }
    }

    /// Creates the file. `losses`: those of what is copied.
    pub(crate) fn begin(
        output: &Path,
        format: TraceFormat,
        info: &TraceInfo,
        losses: &Losses,
        names: R,
    ) -> Result<Renumbering<R>, Failure> {
        let out = Rewriting::begin(Output::create(output)?, format, info, losses, names)?;
        Ok(Renumbering::of(format, out))
    }

    /// Writes an event at this time; an allocation with what is kept of its block, if anything is.
    pub(crate) fn event(
        &mut self,
        event: &Event<'_>,
        time: u64,
        table: &LocationTable,
        block: Option<Block>,
    ) -> Result<(), Failure> {
        let domain = if self.format.has_one_domain() { 0 } else { event.domain };
        if let EventKind::Alloc(allocation) = &event.kind
            && let Some(block) = block
        {
            // Whole: the allocation before it may not be written.
            let frames = allocation.backtrace.whole();
            let id = self.out.allocate(domain, time, block, frames, table)?;
            self.live.insert(allocation.id, id);
        }
        // The format has no other kinds of event.
        let Some((end, id)) = event.kind.end() else { return Ok(()) };
        let written = match end {
            End::Promote => self.live.get(&id).copied(),
            End::Collect => self.live.remove(&id),
        };
        match written {
            Some(id) => return self.out.end(end, domain, time, id, table),
            None => self.orphans += 1,
        }
        Ok(())
    }

    /// Ends the trace and gives the file its name.
    pub(crate) fn complete(self, table: &LocationTable) -> Result<(), Failure> {
        self.out.complete(table)
    }
}
