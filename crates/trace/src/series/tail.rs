//! A series while it is written: what its parts and their sidecars have so far, as one trace.
//!
//! Whoever reads the trace of a part passes its events on, in the order of the file, and gets them
//! back with what the sidecar has in between, with the ids that blocks have in the series, and
//! in codes that mean the same in all parts.

use std::collections::HashMap;
use std::io::{self, Read};

use heaptap_codec::seeded::Seeded;

use crate::merge::MergedLocations;
use crate::model::{Allocation, Backtrace, Code, Event, EventKind, LocationTable};
use crate::series::carried::{Carried, CarriedEvents, Position};
use crate::series::{SeriesDefect, SeriesReader};

/// Takes an event, with the locations that are known so far, and the rate at which its block was
/// sampled if it is an allocation.
pub type TakeSeriesEvent<'a> = dyn FnMut(&Event<'_>, &LocationTable, f64) + 'a;

/// The parts of a series, one after the other, as far as they are written.
pub struct SeriesTail<R> {
    part: Option<Part<R>>,
    codes: SeriesCodes,
}

/// The part that is read.
struct Part<R> {
    carried: CarriedEvents<R>,
    first_id: u64,
    rate: f64,
}

/// The codes of the series, and its last stack in them.
#[derive(Default)]
struct SeriesCodes {
    locations: MergedLocations,
    /// For codes of the part.
    known: HashMap<Code, Code, Seeded>,
    stack: Vec<Code>,
    last_stack: Vec<Code>,
    last_domain: Option<u16>,
}

impl<R> Default for SeriesTail<R> {
    /// A series of which nothing was read.
    fn default() -> SeriesTail<R> {
        SeriesTail { part: None, codes: SeriesCodes::default() }
    }
}

impl<R: Read> SeriesTail<R> {
    /// Goes on with a part, of which the sidecar may grow: a read of 0 bytes between two chunks
    /// means that there is nothing yet. `first_id`: what the ids of its trace are counted from.
    /// `with_base`: no part before it was read.
    pub fn begin_part(&mut self, sidecar: SeriesReader<R>, first_id: u64, with_base: bool) {
        let rate = sidecar.head().map_or(1.0, |head| head.rate);
        let carried = CarriedEvents::new(sidecar, with_base);
        self.part = Some(Part { carried, first_id, rate });
        self.codes.known.clear();
    }

    /// The locations of all codes so far.
    pub fn locations(&self) -> &LocationTable {
        self.codes.locations.table()
    }

    /// The sidecar says that its part is complete: its trace is, too.
    pub fn part_is_complete(&self) -> bool {
        self.part.as_ref().is_some_and(|part| part.carried.is_complete)
    }

    /// The number of blocks that were alive when the part began and that its sidecar does not list.
    pub fn left_out(&self) -> Option<u64> {
        self.part.as_ref().and_then(|part| part.carried.left_out)
    }

    /// Why nothing more is read from the sidecar of the part.
    pub fn defect(&self) -> Option<SeriesDefect> {
        self.part.as_ref().and_then(|part| part.carried.sidecar.defect())
    }

    /// Passes on the next event of the part's trace, after what the sidecar has before it.
    pub fn event(
        &mut self,
        event: &Event<'_>,
        table: &LocationTable,
        take: &mut TakeSeriesEvent<'_>,
    ) -> io::Result<()> {
        let Some(Part { first_id, rate, .. }) = self.part else { return Ok(()) };
        let in_series = |id: u64| first_id.saturating_add(id);
        let (allocated, kind) = match event.kind {
            EventKind::Alloc(block) => {
                let id = in_series(block.id);
                (Some(id), EventKind::Alloc(Allocation { id, ..block }))
            }
            EventKind::Promote(id) => (None, EventKind::Promote(in_series(id))),
            EventKind::Collect(id) => (None, EventKind::Collect(in_series(id))),
        };
        let position = Position { time: event.time, domain: event.domain, allocated };
        self.pass_on(|carried| carried.is_before(position), take)?;
        self.codes.pass_on(&Event { kind, ..*event }, table, rate, take);
        Ok(())
    }

    /// Passes on all that the sidecar has: the trace has nothing more for now.
    pub fn rest(&mut self, take: &mut TakeSeriesEvent<'_>) -> io::Result<()> {
        self.pass_on(|_| true, take)
    }

    fn pass_on(
        &mut self,
        while_it: impl Fn(&Carried) -> bool,
        take: &mut TakeSeriesEvent<'_>,
    ) -> io::Result<()> {
        let SeriesTail { part: Some(Part { carried, rate, .. }), codes } = self else {
            return Ok(());
        };
        while let Some(next) = carried.peek()?.filter(&while_it) {
            carried.pass(next);
            let (event, table, sampled_at) = carried.event(&next);
            codes.pass_on(&event, table, sampled_at.unwrap_or(*rate), take);
        }
        Ok(())
    }
}

impl SeriesCodes {
    /// Passes an event on in codes of the series.
    fn pass_on(
        &mut self,
        event: &Event<'_>,
        table: &LocationTable,
        rate: f64,
        take: &mut TakeSeriesEvent<'_>,
    ) {
        let EventKind::Alloc(allocation) = event.kind else {
            return take(event, self.locations.table(), rate);
        };
        std::mem::swap(&mut self.stack, &mut self.last_stack);
        self.stack.clear();
        for &code in allocation.backtrace.frames {
            let locations = &mut self.locations;
            let of_series = *self.known.entry(code).or_insert_with(|| locations.code(code, table));
            self.stack.push(of_series);
        }
        let frames = self.stack.as_slice();
        let is_same_domain = self.last_domain.replace(event.domain) == Some(event.domain);
        let last = if is_same_domain { self.last_stack.as_slice() } else { &[] };
        let common = last.iter().zip(frames).take_while(|(last, frame)| last == frame).count();
        let new = frames.get(common..).unwrap_or_default();
        let backtrace = Backtrace { frames, common_prefix: common as u64, new };
        let kind = EventKind::Alloc(Allocation { backtrace, ..allocation });
        take(&Event { kind, ..*event }, self.locations.table(), rate);
    }
}
