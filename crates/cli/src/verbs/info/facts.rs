//! The facts about a trace.

use std::collections::BTreeSet;

use heaptap_report::Scale;
use heaptap_report::figures::Size;
use heaptap_report::rows::kind_name;
use heaptap_trace::{EventKind, LocationTable, Losses, TraceReader, TraceTotals, kind_of};
use serde::Serialize;

use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::lifecycle::Lives;

/// Everything that is shown. The field names are those of the JSON.
#[derive(Serialize)]
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) version: u16,
    pub(super) sample_rate: f64,
    pub(super) word_bits: u8,
    pub(super) executable: String,
    pub(super) host: String,
    pub(super) runtime_params: String,
    pub(super) context: String,
    pub(super) pid: u64,
    pub(super) start_unix_us: u64,
    pub(super) end_unix_us: u64,
    pub(super) duration_us: u64,
    pub(super) domains: Vec<u16>,
    pub(super) events: Counts,
    pub(super) codes: usize,
    pub(super) names: usize,
    /// The names of the kinds of blocks, if the runtime has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) kinds: Vec<String>,
    pub(super) depth: Depth,
    /// `None` if the trace was cut short before the first sample.
    pub(super) words: Option<Estimate>,
    pub(super) parts: Vec<Part>,
    losses: Missing,
}

#[derive(Serialize)]
pub(super) struct Counts {
    pub(super) allocations: u64,
    pub(super) promotions: u64,
    pub(super) collections: u64,
    pub(super) locations: u64,
    pub(super) packets: u64,
    pub(super) samples: u64,
}

#[derive(Serialize)]
pub(super) struct Depth {
    pub(super) mean: f64,
    pub(super) max: usize,
}

/// The words that the program allocated in all, estimated from the samples.
#[derive(Serialize)]
pub(super) struct Estimate {
    pub(super) words: f64,
    pub(super) bytes: f64,
    /// One standard deviation, as a share of the estimate; `None` if there is no sample.
    pub(super) relative_error: Option<f64>,
    /// The upper end of the 95 % interval: all that is known if there is no sample.
    pub(super) high_words: f64,
}

/// Where bytes of the file go.
#[derive(Serialize)]
pub(super) struct Part {
    pub(super) part: &'static str,
    pub(super) bytes: u64,
    pub(super) share: f64,
    pub(super) bytes_per_allocation: f64,
}

#[derive(Serialize)]
struct Missing {
    defects: u64,
    first_defect: Option<String>,
    truncated: bool,
    cut_short: bool,
    packets: u64,
    bytes: u64,
    allocations: u64,
    partial_backtraces: u64,
    foreign_packets: u64,
}

/// Sums over all events.
#[derive(Default)]
struct Sums {
    samples: u64,
    frames: u64,
    deepest: usize,
    last_time: u64,
}

impl Sums {
    fn gather(
        input: &Input,
        reader: &mut dyn TraceReader,
        lives: &mut Lives,
    ) -> Result<Sums, Failure> {
        let mut sums = Sums { last_time: reader.info().start_time, ..Sums::default() };
        input.each_event(reader, |event, _| {
            lives.event(event);
            sums.last_time = sums.last_time.max(event.time);
            if let EventKind::Alloc(allocation) = event.kind {
                let depth = allocation.backtrace.frames.len();
                sums.samples = sums.samples.saturating_add(allocation.samples);
                sums.frames += depth as u64;
                sums.deepest = sums.deepest.max(depth);
            }
            Ok(())
        })?;
        Ok(sums)
    }
}

impl Facts {
    /// Reads the trace to its end. `sidecar_end` finds the last moment in the sidecar of a trace that
    /// began at this time; both in microseconds since the epoch.
    pub(super) fn gather(
        input: &Input,
        reader: &mut dyn TraceReader,
        lives: &mut Lives,
        sidecar_end: impl FnOnce(u64) -> Option<u64>,
    ) -> Result<Facts, Failure> {
        let sums = Sums::gather(input, reader, lives)?;
        let info = reader.info();
        // Time goes by without events, too.
        let covered = info.start_time.saturating_add(reader.covered());
        let end = [sums.last_time, covered]
            .into_iter()
            .chain(sidecar_end(info.start_time))
            .fold(0, u64::max);
        let totals = reader.totals();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Facts {
            name: input.name().to_string(),
            bytes: reader.offset(),
            version: reader.format().version(),
            sample_rate: info.sample_rate,
            word_bits: info.word_size,
            executable: text(&info.executable),
            host: text(&info.host),
            runtime_params: text(&info.runtime_params),
            context: text(&info.context),
            pid: info.pid,
            start_unix_us: info.start_time,
            end_unix_us: end,
            duration_us: end - info.start_time,
            domains: reader.domains(),
            events: Counts::of(totals, sums.samples),
            codes: reader.locations().len(),
            names: reader.locations().name_count(),
            kinds: kinds(reader.locations()),
            depth: Depth { mean: per(sums.frames as f64, totals.allocations), max: sums.deepest },
            words: (sums.samples != 0 || reader.losses().cut_short.is_none())
                .then(|| Estimate::of(sums.samples, info.sample_rate, info.word_size)),
            parts: parts(totals),
            losses: Missing::of(reader.losses()),
        })
    }
}

/// The names of the kinds in a trace, by their numbers.
fn kinds(locations: &LocationTable) -> Vec<String> {
    let numbers: BTreeSet<u8> = locations.codes().filter_map(kind_of).collect();
    numbers.into_iter().map(|kind| kind_name(kind, locations)).collect()
}

impl Counts {
    fn of(totals: &TraceTotals, samples: u64) -> Counts {
        let &TraceTotals { allocations, promotions, collections, locations, packets, .. } = totals;
        Counts { allocations, promotions, collections, locations, packets, samples }
    }
}

impl Estimate {
    /// The number of samples is binomial: each word is one with probability `rate`.
    fn of(samples: u64, rate: f64, word_bits: u8) -> Estimate {
        let size = Size::from(Scale::new(rate, 1.0).bytes(samples));
        Estimate {
            words: size.bytes,
            bytes: size.bytes * f64::from(word_bits / 8),
            relative_error: size.relative(),
            high_words: size.high,
        }
    }
}

impl Missing {
    fn of(losses: &Losses) -> Missing {
        Missing {
            defects: losses.defect_count,
            first_defect: losses.defects.first().map(ToString::to_string),
            truncated: losses.truncated.is_some(),
            cut_short: losses.cut_short.is_some(),
            packets: losses.packets,
            bytes: losses.bytes,
            allocations: losses.allocations,
            partial_backtraces: losses.partial_backtraces,
            foreign_packets: losses.foreign_packets,
        }
    }
}

fn parts(totals: &TraceTotals) -> Vec<Part> {
    let sizes = [
        ("headers", totals.header_bytes),
        ("trace info", totals.info_bytes),
        ("locations", totals.location_bytes),
        ("allocations", totals.allocation_bytes),
        ("backtraces", totals.backtrace_bytes),
        ("promotions", totals.promotion_bytes),
        ("collections", totals.collection_bytes),
    ];
    let all: u64 = sizes.iter().map(|(_, bytes)| bytes).sum();
    let part = |(part, bytes)| Part {
        part,
        bytes,
        share: per(bytes as f64, all),
        bytes_per_allocation: per(bytes as f64, totals.allocations),
    };
    sizes.into_iter().chain([("all", all)]).map(part).collect()
}

fn per(sum: f64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}
