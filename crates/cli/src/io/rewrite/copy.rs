//! Copies events in the order of the file, with their ids.
//!
//! A sound trace is copied to the byte: backtraces are written as they were read,
//! and ids are kept. After a loss neither is possible. The frames that a prefix
//! refers to are unknown, so backtraces are written whole from then on. Ids must
//! not have gaps, so later objects move up, and promotions and collections of lost
//! ones are left out, as are those that an object cannot have, such as a second
//! collection. So the copy is sound again.

use std::collections::BTreeMap;

use heaptap_trace::{
    Allocation, Event, EventKind, IDS_PER_BLOCK, LOST_FRAME, LocationTable, Place, TraceReader,
};

use crate::exit_status::{Failure, VerbResult};
use crate::io::input::{Input, goes_on};
use crate::io::lifecycle::{Lives, Offence};
use crate::io::rewrite::renaming::Renaming;
use crate::io::rewrite::writing::Rewriting;
use crate::io::rewrite::{LEFT_OUT, Rewrite, end};

impl<R: Renaming> Rewrite<'_, R> {
    /// Keeps order and ids. `shift` moves the times.
    pub(crate) fn copy(
        self,
        reader: &mut dyn TraceReader,
        shift: impl Fn(u64) -> u64,
    ) -> VerbResult {
        let input = self.input;
        let (in_order, is_repeatable) = (reader.format().has_one_domain(), input.is_repeatable());
        let mut copier = Copier {
            input,
            keeps_ids: !self.format.has_one_domain(),
            out: self.begin(reader)?,
            lossy: !reader.losses().is_clean(),
            lives: Lives::new(Lives::MEMORY),
            ids: KeptIds::default(),
            can_survey: !in_order && is_repeatable,
            surveyed: None,
            orphans: 0,
        };
        let mut failed = Ok(());
        let read = reader.for_each_place(&mut |event, place| {
            let copied = copier.event(event, shift(event.time), place);
            // Of a loss before it, an allocation knows only by its backtrace or its id: the packet
            // that holds it may be the first after the loss.
            copier.lossy |= !place.losses.is_clean();
            goes_on(copied, &mut failed)
        });
        _ = read.map_err(|error| input.failure(error))?;
        failed?;
        input.say_left_out(copier.orphans, "objects whose allocation is lost");
        input.end_progress();
        copier.out.cover(reader.covered(), reader.locations())?;
        end(input, copier.out, reader, copier.lives, &|offence| match offence {
            Offence::NeverAllocated if !in_order && !is_repeatable => {
                Some("these events are in the copy; read the trace from a file to leave them out")
            }
            _ => Some(LEFT_OUT),
        })
    }
}

/// The lives of all objects in the file.
fn survey(input: &Input) -> Result<Lives, Failure> {
    let mut lives = Lives::new(Lives::MEMORY);
    input.each_event(&mut *input.in_file_order()?, |event, _| {
        lives.event(event);
        Ok(())
    })?;
    Ok(lives)
}

/// A copy in progress.
struct Copier<'a, R> {
    input: &'a Input,
    out: Rewriting<R>,
    /// In a format of one domain, the encoder numbers objects itself.
    keeps_ids: bool,
    /// Part of the trace is lost. From then on the encoder numbers objects itself.
    lossy: bool,
    lives: Lives,
    ids: KeptIds,
    /// With several domains, an object may be allocated in a later packet, and only the whole file
    /// shows that it never is. For the first such object it is read once more, unless it
    /// is a pipe: then such events are copied.
    can_survey: bool,
    surveyed: Option<Lives>,
    /// Events of objects whose allocation is lost.
    orphans: u64,
}

impl<R: Renaming> Copier<'_, R> {
    fn event(&mut self, event: &Event<'_>, time: u64, place: &Place<'_>) -> Result<(), Failure> {
        let (domain, table) = (event.domain, place.locations);
        let offence = self.lives.event(event);
        if let EventKind::Alloc(allocation) = &event.kind {
            // A frame gets lost in a backtrace that the reader counts, or is read as lost.
            self.lossy |= place.losses.partial_backtraces > 0
                || allocation.backtrace.new.contains(&LOST_FRAME);
            return self.allocate(domain, time, allocation, table);
        }
        // The format has no other kinds of event.
        let Some((end, id)) = event.kind.end().filter(|_| offence.is_none()) else { return Ok(()) };
        if self.can_survey && self.ids.get(id).is_none() {
            let all = match self.surveyed.take() {
                Some(all) => all,
                None => survey(self.input)?,
            };
            if self.surveyed.insert(all).forbids(end, id) {
                return Ok(());
            }
        }
        self.lossy |= !place.losses.is_clean();
        let Some(id) = self.copied_id(id) else {
            self.orphans += 1;
            return Ok(());
        };
        if let Some(next) = place.next_id {
            self.number_on(domain, time, next)?;
        }
        self.out.end(end, domain, time, id, table)
    }

    fn allocate(
        &mut self,
        domain: u16,
        time: u64,
        allocation: &Allocation<'_>,
        table: &LocationTable,
    ) -> Result<(), Failure> {
        let backtrace = allocation.backtrace;
        self.lossy |= self.is_gap(domain, allocation.id);
        self.number_on(domain, time, allocation.id)?;
        let frames = if self.lossy { backtrace.whole() } else { backtrace.suffix() };
        let id = self.out.allocate(domain, time, allocation.block(), frames, table)?;
        self.ids.add(allocation.id, id);
        Ok(())
    }

    /// Whether ids are missing before this one, the domain's next: a domain takes blocks
    /// of ids and uses up each of them. That is the first sign of a loss, since the
    /// reader reports it together with the event.
    fn is_gap(&self, domain: u16, id: u64) -> bool {
        let expected = self.out.next_id(domain).unwrap_or(0);
        let at_blocks = [expected, id].iter().all(|id| id % IDS_PER_BLOCK == 0);
        self.keeps_ids && id != expected && !at_blocks
    }

    /// Makes this the id of the domain's next allocation, if ids are kept.
    fn number_on(&mut self, domain: u16, time: u64, id: u64) -> Result<(), Failure> {
        if self.keeps_ids && !self.lossy { self.out.number_on(domain, time, id) } else { Ok(()) }
    }

    /// The id of an object in the copy; `None` if its allocation is lost.
    fn copied_id(&self, id: u64) -> Option<u64> {
        // Without a loss, another domain may allocate it in a later packet of the file.
        self.ids.get(id).or((self.keeps_ids && !self.lossy).then_some(id))
    }
}

/// The allocations copied so far, by ranges of ids: few, since ids are
/// consecutive in a packet and mostly between packets.
#[derive(Default)]
struct KeptIds {
    /// Start → end, and the id that the start has in the copy.
    ranges: BTreeMap<u64, (u64, u64)>,
    /// The range that grows at the moment, which is not in the map.
    growing: Option<Growing>,
}

struct Growing {
    start: u64,
    end: u64,
    copied: u64,
}

impl KeptIds {
    fn add(&mut self, id: u64, copied: u64) {
        if let Some(Growing { start, end, copied: first }) = &mut self.growing
            && *end == id
            && *first + (id - *start) == copied
        {
            *end += 1;
            return;
        }
        self.settle();
        self.growing = Some(Growing { start: id, end: id + 1, copied });
    }

    /// Puts the growing range into the map, at the end of the one before it if
    /// they fit together.
    fn settle(&mut self) {
        let Some(Growing { start, end, copied }) = self.growing.take() else { return };
        if let Some((&before, range)) = self.ranges.range_mut(..start).next_back()
            && range.0 == start
            && range.1 + (start - before) == copied
        {
            range.0 = end;
            return;
        }
        self.ranges.insert(start, (end, copied));
    }

    /// The id in the copy.
    fn get(&self, id: u64) -> Option<u64> {
        if let Some(growing) = &self.growing
            && (growing.start..growing.end).contains(&id)
        {
            return Some(growing.copied + (id - growing.start));
        }
        let (&start, &(end, copied)) = self.ranges.range(..=id).next_back()?;
        (id < end).then(|| copied + (id - start))
    }
}

#[cfg(test)]
mod tests {
    use super::KeptIds;

    #[test]
    fn ids_are_found_in_ranges_that_grow_together() {
        let mut ids = KeptIds::default();
        for id in 0..100 {
            ids.add(id, id);
        }
        for id in 500..600 {
            ids.add(id, id);
        }
        for id in 100..200 {
            ids.add(id, id);
        }
        ids.settle();
        assert_eq!(ids.ranges.len(), 2);
        assert_eq!(ids.get(0), Some(0));
        assert_eq!(ids.get(199), Some(199));
        assert_eq!(ids.get(200), None);
        assert_eq!(ids.get(599), Some(599));
        assert_eq!(ids.get(600), None);
    }

    #[test]
    fn after_a_gap_ids_have_moved() {
        let mut ids = KeptIds::default();
        ids.add(0, 0);
        ids.add(10, 1);
        ids.add(11, 2);
        assert_eq!(ids.get(0), Some(0));
        assert_eq!(ids.get(5), None);
        assert_eq!(ids.get(11), Some(2));
        assert_eq!(ids.get(12), None);
    }
}
