//! Parts of a series among the traces that are read.
//!
//! The parts of a series that follow each other are read as one trace. Before the first of them
//! the sidecar says what was alive. If a part is missing in between, only those after it are read:
//! what became of blocks in the missing one is not known.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use heaptap_report::figures::units::count;
use heaptap_trace::{
    EventSource, PartSource, ReadError, SeriesHead, SeriesId, SeriesReader, SeriesSummary,
    TraceInfo,
};

use crate::analysis::findings::Findings;
use crate::exit_status::{Failure, Verdict};
use crate::io::series_files::{is_part, series_sidecar};
use crate::text::escape;

/// What makes a trace a part of a series.
pub(super) struct SeriesPart {
    sidecar: PathBuf,
    head: SeriesHead,
    summary: SeriesSummary,
    /// Nothing before it is read.
    is_first: bool,
}

impl SeriesPart {
    /// What the sidecar of a trace says; `None` if it has none of its own.
    pub(super) fn of(
        trace: &Path,
        info: &TraceInfo,
        findings: &mut Findings,
    ) -> Result<Option<SeriesPart>, Failure> {
        if !is_part(trace) {
            return Ok(None);
        }
        let sidecar = series_sidecar(trace);
        let name = escape::path(&sidecar).to_string();
        let failed = |error| Failure::Trouble(format!("{name}: {error}"));
        let file = File::open(&sidecar).map_err(failed)?;
        let mut reader = SeriesReader::new(BufReader::new(file)).map_err(failed)?;
        let summary = SeriesSummary::of(&mut reader).map_err(failed)?;
        let Some(&head) = reader.head() else {
            let line = format!("{name}: not the sidecar of a series; read without it");
            findings.add(vec![line], Verdict::Defective);
            return Ok(None);
        };
        if head.start_time != info.start_time || head.rate != info.sample_rate {
            let line = format!("{name}: the sidecar of another trace; read without it");
            findings.add(vec![line], Verdict::Defective);
            return Ok(None);
        }
        Ok(Some(SeriesPart { sidecar, head, summary, is_first: true }))
    }

    /// Every id of the part in the series is below this, if those of its trace are below `in_part`.
    pub(super) fn ids(&self, in_part: u64) -> u64 {
        self.summary.first_id.saturating_add(in_part).max(self.summary.ids)
    }

    /// Its number in the series, from 0.
    pub(super) fn number(&self) -> u64 {
        self.head.part
    }

    /// The last moment in its sidecar, in microseconds since the epoch.
    pub(super) fn last_time(&self) -> u64 {
        self.summary.last_time
    }

    /// The part with its sidecar.
    pub(super) fn source(
        &self,
        trace: Box<dyn EventSource>,
    ) -> Result<Box<dyn EventSource>, ReadError> {
        let sidecar = SeriesReader::new(BufReader::new(File::open(&self.sidecar)?))?;
        Ok(Box::new(PartSource::new(trace, sidecar, self.summary.first_id, self.is_first)))
    }

    /// The rates of blocks that are in the sidecar and not in the trace, and are read, with their samples.
    /// Those that were in force without a sample are among them: what was allocated then is not in
    /// the estimates, and must be in their errors.
    pub(super) fn samples_by_rate(&self) -> Vec<(f64, u64)> {
        let SeriesSummary { rates, base_samples, stray_samples, .. } = &self.summary;
        let of_base = if self.is_first { &base_samples[..] } else { &[] };
        let samples = |of: &[u64]| -> Vec<(f64, u64)> {
            let pairs = rates.iter().copied().zip(of.iter().copied());
            pairs.filter(|&(_, samples)| samples > 0).collect()
        };
        let without = self.summary.rates_without_samples(self.head.rate).map(|rate| (rate, 0));
        [samples(of_base), samples(stray_samples), without.collect()].concat()
    }

    /// What is not known because of what the sidecar lacks.
    fn finding(&self) -> Option<(String, Verdict)> {
        let name = escape::path(&self.sidecar).to_string();
        if let Some((offset, defect)) = self.summary.defect {
            let line = format!(
                "{name}: byte {offset}: {defect}; what became from then on of blocks of earlier \
                 parts is not known"
            );
            return Some((line, Verdict::Sound));
        }
        match self.summary.base {
            _ if !self.is_first || self.head.part == 0 => None,
            Some(0) => None,
            Some(blocks) => Some((
                format!(
                    "{name}: the parts of the series before it are not read; {} that were alive \
                     when it begins count as alive, and not as allocated",
                    count(blocks, "sampled block", "sampled blocks")
                ),
                Verdict::Sound,
            )),
            None => Some((
                format!(
                    "{name}: the parts of the series before it are not read, and what was alive \
                     when it begins is not in it: live sizes lack that"
                ),
                Verdict::Sound,
            )),
        }
    }
}

/// A trace that may be a part of a series.
pub(super) trait InSeries {
    fn part(&self) -> Option<&SeriesPart>;

    /// What messages call it.
    fn name(&self) -> &str;

    /// It follows the one before it, or is the first of its row.
    fn follow(&mut self, follows: bool) -> Option<&mut SeriesPart>;
}

/// Puts the parts of each series behind each other, in place of the first of them. Parts before one
/// that is missing are left out.
pub(super) fn in_series<S: InSeries>(surveys: Vec<S>, findings: &mut Findings) -> Vec<S> {
    let mut all: BTreeMap<SeriesId, Vec<S>> = BTreeMap::new();
    let mut ordered: Vec<Result<S, SeriesId>> = Vec::new();
    for survey in surveys {
        match survey.part().map(|part| part.head.series) {
            None => ordered.push(Ok(survey)),
            Some(series) => {
                let parts = all.entry(series).or_default();
                if parts.is_empty() {
                    ordered.push(Err(series));
                }
                parts.push(survey);
            }
        }
    }
    let mut found = Vec::new();
    for survey in ordered {
        match survey {
            Ok(survey) => found.push(survey),
            Err(series) => {
                found.extend(following(all.remove(&series).unwrap_or_default(), findings));
            }
        }
    }
    found
}

/// The last parts of a series that follow each other.
fn following<S: InSeries>(mut parts: Vec<S>, findings: &mut Findings) -> Vec<S> {
    let number = |survey: &S| survey.part().map_or(0, |part| part.head.part);
    parts.sort_by_key(number);
    let follows = |pair: &[S]| {
        let is_whole = pair[0].part().is_some_and(|part| part.summary.defect.is_none());
        number(&pair[0]) + 1 == number(&pair[1]) && is_whole
    };
    let first = parts.windows(2).rposition(|pair| !follows(pair)).map_or(0, |at| at + 1);
    let left_out: Vec<S> = parts.drain(..first).collect();
    if let (Some(one), Some(next)) = (left_out.last(), parts.first()) {
        let line = format!(
            "{}: {} left out: the series goes on in a part that is missing, or of which the \
             sidecar is damaged; it is read from {} on",
            one.name(),
            count(left_out.len() as u64, "part", "parts"),
            next.name(),
        );
        findings.add(vec![line], Verdict::LeftOut);
    }
    for (at, survey) in parts.iter_mut().enumerate() {
        if let Some(part) = survey.follow(at > 0) {
            part.is_first = at == 0;
            if let Some((line, verdict)) = part.finding() {
                findings.add(vec![line], verdict);
            }
        }
    }
    parts
}
