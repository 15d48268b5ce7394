//! Writes an archive.

use heaptap_codec::varint::fold;
use heaptap_trace::{LocationTable, Source};

use super::bytes::Writer;
use super::tree::{self, PathOrder};
use super::{ArchiveParts, MAGIC, VERSION};
use crate::aggregate::Aggregate;
use crate::blocks::{BlockEnd, BlockRow, BlockTable, NEVER, TraceEnd};
use crate::counts::{Counts, Tallies};
use crate::estimate::{Sampled, Units};
use crate::frames::Frames;
use crate::rates::Rates;
use crate::trace_ending::TraceEnding;

impl ArchiveParts<'_> {
    /// The bytes of the archive, not compressed.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer(MAGIC.to_vec());
        out.number(VERSION);
        out.bytes(self.name.as_bytes());
        self.write_info(&mut out);
        out.bytes(self.cut_short.unwrap_or_default().as_bytes());
        out.bytes(self.incomplete.unwrap_or_default().as_bytes());
        out.list(self.notices, |out, notice| out.bytes(notice.as_bytes()));
        locations(&mut out, &self.aggregate.frames, self.locations);
        figures(&mut out, self.aggregate);
        let order = tree::write(&mut out, &self.aggregate.paths);
        counts(&mut out, self.aggregate, &order.paths);
        blocks(&mut out, self.blocks, &order);
        out.list(self.answers, |out, (query, result)| {
            out.bytes(query.as_bytes());
            out.bytes(result.as_bytes());
        });
        out.0
    }

    fn write_info(&self, out: &mut Writer) {
        let info = self.info;
        out.float(info.sample_rate);
        out.number(u64::from(info.word_size));
        for text in [&info.executable, &info.host, &info.runtime_params, &info.context] {
            out.bytes(text);
        }
        out.number(info.pid);
        out.number(info.start_time);
        out.number(u64::from(info.domain));
    }
}

/// The codes of the frames, and their locations with each name written once.
fn locations(out: &mut Writer, frames: &Frames, table: &LocationTable) {
    out.number(table.name_count() as u64);
    for name in table.names() {
        out.bytes(name);
    }
    let mut last = 0;
    out.list(frames.codes(), |out, &code| {
        out.step(last, code);
        last = code;
        out.list(table.get(code).unwrap_or(&[]), |out, location| {
            out.number(location.file.index() as u64);
            out.number(location.definition.index() as u64);
            out.number(u64::from(location.line));
            out.number(u64::from(location.start_char));
            out.number(u64::from(location.end_char));
        });
    });
}

fn figures(out: &mut Writer, aggregate: &Aggregate) {
    let Aggregate { events, end, allocated, young, external, promoted, .. } = aggregate;
    let Aggregate { live_young, live_external, .. } = aggregate;
    rates(out, &aggregate.rates);
    for number in [events, end, &aggregate.samples] {
        out.number(*number);
    }
    for sum in [allocated, young, external, promoted, live_young, live_external] {
        sampled(out, *sum);
    }
    out.number(u64::from(aggregate.level));
    out.float(aggregate.cluster);
    out.list(aggregate.peak.state(), Writer::number);
    let timeline = &aggregate.timeline;
    out.number(timeline.width());
    out.list(timeline.buckets(), |out, bucket| {
        out.number(bucket.allocated);
        out.number(bucket.most_live);
        sampled(out, bucket.live);
    });
    let lifetimes = &aggregate.lifetimes;
    sampled(out, lifetimes.survivors());
    out.list(lifetimes.classes(), |out, &samples| out.number(samples));
    out.list(lifetimes.variances(), |out, &variance| out.number(variance));
}

/// The rates, if they are several, and the units of counts.
fn rates(out: &mut Writer, rates: &Rates) {
    out.list(rates.all(), |out, &rate| out.float(rate));
    if let Some(Units { words, squares, whole_spread }) = rates.units() {
        out.float(words);
        out.float(squares);
        out.float(whole_spread);
    }
}

fn sampled(out: &mut Writer, sampled: Sampled) {
    out.number(sampled.count);
    out.number(sampled.variance);
}

/// The counts of paths, in this order, then classes with theirs.
fn counts(out: &mut Writer, aggregate: &Aggregate, paths: &[u32]) {
    let Tallies { counts, variances, .. } = &aggregate.counts;
    for column in COLUMNS {
        for &path in paths {
            out.number(column(&counts[path as usize]));
        }
    }
    if aggregate.counts.are_mixed() {
        for column in COLUMNS {
            for &path in paths {
                out.number(column(&variances[path as usize]));
            }
        }
    }
    out.number(u64::from(aggregate.classes.is_kept()));
    if !aggregate.classes.is_kept() {
        return;
    }
    out.number(aggregate.classes.iter().count() as u64);
    for (domain, source, tally) in aggregate.classes.iter() {
        out.number(u64::from(domain));
        out.number(source as u64);
        COLUMNS.iter().for_each(|column| out.number(column(&tally.counts)));
        if aggregate.counts.are_mixed() {
            COLUMNS.iter().for_each(|column| out.number(column(&tally.variances)));
        }
    }
}

/// What is written of counts.
const COLUMNS: [fn(&Counts) -> u64; 7] = [
    |counts| counts.allocated,
    |counts| counts.promoted,
    live,
    |counts| counts.survived,
    // Mostly what is live or nothing.
    |counts| fold(counts.peak.wrapping_sub(live(counts))),
    |counts| counts.died,
    |counts| counts.carried,
];

/// Alive at the end of their trace.
fn live(counts: &Counts) -> u64 {
    counts.live.saturating_add(counts.ended)
}

fn blocks(out: &mut Writer, table: &BlockTable, order: &PathOrder) {
    out.number(u64::from(table.level));
    out.number(table.rows.len() as u64);
    let mut steps = |column: fn(&BlockRow) -> u64| {
        let mut last = 0;
        for row in &table.rows {
            out.step(last, column(row));
            last = column(row);
        }
    };
    // The rows of a table that was thinned go by their numbers.
    if table.level == 0 {
        steps(|row| row.id);
    }
    steps(|row| row.birth);
    let mut last = 0;
    for row in &table.rows {
        let path = u64::from(order.numbers[row.path as usize]);
        out.step(last, path);
        last = path;
    }
    let columns: [fn(&BlockRow) -> u64; 5] = [
        |row| row.length,
        |row| row.samples.count(),
        |row| u64::from(row.domain),
        |row| row.source as u64,
        // 0 for never.
        |row| {
            if row.promotion == NEVER {
                0
            } else {
                row.promotion.saturating_sub(row.birth).saturating_add(1)
            }
        },
    ];
    for column in columns {
        for row in &table.rows {
            out.number(column(row));
        }
    }
    if table.rates.are_several() {
        table.rows.iter().for_each(|row| out.number(u64::from(row.samples.rate())));
    }
    ends(out, table);
    births(out, table.promotions.iter().map(|promotion| promotion.births));
    for promotion in &table.promotions {
        out.number(u64::from(promotion.births - promotion.row));
    }
    let mut last = TraceEnd { births: 0, ends: 0, time: 0, ending: TraceEnding::Process };
    out.list(&table.trace_ends, |out, &end| {
        out.number(u64::from(end.births - last.births));
        out.number(u64::from(end.ends - last.ends));
        out.step(last.time, end.time);
        out.number(u64::from(end.ending == TraceEnding::Continued));
        last = end;
    });
}

/// What ends at one time, between the same births, has no order: the rows are sorted.
fn ends(out: &mut Writer, table: &BlockTable) {
    let death = |end: &BlockEnd| table.rows[end.row as usize].death;
    let mut ends = table.ends.clone();
    let mut rest = &mut ends[..];
    let mut passed = 0;
    for at in table.trace_ends.iter().map(|end| end.ends as usize).chain([table.ends.len()]) {
        let (of_trace, later) = rest.split_at_mut(at - passed);
        let together = |one: &BlockEnd, other: &BlockEnd| {
            one.births == other.births && death(one) == death(other)
        };
        of_trace.chunk_by_mut(together).for_each(|batch| batch.sort_unstable_by_key(|end| end.row));
        (rest, passed) = (later, at);
    }
    births(out, ends.iter().map(|end| end.births));
    let mut last = 0;
    for end in &ends {
        out.number(fold(u64::from(end.row).wrapping_sub(last)) << 2 | end.kind as u64);
        last = u64::from(end.row);
    }
    let mut last = 0;
    for end in &ends {
        out.step(last, death(end));
        last = death(end);
    }
}

/// How many blocks had begun before each of these, which grows.
fn births(out: &mut Writer, births: impl ExactSizeIterator<Item = u32>) {
    let mut last = 0;
    out.list(births, |out, births| {
        out.number(u64::from(births - last));
        last = births;
    });
}

/// The number of a source in an archive.
pub(super) fn source_of(number: u64) -> Option<Source> {
    [Source::Minor, Source::Major, Source::External].into_iter().find(|&s| s as u64 == number)
}
