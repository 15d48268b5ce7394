//! A part of a series together with its sidecar, as one source of events.
//!
//! What happened to blocks that are not in the part comes between the events of the part, in the
//! order in which the program's writer saw it: the sidecar says before which allocation of the
//! same domain. If nothing before the part is read, the blocks that were alive when it began come
//! first, as allocations at the time of their birth, which is before the part begins.

use std::io::{self, Read};

use crate::model::{
    Allocation, Backtrace, Block, Code, End, Event, EventKind, EventSource, LocationTable, Losses,
    ReadError, TraceInfo,
};
use crate::series::{CarriedBlock, CarriedEnds, SeriesReader, SeriesRecord};

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

/// What comes next in the sidecar.
#[derive(Clone, Copy)]
enum Carried {
    /// A block that was alive when the part began.
    Base(CarriedBlock),
    /// The promotion of the block before, at that time.
    Promotion { id: u64, domain: u16, time: u64 },
    /// A block that was sampled at an earlier rate.
    Stray(CarriedBlock),
    /// Ends, of which the first is next.
    Ends(CarriedEnds),
}

/// Which of the two is next.
enum Next {
    Part(PartEvent),
    Carried(Carried),
}

/// A part of a series that is read with its sidecar.
pub struct PartSource<R> {
    part: Box<dyn EventSource>,
    sidecar: SeriesReader<R>,
    /// What the ids of the part are counted from.
    first_id: u64,
    /// Whether the blocks come that were alive when the part began.
    with_base: bool,
    /// The list of these is over.
    base_over: bool,
    /// Read, but not returned.
    part_next: Option<PartEvent>,
    part_over: bool,
    carried_next: Option<Carried>,
    /// The stack of the next allocation of the part, and of the last one of the sidecar.
    part_stack: Vec<Code>,
    carried_stack: Vec<Code>,
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
            sidecar,
            first_id,
            with_base,
            base_over: false,
            part_next: None,
            part_over: false,
            carried_next: None,
            part_stack: Vec::new(),
            carried_stack: Vec::new(),
            rate,
        }
    }

    fn advance(&mut self) -> Result<Option<Next>, ReadError> {
        self.fill_carried()?;
        if let Some(carried @ (Carried::Base(_) | Carried::Promotion { .. })) = self.carried_next {
            return Ok(self.take_carried(carried));
        }
        self.fill_part()?;
        Ok(match (self.part_next, self.carried_next) {
            (Some(event), Some(carried)) if carried.is_before(&event) => self.take_carried(carried),
            (Some(event), _) => {
                self.part_next = None;
                Some(Next::Part(event))
            }
            (None, Some(carried)) => self.take_carried(carried),
            (None, None) => None,
        })
    }

    /// Takes what is next in the sidecar, and leaves what follows from it.
    fn take_carried(&mut self, carried: Carried) -> Option<Next> {
        self.carried_next = match carried {
            Carried::Base(CarriedBlock { id, domain, promotion: Some(time), .. }) => {
                Some(Carried::Promotion { id, domain, time })
            }
            Carried::Ends(ends) if ends.count > 1 => Some(Carried::Ends(CarriedEnds {
                first: ends.first + 1,
                count: ends.count - 1,
                ..ends
            })),
            _ => None,
        };
        Some(Next::Carried(carried))
    }

    fn fill_carried(&mut self) -> io::Result<()> {
        while self.carried_next.is_none()
            && let Some(record) = self.sidecar.next_record()?
        {
            match record {
                SeriesRecord::Block(block) if self.base_over => {
                    self.carried_next = Some(Carried::Stray(block));
                }
                SeriesRecord::Block(block) if self.with_base => {
                    self.carried_next = Some(Carried::Base(block));
                }
                SeriesRecord::Ends(ends) if ends.count > 0 => {
                    self.carried_next = Some(Carried::Ends(ends));
                }
                SeriesRecord::BaseComplete | SeriesRecord::BaseLeftOut { .. } => {
                    self.base_over = true;
                }
                _ => {}
            }
        }
        Ok(())
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
        let (time, domain, kind) = match *carried {
            Carried::Base(block) | Carried::Stray(block) => {
                let CarriedBlock { id, length, samples, source, node, .. } = block;
                self.rate = self.sidecar.rate(block.rate).unwrap_or(self.rate);
                self.sidecar.stack(node, &mut self.carried_stack);
                let frames = &self.carried_stack[..];
                let backtrace = Backtrace { frames, common_prefix: 0, new: frames };
                let allocation = Allocation { id, length, samples, source, backtrace };
                (block.birth, block.domain, EventKind::Alloc(allocation))
            }
            Carried::Promotion { id, domain, time } => (time, domain, EventKind::Promote(id)),
            Carried::Ends(ends) => (ends.time, ends.domain, kind_of(ends.end, ends.first)),
        };
        (Event { time, domain, kind }, self.sidecar.locations())
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

fn kind_of(end: End, id: u64) -> EventKind<'static> {
    match end {
        End::Promote => EventKind::Promote(id),
        End::Collect => EventKind::Collect(id),
    }
}

impl Carried {
    /// Whether this is returned before an event of the part. Within a domain, its allocations
    /// tell; at one time, the other events come first.
    fn is_before(&self, event: &PartEvent) -> bool {
        let (time, domain, position) = match self {
            Carried::Stray(block) => (block.birth, block.domain, block.position),
            Carried::Ends(ends) => (ends.time, ends.domain, ends.position),
            Carried::Base(_) | Carried::Promotion { .. } => return true,
        };
        match event.kind {
            PartEventKind::Alloc { id, .. } if event.domain == domain => id >= position,
            _ => time < event.time,
        }
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
