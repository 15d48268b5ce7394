//! A part of a series together with its sidecar, as one source of events.
//!
//! What happened to blocks that are not in the part comes between the events of the part, in the
//! order in which the program's writer saw it: the sidecar says before which allocation of the
//! same domain. If nothing before the part is read, the blocks that were alive when it began come
//! first, as allocations at the time of their birth, which is before the part begins.

use std::io::Read;

use crate::model::{
    Allocation, Backtrace, Block, Code, End, Event, EventKind, EventSource, LocationTable, Losses,
    ReadError, TraceInfo,
};
use crate::series::SeriesReader;
use crate::series::carried::{Carried, CarriedEvents, Position, kind_of};

/// The next event of the part, without its stack.
#[derive(Clone, Copy)]
struct PartEvent {
    time: u64,
    domain: u16,
    kind: PartEventKind,
}

#[derive(Clone, Copy)]
enum PartEventKind {
    Alloc { id: u64, block: Block, common_prefix: u64 },
    End(End, u64),
}

/// Which of the two is next.
enum Next {
    Part(PartEvent),
    Carried(Carried),
}

/// A part of a series that is read with its sidecar.
pub struct PartSource<R> {
    part: Box<dyn EventSource>,
    carried: CarriedEvents<R>,
    /// What the ids of the part are counted from.
    first_id: u64,
    /// Read, but not returned.
    part_next: Option<PartEvent>,
    part_over: bool,
    /// The stack of the next allocation of the part.
    part_stack: Vec<Code>,
    /// At which rate the last allocation was sampled.
    rate: f64,
}

impl<R: Read> PartSource<R> {
    /// The events of a part in the order of time, and its sidecar from its beginning. The ids of the
    /// part are counted from `first_id`, which the [`SeriesSummary`](crate::SeriesSummary) knows.
    /// `with_base`: nothing before the part is read.
    pub fn new(
        part: Box<dyn EventSource>,
        sidecar: SeriesReader<R>,
        first_id: u64,
        with_base: bool,
    ) -> PartSource<R> {
        let rate = part.info().sample_rate;
        PartSource {
            part,
            carried: CarriedEvents::new(sidecar, with_base),
            first_id,
            part_next: None,
            part_over: false,
            part_stack: Vec::new(),
            rate,
        }
    }

    fn advance(&mut self) -> Result<Option<Next>, ReadError> {
        let carried = self.carried.peek()?;
        if let Some(carried @ (Carried::Base(_) | Carried::Promotion { .. })) = carried {
            return Ok(Some(self.take(carried)));
        }
        self.fill_part()?;
        Ok(match (self.part_next, carried) {
            (Some(event), Some(carried)) if carried.is_before(event.position()) => {
                Some(self.take(carried))
            }
            (Some(event), _) => {
                self.part_next = None;
                Some(Next::Part(event))
            }
            (None, Some(carried)) => Some(self.take(carried)),
            (None, None) => None,
        })
    }

    fn take(&mut self, carried: Carried) -> Next {
        self.carried.pass(carried);
        Next::Carried(carried)
    }

    fn fill_part(&mut self) -> Result<(), ReadError> {
        if self.part_next.is_some() || self.part_over {
            return Ok(());
        }
        let Some((event, _)) = self.part.next_located()? else {
            self.part_over = true;
            return Ok(());
        };
        let in_series = |id: u64| self.first_id.saturating_add(id);
        let kind = match event.kind {
            EventKind::Alloc(allocation) => {
                let Backtrace { frames, common_prefix, .. } = allocation.backtrace;
                self.part_stack.clear();
                self.part_stack.extend_from_slice(frames);
                let (id, block) = (in_series(allocation.id), allocation.block());
                PartEventKind::Alloc { id, block, common_prefix }
            }
            EventKind::Promote(id) => PartEventKind::End(End::Promote, in_series(id)),
            EventKind::Collect(id) => PartEventKind::End(End::Collect, in_series(id)),
        };
        self.part_next = Some(PartEvent { time: event.time, domain: event.domain, kind });
        Ok(())
    }

    fn carried_event(&mut self, carried: &Carried) -> (Event<'_>, &LocationTable) {
        let (event, table, rate) = self.carried.event(carried);
        self.rate = rate.unwrap_or(self.rate);
        (event, table)
    }

    fn part_event(&mut self, event: &PartEvent) -> (Event<'_>, &LocationTable) {
        let &PartEvent { time, domain, kind } = event;
        let kind = match kind {
            PartEventKind::Alloc { id, block, common_prefix } => {
                self.rate = self.part.info().sample_rate;
                let Block { length, samples, source } = block;
                let frames = &self.part_stack[..];
                let common = usize::try_from(common_prefix).unwrap_or(usize::MAX);
                let new = frames.get(common.min(frames.len())..).unwrap_or_default();
                let backtrace = Backtrace { frames, common_prefix, new };
                EventKind::Alloc(Allocation { id, length, samples, source, backtrace })
            }
            PartEventKind::End(end, id) => kind_of(end, id),
        };
        (Event { time, domain, kind }, self.part.locations())
    }
}

impl PartEvent {
    fn position(&self) -> Position {
        let allocated = match self.kind {
            PartEventKind::Alloc { id, .. } => Some(id),
            PartEventKind::End(..) => None,
        };
        Position { time: self.time, domain: self.domain, allocated }
    }
}

impl<R: Read> EventSource for PartSource<R> {
    fn info(&self) -> &TraceInfo {
        self.part.info()
    }

    /// Those of the part. Stacks of the sidecar come with its own.
    fn locations(&self) -> &LocationTable {
        self.part.locations()
    }

    fn losses(&self) -> &Losses {
        self.part.losses()
    }

    fn sampled_at(&self) -> f64 {
        self.rate
    }

    fn next_located(&mut self) -> Result<Option<(Event<'_>, &LocationTable)>, ReadError> {
        Ok(match self.advance()? {
            Some(Next::Part(event)) => Some(self.part_event(&event)),
            Some(Next::Carried(carried)) => Some(self.carried_event(&carried)),
            None => None,
        })
    }
}
