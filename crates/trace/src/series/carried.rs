//! What happened to blocks that are not in a part, from its sidecar, as events.

use std::io::{self, Read};

use crate::model::{Allocation, Backtrace, Code, End, Event, EventKind, LocationTable};
use crate::series::{CarriedBlock, CarriedEnds, SeriesReader, SeriesRecord};

/// What comes next in the sidecar.
#[derive(Clone, Copy)]
pub(super) enum Carried {
    /// A block that was alive when the part began.
    Base(CarriedBlock),
    /// The promotion of the block before, at that time.
    Promotion { id: u64, domain: u16, time: u64 },
    /// A block that was sampled at an earlier rate.
    Stray(CarriedBlock),
    /// Ends, of which the first is next.
    Ends(CarriedEnds),
}

/// An event of the part, as far as the order depends on it: its time, its domain, and the id in
/// the series of the block that it allocates.
#[derive(Clone, Copy)]
pub(super) struct Position {
    pub(super) time: u64,
    pub(super) domain: u16,
    pub(super) allocated: Option<u64>,
}

impl Carried {
    /// Whether this is returned before an event of the part. Within a domain, its allocations
    /// tell; at one time, the other events come first.
    pub(super) fn is_before(&self, event: Position) -> bool {
        let (time, domain, position) = match self {
            Carried::Stray(block) => (block.birth, block.domain, block.position),
            Carried::Ends(ends) => (ends.time, ends.domain, ends.position),
            Carried::Base(_) | Carried::Promotion { .. } => return true,
        };
        match event.allocated {
            Some(id) if event.domain == domain => id >= position,
            _ => time < event.time,
        }
    }
}

/// Reads the events of a sidecar.
pub(super) struct CarriedEvents<R> {
    pub(super) sidecar: SeriesReader<R>,
    /// Whether the blocks come that were alive when the part began.
    with_base: bool,
    /// The list of these is over.
    base_over: bool,
    /// The blocks that were alive and are not listed.
    pub(super) left_out: Option<u64>,
    /// The part is complete.
    pub(super) is_complete: bool,
    next: Option<Carried>,
    /// The stack of the last allocation.
    stack: Vec<Code>,
}

impl<R: Read> CarriedEvents<R> {
    pub(super) fn new(sidecar: SeriesReader<R>, with_base: bool) -> CarriedEvents<R> {
        CarriedEvents {
            sidecar,
            with_base,
            base_over: false,
            left_out: None,
            is_complete: false,
            next: None,
            stack: Vec::new(),
        }
    }

    /// What comes next; `None` if there is nothing (yet).
    pub(super) fn peek(&mut self) -> io::Result<Option<Carried>> {
        while self.next.is_none()
            && let Some(record) = self.sidecar.next_record()?
        {
            match record {
                SeriesRecord::Block(block) if self.base_over => {
                    self.next = Some(Carried::Stray(block));
                }
                SeriesRecord::Block(block) if self.with_base => {
                    self.next = Some(Carried::Base(block));
                }
                SeriesRecord::Ends(ends) if ends.count > 0 => {
                    self.next = Some(Carried::Ends(ends));
                }
                SeriesRecord::BaseComplete => self.base_over = true,
                SeriesRecord::BaseLeftOut { blocks } => {
                    (self.base_over, self.left_out) = (true, Some(blocks));
                }
                SeriesRecord::PartComplete { .. } => self.is_complete = true,
                _ => {}
            }
        }
        Ok(self.next)
    }

    /// Goes on behind what is next, to what follows from it.
    pub(super) fn pass(&mut self, carried: Carried) {
        self.next = match carried {
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
    }

    /// It as an event, with the rate at which its block was sampled if it is an allocation.
    pub(super) fn event(&mut self, carried: &Carried) -> (Event<'_>, &LocationTable, Option<f64>) {
        let mut rate = None;
        let (time, domain, kind) = match *carried {
            Carried::Base(block) | Carried::Stray(block) => {
                let CarriedBlock { id, length, samples, source, node, .. } = block;
                rate = self.sidecar.rate(block.rate);
                self.sidecar.stack(node, &mut self.stack);
                let frames = &self.stack[..];
                let backtrace = Backtrace { frames, common_prefix: 0, new: frames };
                let allocation = Allocation { id, length, samples, source, backtrace };
                (block.birth, block.domain, EventKind::Alloc(allocation))
            }
            Carried::Promotion { id, domain, time } => (time, domain, EventKind::Promote(id)),
            Carried::Ends(ends) => (ends.time, ends.domain, kind_of(ends.end, ends.first)),
        };
        (Event { time, domain, kind }, self.sidecar.locations(), rate)
    }
}

pub(super) fn kind_of(end: End, id: u64) -> EventKind<'static> {
    match end {
        End::Promote => EventKind::Promote(id),
        End::Collect => EventKind::Collect(id),
    }
}
