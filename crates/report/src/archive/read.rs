//! Reads an archive, trusting nothing.

use heaptap_codec::varint::unfold;
use heaptap_trace::{Code, Location, LocationTable, Source, TraceInfo};

use super::bytes::{ArchiveError, Reader};
use super::tree;
use super::write::source_of;
use super::{Archive, MAGIC, VERSION};
use crate::aggregate::Aggregate;
use crate::blocks::{BlockEnd, BlockRow, BlockTable, EndKind, NEVER, Promotion, TraceEnd};
use crate::classes::Classes;
use crate::counts::{Counts, Tallies, Tally};
use crate::estimate::{Sampled, Units};
use crate::frames::Frames;
use crate::lifetimes::Lifetimes;
use crate::paths::Bounds;
use crate::peak::Peak;
use crate::rates::{RatedSamples, Rates};
use crate::timeline::{Bucket, Timeline};
use crate::trace_ending::TraceEnding;

impl Archive {
    /// Returns whether these are the bytes of an archive of this version, as far as its first bytes say.
    pub fn check_head(bytes: &[u8]) -> Result<(), ArchiveError> {
        head(&mut Reader::new(bytes))
    }

    /// Reads an archive.
    pub fn from_bytes(bytes: &[u8]) -> Result<Archive, ArchiveError> {
        let mut from = Reader::new(bytes);
        head(&mut from)?;
        let name = from.text()?;
        let info = info(&mut from)?;
        let cut_short = Some(from.text()?).filter(|why| !why.is_empty());
        let incomplete = Some(from.text()?).filter(|why| !why.is_empty());
        let notices = from.list(Reader::text)?;
        let (codes, locations) = locations(&mut from)?;
        let rates = rates(&mut from)?;
        let scale = rates.scale(info.sample_rate, f64::from(info.word_size / 8));
        let mut aggregate = Aggregate::new(scale, rates, Bounds::USUAL);
        figures(&mut from, &mut aggregate)?;
        aggregate.paths = tree::read(&mut from, codes.len())?;
        aggregate.paths.complete();
        counts(&mut from, &mut aggregate)?;
        aggregate.classes = classes(&mut from, &aggregate)?;
        aggregate.frames = Frames::of_codes(codes);
        let blocks = blocks(&mut from, &aggregate)?;
        let answers = from.list(|from| Ok((from.text()?, from.text()?)))?;
        if !from.is_at_end() {
            return Err(from.error("there is more data than there should be"));
        }
        Ok(Archive {
            name,
            info,
            cut_short,
            incomplete,
            notices,
            aggregate,
            blocks,
            locations,
            answers,
        })
    }
}

fn head(from: &mut Reader<'_>) -> Result<(), ArchiveError> {
    if from.take(MAGIC.len())? != MAGIC {
        return Err(from.error("this is not the data of a heaptap page"));
    }
    if from.number()? != VERSION {
        return Err(from.error("the data was written by another version of heaptap"));
    }
    Ok(())
}

fn info(from: &mut Reader<'_>) -> Result<TraceInfo, ArchiveError> {
    let sample_rate = from.float()?;
    if !(sample_rate > 0.0 && sample_rate <= 1.0) {
        return Err(from.error("the sampling rate is not between 0 and 1"));
    }
    let word_size = from.small()?;
    if word_size != 32 && word_size != 64 {
        return Err(from.error("words have neither 32 nor 64 bits"));
    }
    Ok(TraceInfo {
        sample_rate,
        word_size,
        executable: from.bytes()?.to_vec(),
        host: from.bytes()?.to_vec(),
        runtime_params: from.bytes()?.to_vec(),
        context: from.bytes()?.to_vec(),
        pid: from.number()?,
        start_time: from.number()?,
        domain: from.small()?,
    })
}

fn locations(from: &mut Reader<'_>) -> Result<(Vec<Code>, LocationTable), ArchiveError> {
    let names = from.list(Reader::bytes)?;
    let count = from.length()?;
    let (mut codes, mut table) = (Vec::new(), LocationTable::default());
    let mut last = 0;
    for _ in 0..count {
        last = from.step(last)?;
        codes.push(last);
        let of_code = from.list(|from| {
            let (file, definition) = (names[from.below(names.len())?], from.below(names.len())?);
            let (line, start_char, end_char) = (from.small()?, from.small()?, from.small()?);
            Ok(Location { file, line, start_char, end_char, definition: names[definition] })
        })?;
        table.insert(last, &of_code);
    }
    Ok((codes, table))
}

fn figures(from: &mut Reader<'_>, aggregate: &mut Aggregate) -> Result<(), ArchiveError> {
    for number in [&mut aggregate.events, &mut aggregate.end, &mut aggregate.samples] {
        *number = from.number()?;
    }
    for sum in [
        &mut aggregate.allocated,
        &mut aggregate.young,
        &mut aggregate.external,
        &mut aggregate.promoted,
        &mut aggregate.live_young,
        &mut aggregate.live_external,
    ] {
        *sum = sampled(from)?;
    }
    aggregate.level = from.below(64)? as u32;
    aggregate.cluster = from.float()?;
    let state = from.list(Reader::number)?;
    aggregate.peak = Peak::from_state(&state).ok_or(from.error("the peak is incomplete"))?;
    let width = from.number()?;
    let buckets = from.list(|from| {
        Ok(Bucket { allocated: from.number()?, most_live: from.number()?, live: sampled(from)? })
    })?;
    aggregate.timeline =
        Timeline::of(width, buckets).ok_or(from.error("the time line is not one"))?;
    let survived = sampled(from)?;
    let (classes, variances) = (from.list(Reader::number)?, from.list(Reader::number)?);
    aggregate.lifetimes = Lifetimes::of(&classes, &variances, survived)
        .ok_or(from.error("the lifetimes are incomplete"))?;
    Ok(())
}

fn rates(from: &mut Reader<'_>) -> Result<Rates, ArchiveError> {
    let rates = from.list(Reader::float)?;
    if rates.is_empty() {
        return Ok(Rates::default());
    }
    let (words, squares, whole_spread) = (from.float()?, from.float()?, from.float()?);
    let units = Units { words, squares, whole_spread };
    let are_rates = rates.iter().all(|&rate| rate > 0.0 && rate <= 1.0)
        && rates.windows(2).all(|pair| pair[0] < pair[1])
        && [words, squares].iter().all(|unit| unit.is_normal() && *unit > 0.0)
        && whole_spread.is_finite()
        && whole_spread >= 0.0;
    if rates.len() < 2 || !are_rates {
        return Err(from.error("the sampling rates are none"));
    }
    Ok(Rates::with_units(rates, units))
}

fn sampled(from: &mut Reader<'_>) -> Result<Sampled, ArchiveError> {
    Ok(Sampled { count: from.number()?, variance: from.number()? })
}

fn counts(from: &mut Reader<'_>, aggregate: &mut Aggregate) -> Result<(), ArchiveError> {
    let peak_number = aggregate.peak.number();
    let settled = Counts { peak_number, ..Counts::default() };
    let (are_mixed, paths) = (aggregate.rates.are_several(), aggregate.paths.count());
    aggregate.counts = Tallies::filled(are_mixed, paths, settled);
    let Tallies { counts, variances, .. } = &mut aggregate.counts;
    for part in [counts, variances] {
        for column in COLUMNS {
            for counts in &mut *part {
                *column(counts) = from.number()?;
            }
        }
    }
    aggregate.counts.all_mut().for_each(add_to_live);
    Ok(())
}

/// What an archive has of counts.
const COLUMNS: [fn(&mut Counts) -> &mut u64; 7] = [
    |counts| &mut counts.allocated,
    |counts| &mut counts.promoted,
    |counts| &mut counts.live,
    |counts| &mut counts.survived,
    |counts| &mut counts.peak,
    |counts| &mut counts.died,
    |counts| &mut counts.carried,
];

/// What was alive at the peak is written as a difference.
fn add_to_live(counts: &mut Counts) {
    counts.peak = counts.live.wrapping_add(unfold(counts.peak));
}

fn classes(from: &mut Reader<'_>, aggregate: &Aggregate) -> Result<Classes, ArchiveError> {
    let settled = Counts { peak_number: aggregate.peak.number(), ..Counts::default() };
    let are_mixed = aggregate.rates.are_several();
    if from.below(2)? == 0 {
        return Ok(Classes::default());
    }
    let count = from.length()?;
    let (mut keys, mut all) = (Vec::new(), Tallies::new(are_mixed));
    for _ in 0..count {
        let domain = from.small()?;
        let source = source_of(from.number()?).ok_or(from.error("a class has no source"))?;
        keys.push((domain, source));
        let mut tally = Tally { counts: settled, variances: settled };
        let parts = [&mut tally.counts, &mut tally.variances];
        for counts in parts.into_iter().take(if are_mixed { 2 } else { 1 }) {
            for column in COLUMNS {
                *column(counts) = from.number()?;
            }
            add_to_live(counts);
        }
        all.resize(keys.len());
        all.take(keys.len() - 1, &tally);
    }
    Classes::of(keys, all).ok_or(from.error("there are too many domains"))
}

/// A row before its columns are read.
const NO_BLOCK: BlockRow = BlockRow {
    id: 0,
    birth: 0,
    promotion: NEVER,
    death: NEVER,
    length: 0,
    samples: RatedSamples::NONE,
    path: 0,
    domain: 0,
    source: Source::Minor,
    ended: false,
};

fn blocks(from: &mut Reader<'_>, aggregate: &Aggregate) -> Result<BlockTable, ArchiveError> {
    let (paths, rates) = (aggregate.counts.len(), aggregate.rates.clone());
    let level = from.below(64)? as u32;
    let count = from.length()?;
    if u32::try_from(count).is_err() {
        return Err(from.error("there are too many blocks"));
    }
    let mut rows = vec![NO_BLOCK; count];
    if level == 0 {
        let mut last = 0;
        for row in &mut rows {
            last = from.step(last)?;
            row.id = last;
        }
    }
    let mut last = 0;
    for row in &mut rows {
        last = from.step(last)?;
        row.birth = last;
    }
    let mut last = 0;
    for row in &mut rows {
        last = from.step(last)?;
        row.path = u32::try_from(last)
            .ok()
            .filter(|&path| (path as usize) < paths)
            .ok_or(from.error("a block has no call path"))?;
    }
    for row in &mut rows {
        row.length = from.number()?;
    }
    for row in &mut rows {
        row.samples = RatedSamples::new(from.number()?.min(crate::live::MOST_SAMPLES), 0);
    }
    for row in &mut rows {
        row.domain = from.small()?;
    }
    for row in &mut rows {
        row.source = source_of(from.number()?).ok_or(from.error("a block has no source"))?;
    }
    for row in &mut rows {
        if let Some(after) = from.number()?.checked_sub(1) {
            row.promotion = row.birth.saturating_add(after);
        }
    }
    if rates.are_several() {
        for row in &mut rows {
            let rate = from.below(rates.all().len())? as u32;
            row.samples = RatedSamples::new(row.samples.count(), rate);
        }
    }
    let ends = ends(from, &mut rows)?;
    let promotions = promotions(from, rows.len())?;
    let trace_ends = trace_ends(from, rows.len(), ends.len())?;
    Ok(BlockTable { rows, ends, promotions, trace_ends, level, rates })
}

fn ends(from: &mut Reader<'_>, rows: &mut [BlockRow]) -> Result<Vec<BlockEnd>, ArchiveError> {
    let mut births = 0_usize;
    let mut ends = from.list(|from| {
        births += from.below(rows.len() + 1 - births)?;
        Ok(BlockEnd { row: 0, births: births as u32, kind: EndKind::Replaced })
    })?;
    let mut ended = vec![false; rows.len()];
    let mut last = 0;
    for end in &mut ends {
        let coded = from.number()?;
        last = unfold(coded >> 2).wrapping_add(last);
        let row = u32::try_from(last).ok().filter(|&row| row < end.births).filter(|&row| {
            ended.get_mut(row as usize).is_some_and(|ended| !std::mem::replace(ended, true))
        });
        end.row = row.ok_or(from.error("a block ends before it began, or twice"))?;
        end.kind = kind_of(coded & 3).ok_or(from.error("a block ends for no reason"))?;
        rows[end.row as usize].ended = end.kind == EndKind::TraceEnded;
    }
    let mut last = 0;
    for end in &ends {
        last = from.step(last)?;
        rows[end.row as usize].death = last;
    }
    Ok(ends)
}

fn promotions(from: &mut Reader<'_>, rows: usize) -> Result<Vec<Promotion>, ArchiveError> {
    let mut births = 0_usize;
    let mut promotions = from.list(|from| {
        births += from.below(rows + 1 - births)?;
        Ok(Promotion { row: 0, births: births as u32 })
    })?;
    for promotion in &mut promotions {
        let before = from.number()?;
        let row = u64::from(promotion.births).checked_sub(before).filter(|_| before > 0);
        let row = row.and_then(|row| u32::try_from(row).ok());
        promotion.row = row.ok_or(from.error("a block is promoted before it began"))?;
    }
    Ok(promotions)
}

fn trace_ends(
    from: &mut Reader<'_>,
    rows: usize,
    ends: usize,
) -> Result<Vec<TraceEnd>, ArchiveError> {
    let (mut births, mut ended, mut time) = (0_usize, 0_usize, 0);
    from.list(|from| {
        births += from.below(rows + 1 - births)?;
        ended += from.below(ends + 1 - ended)?;
        time = from.step(time)?;
        let ending = match from.below(2)? {
            0 => TraceEnding::Process,
            _ => TraceEnding::Continued,
        };
        Ok(TraceEnd { births: births as u32, ends: ended as u32, time, ending })
    })
}

fn kind_of(number: u64) -> Option<EndKind> {
    let kinds = [EndKind::Replaced, EndKind::Collected, EndKind::TraceEnded];
    kinds.into_iter().find(|&kind| kind as u64 == number)
}
