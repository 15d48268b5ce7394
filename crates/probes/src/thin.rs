//! The same in fewer rows: what a writer makes of its file from time to time, so that a program can
//! run for months beside it.
//!
//! A row is kept as it is while it is younger than a minute. Of older ones each quantity has one for a
//! second, and beyond an hour one for a minute: the last, so that totals stay exact. Its least and
//! greatest value and its longest pause are those of all that it stands for. Sizes have no such fields:
//! of these the rows with the largest are kept as well. Of single slices the longest of each kind is
//! kept, and of the log the last lines. What is dropped is counted.
//!
//! Where that is not enough, because there are many quantities, a higher [`Thinning::level`] divides
//! minute and hour by two, and multiplies the time between the oldest rows.
//!
//! Thinning what was thinned before says the same as thinning it all at once. One pass, with as much
//! memory as the rows of one such time take.

use std::collections::BTreeMap;

use crate::event::{Event, Heap, Spacing, Start, System, Timed};

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thinning {
    /// The time from which ages count, in nanoseconds since the Unix epoch.
    pub now: u64,
    /// 0, or how often the ages at which rows are merged were divided by two.
    pub level: u32,
    /// Bytes of the log that are dropped, from its beginning: [`log_bytes`] counts them.
    pub drop_log: u64,
}

impl Thinning {
    /// Everything but the log is a few rows then.
    pub const MAX_LEVEL: u32 = 20;

    /// Rows before this time are merged.
    fn fine(&self) -> u64 {
        self.now.saturating_sub(MINUTE >> self.level)
    }

    /// Rows before this time are merged more.
    fn coarse(&self) -> u64 {
        self.now.saturating_sub(HOUR >> self.level)
    }

    fn coarse_width(&self) -> u64 {
        MINUTE << self.level.min(Self::MAX_LEVEL)
    }

    /// The beginning of the time that one row stands for. `None`: the row is kept as it is.
    fn bucket(&self, time: u64) -> Option<u64> {
        let width = match time {
            time if time < self.coarse() => self.coarse_width(),
            time if time < self.fine() => SECOND,
            _ => return None,
        };
        Some(time / width * width)
    }
}

/// The bytes that an event takes of the room for the log; 0 if it is no line.
#[must_use]
pub fn log_bytes(event: &Event) -> u64 {
    match event {
        Event::Log { text } | Event::Pause { text } => text.len() as u64 + 11,
        _ => 0,
    }
}

/// What was dropped, and is in no row any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Lines of the log.
    pub logs: u64,
    /// Single slices.
    pub slices: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Thinner {
    thinning: Thinning,
    start: Option<Start>,
    quantities: BTreeMap<Quantity, Pending>,
    dropped: Dropped,
    /// Bytes of the log that are still to be dropped.
    drop_log: u64,
}

/// What has rows of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Quantity {
    Probe(u32),
    Pauses(u8),
    Slices(u8),
    Heap,
    System,
    Lost,
    Cycles,
}

/// Rows that stand for the same time, and the last one that was passed on.
#[derive(Debug, Default)]
struct Pending {
    bucket: u64,
    rows: Vec<Timed>,
    last: Option<Event>,
}

impl Thinner {
    /// At the beginning of a file.
    #[must_use]
    pub fn new(thinning: Thinning) -> Thinner {
        Thinner {
            thinning,
            start: None,
            quantities: BTreeMap::new(),
            dropped: Dropped::default(),
            drop_log: thinning.drop_log,
        }
    }

    /// Takes the next event of the file; passes on what is kept, which may be later.
    ///
    /// # Errors
    /// Those of `keep`.
    pub fn add<E>(
        &mut self,
        timed: Timed,
        keep: &mut impl FnMut(Timed) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Event::Start(start) = &timed.event {
            let from = timed.time;
            self.start = Some(start.clone());
            keep(timed)?;
            return self.spacings(from).into_iter().try_for_each(keep);
        }
        if let Event::Spacing(spacing) = timed.event
            && !self.is_wider(spacing)
        {
            return Ok(());
        }
        let Some(quantity) = quantity(&timed.event) else { return self.line(timed, keep) };
        let bucket = self.thinning.bucket(timed.time);
        // What was before the file is not of the time in which the file begins.
        let is_before = self.start.as_ref().is_some_and(|start| start.is_before(timed.time));
        let pending = self.quantities.entry(quantity).or_default();
        if is_before || bucket != Some(pending.bucket) {
            pending.pass_on(keep)?;
        }
        if is_before {
            pending.last = Some(timed.event.clone());
            return keep(timed);
        }
        let Some(bucket) = bucket else {
            // Only such rows follow.
            return keep(timed);
        };
        pending.bucket = bucket;
        self.dropped.slices += pending.merge(timed);
        Ok(())
    }

    /// The end of the file.
    ///
    /// # Errors
    /// Those of `keep`.
    pub fn finish<E>(
        mut self,
        keep: &mut impl FnMut(Timed) -> Result<(), E>,
    ) -> Result<Dropped, E> {
        for pending in self.quantities.values_mut() {
            pending.pass_on(keep)?;
        }
        Ok(self.dropped)
    }

    /// How far apart rows are now, from the beginning of the file on.
    fn spacings(&self, from: u64) -> Vec<Timed> {
        let (fine, coarse) = (self.thinning.fine(), self.thinning.coarse());
        let parts =
            [(from, coarse, self.thinning.coarse_width()), (from.max(coarse), fine, SECOND)];
        let is_there = |&(from, end, _): &(u64, u64, u64)| from < end;
        let event = |(time, end, ns): (u64, u64, u64)| Timed {
            time,
            event: Event::Spacing(Spacing { until: end - 1, ns }),
        };
        parts.into_iter().filter(is_there).map(event).collect()
    }

    /// Whether a part of the file has its rows farther apart than thinning puts them.
    fn is_wider(&self, spacing: Spacing) -> bool {
        let ours = match spacing.until {
            until if until < self.thinning.coarse() => self.thinning.coarse_width(),
            until if until < self.thinning.fine() => SECOND,
            _ => 0,
        };
        spacing.ns > ours
    }

    /// An event that is not merged with others.
    fn line<E>(
        &mut self,
        timed: Timed,
        keep: &mut impl FnMut(Timed) -> Result<(), E>,
    ) -> Result<(), E> {
        let bytes = log_bytes(&timed.event);
        if bytes > 0 && self.drop_log > 0 {
            self.drop_log = self.drop_log.saturating_sub(bytes);
            self.dropped.logs += 1;
            return Ok(());
        }
        keep(timed)
    }
}

impl Pending {
    /// Passes on the rows, but for those that say what is said already.
    fn pass_on<E>(&mut self, keep: &mut impl FnMut(Timed) -> Result<(), E>) -> Result<(), E> {
        for row in self.rows.drain(..) {
            let is_said = is_state(&row.event) && self.last.as_ref() == Some(&row.event);
            if !is_said {
                self.last = Some(row.event.clone());
                keep(row)?;
            }
        }
        Ok(())
    }

    /// Adds a row of the same time. Returns how many slices are dropped for it.
    fn merge(&mut self, mut timed: Timed) -> u64 {
        let before = self.rows.last();
        match (&mut timed.event, before.map(|row| &row.event)) {
            (
                Event::Value { least, greatest, .. },
                Some(Event::Value { least: low, greatest: high, .. }),
            ) => {
                (*least, *greatest) = (least.min(*low), greatest.max(*high));
                self.rows.clear();
            }
            (Event::Pauses(pauses), Some(Event::Pauses(before))) => {
                pauses.longest_ns = pauses.longest_ns.max(before.longest_ns);
                self.rows.clear();
            }
            (Event::Slice { ns, .. }, Some(Event::Slice { ns: longest, .. })) => {
                if *ns > *longest {
                    self.rows = vec![timed];
                }
                return 1;
            }
            (Event::Heap(_) | Event::System(_), _) => {}
            _ => self.rows.clear(),
        }
        self.rows.push(timed);
        self.keep_largest();
        0
    }

    /// Of several rows, keeps the last one, and the first that has the largest of each size.
    fn keep_largest(&mut self) {
        let Some(last) = self.rows.len().checked_sub(1).filter(|&last| last > 0) else { return };
        // A bit for each row: there are at most one more than sizes, and the new one.
        let mut kept = 1_u32 << last;
        for size in 0..SIZES {
            let sizes = self.rows.iter().map(|row| sizes(&row.event)[size]);
            // The first of those that are equal.
            let largest = sizes.enumerate().rev().max_by_key(|&(_, size)| size);
            if let Some((at, Some(_))) = largest {
                kept |= 1 << at;
            }
        }
        let mut at = 0;
        self.rows.retain(|_| {
            at += 1;
            kept & (1 << (at - 1)) != 0
        });
    }
}

/// Whether a row only says what its quantity is: a second one like it adds nothing. Two slices may be
/// equally long, and a value may have moved between the same bounds twice.
fn is_state(event: &Event) -> bool {
    match event {
        Event::Slice { .. } => false,
        Event::Value { least, greatest, .. } => least == greatest,
        _ => true,
    }
}

/// The most sizes in a row.
const SIZES: usize = 4;

/// What a row says that may become smaller again.
fn sizes(event: &Event) -> [Option<u64>; SIZES] {
    match *event {
        Event::Heap(Heap { heap_words, live_words, .. }) => [heap_words, live_words, None, None],
        Event::System(System { rss, cgroup_usage, threads, domains, .. }) => {
            [rss, cgroup_usage, threads, domains]
        }
        _ => [None; SIZES],
    }
}

fn quantity(event: &Event) -> Option<Quantity> {
    Some(match event {
        Event::Lost { .. } => Quantity::Lost,
        Event::Slice { kind, .. } => Quantity::Slices(kind.number()),
        Event::Pauses(pauses) => Quantity::Pauses(pauses.kind.number()),
        Event::Heap(_) => Quantity::Heap,
        Event::System(_) => Quantity::System,
        Event::Cycle { .. } => Quantity::Cycles,
        Event::Probe { .. } => return None,
        _ => Quantity::Probe(event.probe()?),
    })
}
