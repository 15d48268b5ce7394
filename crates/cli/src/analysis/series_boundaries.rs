//! Whether the parts of series fit together: nothing is counted twice or lost from one to the next.
//!
//! Each part says in its sidecar what was alive when it began. The part before it says the same, if
//! one reads it to its end: what was alive at its own begin, and what it allocated, without what was
//! collected. Both have to agree, block by block.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use heaptap_codec::seeded::Seeded;
use heaptap_report::figures::units::{count, duration};
use heaptap_trace::{
    Block, CarriedBlock, Event, EventKind, EventSource, PartSource, STRAY_IDS, SeriesId,
    SeriesReader, SeriesRecord, SeriesSummary,
};

use crate::exit_status::Failure;
use crate::io::input::{Input, Order};
use crate::io::series_files::{PartOnDisk, series_sidecar};
use crate::text::escape;

/// A block that is alive, as far as both sides of a boundary know it.
#[derive(Clone, Copy, PartialEq)]
struct Alive {
    block: Block,
    promoted: bool,
}

type Heap = HashMap<u64, Alive, Seeded>;

/// What was found in the series of a directory.
#[derive(Default)]
pub(crate) struct Boundaries {
    /// A line about each series.
    pub(crate) series: Vec<String>,
    /// What could not be compared, and why.
    pub(crate) unknown: Vec<String>,
    /// Each with its file and place, at most one for each part.
    pub(crate) defects: Vec<String>,
}

impl Boundaries {
    /// Reads the parts among these traces.
    pub(crate) fn check(traces: &[PathBuf]) -> Result<Boundaries, Failure> {
        let mut all: BTreeMap<(u64, SeriesId), Vec<PartOnDisk>> = BTreeMap::new();
        for part in traces.iter().filter_map(|trace| PartOnDisk::of(trace)) {
            all.entry((part.head.series_start, part.head.series)).or_default().push(part);
        }
        let mut found = Boundaries::default();
        for (_, mut parts) in all {
            parts.sort_by_key(|part| part.head.part);
            Row::default().check(&parts, &mut found)?;
        }
        Ok(found)
    }
}

/// The parts of one series, one after the other.
#[derive(Default)]
struct Row {
    /// The number of the part before, and what it is called.
    before: Option<(u64, String)>,
    /// What is alive; `None` if it is not known.
    alive: Option<Heap>,
    /// Every id so far is below this.
    ids: u64,
    boundaries: u64,
    carried: u64,
}

impl Row {
    fn check(mut self, parts: &[PartOnDisk], found: &mut Boundaries) -> Result<(), Failure> {
        for part in parts {
            self.part(part, found)?;
        }
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok(()) };
        found.series.push(format!(
            "series: {}, {} to {}; {} compared, over which {} went",
            count(parts.len() as u64, "part", "parts"),
            first.head.part + 1,
            last.head.part + 1,
            count(self.boundaries, "boundary", "boundaries"),
            count(self.carried, "block", "blocks"),
        ));
        Ok(())
    }

    fn part(&mut self, part: &PartOnDisk, found: &mut Boundaries) -> Result<(), Failure> {
        let number = part.head.part;
        let name = escape::path(&part.trace).to_string();
        let sidecar = format!("{name}.series");
        let (base, summary) = base_of(part, &sidecar)?;
        if let Some((before, before_name)) = self.before.replace((number, name.clone())) {
            if before == number {
                let line = format!("{name}: part {} of its series, as {before_name}", number + 1);
                found.defects.push(line);
                return Ok(());
            }
            if before + 1 == number {
                self.boundary(part, base.as_ref(), &before_name, &sidecar, found);
            } else {
                found.defects.push(format!(
                    "{before_name}: the series goes on in part {}, which is missing; {name} is part {}",
                    before + 2,
                    number + 1
                ));
                self.alive = None;
            }
        }
        self.alive = base.or(self.alive.take());
        self.events(part, &summary, &name, found)?;
        if summary.first_id != part.head.first_id {
            found.unknown.push(format!(
                "{name}: was truncated while it was written: what was alive at its end is not known"
            ));
            self.alive = None;
        }
        Ok(())
    }

    /// Compares what the part before left with what this one lists.
    fn boundary(
        &mut self,
        part: &PartOnDisk,
        base: Option<&Heap>,
        before: &str,
        sidecar: &str,
        found: &mut Boundaries,
    ) {
        if part.head.first_id < self.ids {
            found.defects.push(format!(
                "{sidecar}: its ids begin at {}, and {before} has ids up to {}: blocks would be \
                 counted as one",
                part.head.first_id,
                self.ids - 1
            ));
        }
        let (Some(alive), Some(base)) = (&self.alive, base) else {
            found.unknown.push(format!(
                "{sidecar}: what was alive at its begin is not compared: {}",
                if base.is_none() { "it is not listed" } else { "the part before does not say" }
            ));
            return;
        };
        self.boundaries += 1;
        self.carried += base.len() as u64;
        let lost = alive.keys().filter(|id| !base.contains_key(id));
        let made_up = base.keys().filter(|id| !alive.contains_key(id));
        let changed =
            base.iter().filter(|(id, block)| alive.get(id).is_some_and(|it| it != *block));
        let cases = [
            (smallest(lost), "alive at the end of", "not listed at the begin of the next part"),
            (smallest(made_up), "not alive at the end of", "listed at the begin of the next part"),
            (
                smallest(changed.map(|(id, _)| id)),
                "of another size, or promoted otherwise at the end of",
                "so listed at the begin of the next part",
            ),
        ];
        for ((blocks, first), there, here) in cases {
            if let Some(first) = first {
                let blocks = count(blocks, "block", "blocks");
                found.defects.push(format!(
                    "{sidecar}: {blocks} {there} {before}, and {here}; the first is block {first}"
                ));
            }
        }
    }

    /// Follows the blocks through the part.
    fn events(
        &mut self,
        part: &PartOnDisk,
        summary: &SeriesSummary,
        name: &str,
        found: &mut Boundaries,
    ) -> Result<(), Failure> {
        let input = Input::open(&part.trace)?.quietly();
        let source = input
            .make_repeatable()
            .and_then(|()| input.source(Order::Time).map_err(|error| input.failure(error)));
        let source = match source {
            Ok(source) => source,
            Err(Failure::Trouble(message) | Failure::Defective(message)) => {
                found.unknown.push(format!("{message}; its events are not compared"));
                self.alive = None;
                return Ok(());
            }
            Err(failure) => return Err(failure),
        };
        let sidecar = reader_of(part, name)?;
        let mut source = PartSource::new(source, sidecar, summary.first_id, false);
        let mut follower =
            Follower { alive: self.alive.take(), ids: self.ids, ..Follower::default() };
        input.each_event(&mut source, |event, _| {
            follower.event(event);
            Ok(())
        })?;
        // Of a damaged trace, the boundary tells what is lost.
        if source.losses().is_clean()
            && let Some(line) = follower.defect(part.head.start_time)
        {
            found.defects.push(format!("{name}: {line}"));
        }
        self.alive = follower.alive;
        self.ids = self.ids.max(follower.ids);
        Ok(())
    }
}

/// The blocks of a part.
#[derive(Default)]
struct Follower {
    alive: Option<Heap>,
    /// Ends that came before their allocation, which two domains may have in the same microsecond.
    early: HashMap<u64, (u64, bool), Seeded>,
    ids: u64,
    /// What comes twice: a block, and when.
    twice: Option<(u64, u64)>,
}

impl Follower {
    fn event(&mut self, event: &Event<'_>) {
        if let Some(id) = event.kind.block_id().filter(|&id| id < STRAY_IDS) {
            self.ids = self.ids.max(id.saturating_add(1));
        }
        let Some(alive) = &mut self.alive else { return };
        let time = event.time;
        match event.kind {
            EventKind::Alloc(allocation) => {
                let block = allocation.block();
                let early = self.early.remove(&allocation.id);
                if early.is_some_and(|(_, collected)| collected) {
                    return;
                }
                let promoted = early.is_some();
                if alive.insert(allocation.id, Alive { block, promoted }).is_some() {
                    self.twice.get_or_insert((allocation.id, time));
                }
            }
            EventKind::Promote(id) => match alive.get_mut(&id) {
                Some(block) if block.promoted => _ = self.twice.get_or_insert((id, time)),
                Some(block) => block.promoted = true,
                None => _ = self.early.entry(id).or_insert((time, false)),
            },
            EventKind::Collect(id) if alive.remove(&id).is_none() => {
                self.early.insert(id, (time, true));
            }
            _ => {}
        }
    }

    /// What is wrong, after the last event of a part that began at this time.
    fn defect(&self, start: u64) -> Option<String> {
        let after = |time: u64| duration(time.saturating_sub(start));
        if let Some((id, time)) = self.twice {
            return Some(format!(
                "block {id} of the series is allocated or promoted a second time after {}",
                after(time)
            ));
        }
        let (&id, &(time, _)) = self.early.iter().min_by_key(|&(&id, &(time, _))| (time, id))?;
        let blocks = count(self.early.len() as u64, "block", "blocks");
        Some(format!(
            "{blocks} promoted or collected without being alive, the first is block {id} of the \
             series after {}",
            after(time)
        ))
    }
}

/// How many, and the first.
fn smallest<'a>(ids: impl Iterator<Item = &'a u64>) -> (u64, Option<u64>) {
    ids.fold((0, None), |(count, least): (u64, Option<u64>), &id| {
        (count + 1, Some(least.map_or(id, |it| it.min(id))))
    })
}

fn reader_of(part: &PartOnDisk, name: &str) -> Result<SeriesReader<BufReader<File>>, Failure> {
    let failed = |error| Failure::Trouble(format!("{name}.series: {error}"));
    let file = File::open(series_sidecar(&part.trace)).map_err(failed)?;
    SeriesReader::new(BufReader::new(file)).map_err(failed)
}

/// What the sidecar says was alive when the part began, if it is listed, and the rest of it.
fn base_of(part: &PartOnDisk, sidecar: &str) -> Result<(Option<Heap>, SeriesSummary), Failure> {
    let failed = |error| Failure::Trouble(format!("{sidecar}: {error}"));
    let name = sidecar.strip_suffix(".series").unwrap_or(sidecar);
    let summary = SeriesSummary::of(&mut reader_of(part, name)?).map_err(failed)?;
    if summary.base.is_none() {
        return Ok((None, summary));
    }
    let mut base = Heap::default();
    let mut reader = reader_of(part, name)?;
    while let Some(record) = reader.next_record().map_err(failed)? {
        match record {
            SeriesRecord::Block(block) => {
                let promoted = block.promotion.is_some();
                let CarriedBlock { id, length, samples, source, .. } = block;
                base.insert(id, Alive { block: Block { length, samples, source }, promoted });
            }
            SeriesRecord::BaseComplete => break,
            _ => {}
        }
    }
    Ok((Some(base), summary))
}
