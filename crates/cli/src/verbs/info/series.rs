//! The facts about several traces that are read as one: the parts of a series.

use std::fs;
use std::path::{Path, PathBuf};

use heaptap_report::Scale;
use heaptap_report::figures::Size;
use heaptap_trace::{Event, EventKind};
use serde::Serialize;

use crate::analysis::several::{Findings, SurveyedFile, TraceSet};
use crate::exit_status::Failure;
use crate::io::series_files::series_sidecar;
use crate::io::sidecar::sidecar_end;
use crate::io::sidecar_path::sidecar_path;
use crate::io::trace_files::{InputFile, shown};

/// Everything that is shown. The field names are those of the JSON.
#[derive(Serialize)]
pub(super) struct SeriesFacts {
    pub(super) name: String,
    /// Always `traces`.
    pub(super) kind: &'static str,
    /// Of all files, with their sidecars.
    pub(super) bytes: u64,
    pub(super) sidecar_bytes: u64,
    pub(super) word_bits: u8,
    pub(super) executable: String,
    pub(super) host: String,
    pub(super) pid: u64,
    pub(super) start_unix_us: u64,
    pub(super) end_unix_us: u64,
    pub(super) duration_us: u64,
    pub(super) events: Counts,
    pub(super) words: f64,
    pub(super) allocated_bytes: f64,
    /// One standard deviation, as a share of the estimate; `None` if there is no sample.
    pub(super) relative_error: Option<f64>,
    /// The lowest first.
    pub(super) rates: Vec<OfRate>,
    /// When files were sampled at which rate, in the order of time.
    pub(super) stretches: Vec<Stretch>,
    pub(super) files: Vec<FileFacts>,
}

#[derive(Default, Serialize)]
pub(super) struct Counts {
    /// Blocks that were alive when the first file began.
    pub(super) alive_before: u64,
    pub(super) allocations: u64,
    pub(super) promotions: u64,
    pub(super) collections: u64,
    pub(super) samples: u64,
}

/// What was sampled at a rate.
#[derive(Serialize)]
pub(super) struct OfRate {
    pub(super) sample_rate: f64,
    pub(super) samples: u64,
    pub(super) words: f64,
}

/// Files that follow each other and have one rate.
#[derive(Serialize)]
pub(super) struct Stretch {
    pub(super) sample_rate: f64,
    pub(super) start_unix_us: u64,
    pub(super) end_unix_us: u64,
    pub(super) files: u64,
}

#[derive(Serialize)]
pub(super) struct FileFacts {
    pub(super) name: String,
    /// Its number in its series, from 1; `None` if it is in none.
    pub(super) part: Option<u64>,
    pub(super) sample_rate: f64,
    pub(super) start_unix_us: u64,
    pub(super) end_unix_us: u64,
    pub(super) bytes: u64,
    pub(super) sidecar_bytes: u64,
}

/// What is counted of the events.
struct Gathered {
    /// When the first file began.
    start: u64,
    events: Counts,
    /// By the number of the rate.
    samples: Vec<u64>,
    last_time: u64,
}

impl Gathered {
    fn event(&mut self, event: &Event<'_>, rate: u32) {
        self.last_time = self.last_time.max(event.time);
        let is_before = event.time < self.start;
        match event.kind {
            EventKind::Alloc(_) if is_before => self.events.alive_before += 1,
            EventKind::Alloc(allocation) => {
                self.events.allocations += 1;
                let rate = rate as usize;
                self.samples.resize(self.samples.len().max(rate + 1), 0);
                self.samples[rate] = self.samples[rate].saturating_add(allocation.samples);
            }
            EventKind::Promote(_) => self.events.promotions += u64::from(!is_before),
            EventKind::Collect(_) => self.events.collections += 1,
            // A kind that has no count.
            _ => {}
        }
    }
}

impl SeriesFacts {
    /// Reads all traces of a directory.
    pub(super) fn gather(
        directory: &Path,
        files: &[InputFile],
    ) -> Result<(SeriesFacts, Findings), Failure> {
        let traces = TraceSet::survey(files)?;
        let info = traces.info().clone();
        let mut all = traces.files();
        all.sort_by_key(|file| file.start);
        let mut gathered = Gathered {
            start: all.iter().map(|file| file.start).min().unwrap_or(info.start_time),
            events: Counts::default(),
            samples: Vec::new(),
            last_time: 0,
        };
        traces.merge(&mut gathered, |it, event, _, rate| it.event(event, rate), |_, _, _| {})?;
        let Gathered { start, mut events, samples, last_time } = gathered;
        events.samples = samples.iter().fold(0, |sum, &count| sum.saturating_add(count));
        let files: Vec<FileFacts> = all.iter().map(FileFacts::of).collect();
        let end = files.iter().map(|file| file.end_unix_us).fold(last_time, u64::max);
        let rates = of_rates(traces.rates().all(), info.sample_rate, &samples);
        let allocated = Allocated::of(&rates, info.sample_rate);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let facts = SeriesFacts {
            name: shown(directory),
            kind: "traces",
            bytes: files.iter().map(|file| file.bytes + file.sidecar_bytes).sum(),
            sidecar_bytes: files.iter().map(|file| file.sidecar_bytes).sum(),
            word_bits: info.word_size,
            executable: text(&info.executable),
            host: text(&info.host),
            pid: info.pid,
            start_unix_us: start,
            end_unix_us: end,
            duration_us: end.saturating_sub(start),
            events,
            words: allocated.words,
            allocated_bytes: allocated.words * f64::from(info.word_size / 8),
            relative_error: allocated.relative_error,
            rates,
            stretches: stretches(&files),
            files,
        };
        Ok((facts, traces.into_findings()))
    }
}

impl FileFacts {
    fn of(file: &SurveyedFile) -> FileFacts {
        let length = |path: PathBuf| fs::metadata(path).map_or(0, |metadata| metadata.len());
        let covered = sidecar_end(&file.path, file.start).unwrap_or(0);
        FileFacts {
            name: shown(&file.path),
            part: file.part.map(|part| part + 1),
            sample_rate: file.rate,
            start_unix_us: file.start,
            end_unix_us: file.end.max(covered),
            bytes: length(file.path.clone()),
            sidecar_bytes: length(sidecar_path(&file.path)) + length(series_sidecar(&file.path)),
        }
    }
}

/// `rates`: those of the traces, of which a single one may not be listed.
fn of_rates(rates: &[f64], only: f64, samples: &[u64]) -> Vec<OfRate> {
    let rates = if rates.is_empty() { &[only][..] } else { rates };
    let of = |(number, &sample_rate): (usize, &f64)| {
        let samples = samples.get(number).copied().unwrap_or(0);
        OfRate { sample_rate, samples, words: samples as f64 / sample_rate }
    };
    rates.iter().enumerate().map(of).collect()
}

/// What was allocated in all.
struct Allocated {
    words: f64,
    relative_error: Option<f64>,
}

impl Allocated {
    /// Each rate by itself is binomial; errors of several add up as their squares do.
    fn of(rates: &[OfRate], lowest: f64) -> Allocated {
        if let [one] = rates {
            let size = Size::from(Scale::new(lowest, 1.0).bytes(one.samples));
            return Allocated { words: size.bytes, relative_error: size.relative() };
        }
        let words: f64 = rates.iter().map(|rate| rate.words).sum();
        let variance: f64 =
            rates.iter().map(|it| it.words * (1.0 - it.sample_rate) / it.sample_rate).sum();
        Allocated { words, relative_error: (words > 0.0).then(|| variance.sqrt() / words) }
    }
}

fn stretches(files: &[FileFacts]) -> Vec<Stretch> {
    let one_rate = files.chunk_by(|one, next| one.sample_rate == next.sample_rate);
    let stretch = |files: &[FileFacts]| Stretch {
        sample_rate: files[0].sample_rate,
        start_unix_us: files[0].start_unix_us,
        end_unix_us: files.iter().map(|file| file.end_unix_us).max().unwrap_or(0),
        files: files.len() as u64,
    };
    one_rate.map(stretch).collect()
}
