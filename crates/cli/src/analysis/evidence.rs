//! The evidence for a diagnosis, from files: traces with their sidecars, snapshots, and the joins of both.
//!
//! Memory is that of one snapshot at a time: what is kept of each are its figures.

use std::path::{Path, PathBuf};

use heaptap_heap::MetaKey;
use heaptap_report::diagnosis::{
    Evidence, Keepers, MemoryLimit, SnapshotEvidence, Timeline, TraceEvidence, TraceSite,
    TraceVerdict, allocated_bytes,
};
use heaptap_report::figures::heap::titles::Titles;
use heaptap_report::figures::{JudgedFigures, LeakReport, Size, leak_report};
use heaptap_report::rows::Site;
use heaptap_report::{Depth, Options, OverTime, SiteFrame, Verdict as SiteVerdict};

use crate::analysis::aggregate::AggregatedTrace;
use crate::analysis::cycles::truths;
use crate::analysis::heap::holder_sites::{HeldBlocks, HolderSites};
use crate::analysis::heap::load::load_with_types;
use crate::analysis::ocaml_types::TypeOptions;
use crate::exit_status::Failure;
use crate::io::sidecar::read_sidecar;
use crate::io::sidecar_path::sidecar_path;
use crate::io::trace_files::{expand, is_sidecar_file, is_snapshot, shown};

/// Files of one run, by what they are.
#[derive(Default)]
pub(crate) struct EvidenceFiles {
    pub(crate) traces: Vec<PathBuf>,
    pub(crate) snapshots: Vec<PathBuf>,
}

impl EvidenceFiles {
    /// What the arguments stand for: traces with the snapshots beside them, which have their name before a dot, and
    /// snapshots.
    pub(crate) fn of(arguments: &[PathBuf]) -> Result<EvidenceFiles, Failure> {
        let mut files = EvidenceFiles::default();
        for argument in arguments {
            if argument.is_dir() {
                let snapshots = snapshots_in(argument, |_| true);
                match expand(std::slice::from_ref(argument)) {
                    Ok(traces) => files.traces.extend(traces.into_iter().map(|file| file.path)),
                    Err(failure) if snapshots.is_empty() => return Err(failure),
                    Err(_) => {}
                }
                files.snapshots.extend(snapshots);
            } else if is_snapshot(argument) {
                files.snapshots.push(argument.clone());
            } else if is_sidecar_file(argument).unwrap_or(false) {
                files.traces.push(argument.with_extension(""));
            } else {
                files.traces.push(argument.clone());
            }
        }
        if let ([trace], true) = (&files.traces[..], files.snapshots.is_empty()) {
            files.snapshots = beside(trace);
        }
        files.snapshots.sort();
        files.snapshots.dedup();
        Ok(files)
    }
}

/// The snapshots beside a trace that are called as it is, with more behind its name.
fn beside(trace: &Path) -> Vec<PathBuf> {
    let Some(stem) = trace.file_name().map(|name| name.to_string_lossy().into_owned()) else {
        return Vec::new();
    };
    let short = stem.strip_suffix(".ctf").unwrap_or(&stem).to_owned();
    let directory = match trace.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let is_its =
        |name: &str| name.strip_prefix(&short).is_some_and(|rest| rest.starts_with(['.', '-']));
    snapshots_in(directory, is_its)
}

fn snapshots_in(directory: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    /// A directory may have very many.
    const MOST: usize = 64;
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.filter(|entry| is_wanted(&entry.file_name().to_string_lossy()));
    let mut found: Vec<PathBuf> =
        paths.map(|entry| entry.path()).filter(|path| is_snapshot(path)).collect();
    found.sort();
    found.truncate(MOST);
    found
        .into_iter()
        .map(|path| path.strip_prefix(".").map(Path::to_owned).unwrap_or(path))
        .collect()
}

/// All evidence in files. What cannot be read is a remark; a failure if nothing can.
pub(crate) fn gather(files: &EvidenceFiles, types: &TypeOptions) -> Result<Evidence, Failure> {
    let (mut evidence, mut held) = (Evidence::default(), HeldSeries::default());
    let mut failures = Vec::new();
    for snapshot in &files.snapshots {
        match ReadSnapshot::of(snapshot, types) {
            Ok(read) => read.add_to(&mut evidence, &mut held),
            Err(failure) => failures.push(failure),
        }
    }
    if !files.traces.is_empty()
        && let Err(failure) = add_traces(&mut evidence, &files.traces)
    {
        failures.push(failure);
    }
    if evidence.snapshots.is_empty()
        && evidence.trace.is_none()
        && let Some(first) = failures.pop()
    {
        return Err(first);
    }
    remark(&mut evidence, &failures);
    keep_one_process(&mut evidence);
    add_joins(&mut evidence, &held, files.traces.first().map(PathBuf::as_path));
    Ok(evidence)
}

fn remark(evidence: &mut Evidence, failures: &[Failure]) {
    evidence
        .remarks
        .extend(failures.iter().filter_map(|failure| failure.message().map(str::to_owned)));
}

/// What was read of a snapshot.
pub(crate) struct ReadSnapshot {
    snapshot: SnapshotEvidence,
    held: HeldBlocks,
    program: String,
    /// Where its types are from.
    types: Option<String>,
}

impl ReadSnapshot {
    pub(crate) fn of(file: &Path, types: &TypeOptions) -> Result<ReadSnapshot, Failure> {
        let (analysis, named) = load_with_types(file, types)?;
        let (titles, keepers) = (Titles::new(&analysis), Keepers::new(&analysis));
        let program = analysis.graph.facts().meta(MetaKey::PROGRAM).unwrap_or_default();
        Ok(ReadSnapshot {
            snapshot: SnapshotEvidence::of(&shown(file), &analysis, &titles, &keepers),
            held: HeldBlocks::of(file, &analysis, &titles, &keepers),
            program: String::from_utf8_lossy(program).into_owned(),
            types: named.line().map(|line| format!("types {line}")),
        })
    }

    pub(crate) fn add_to(self, evidence: &mut Evidence, series: &mut HeldSeries) {
        let ReadSnapshot { snapshot, held, program, types } = self;
        series.push(&snapshot, held);
        evidence.pid = evidence.pid.or(snapshot.pid);
        if evidence.program.is_empty() {
            evidence.program = program;
        }
        let new = types.filter(|types| !evidence.remarks.contains(types));
        evidence.remarks.extend(new);
        evidence.snapshots.push(snapshot);
        evidence.snapshots.sort_by_key(|snapshot| snapshot.taken_us);
    }
}

/// Adds what traces and their sidecars say.
pub(crate) fn add_traces(evidence: &mut Evidence, traces: &[PathBuf]) -> Result<(), Failure> {
    if let Some(first) = traces.first() {
        add_sidecar(evidence, first);
    }
    let options = Options {
        depth: Depth::Whole,
        over_time: OverTime::LiveSize,
        truths: truths(traces)?,
        ..Options::default()
    };
    let read = AggregatedTrace::read(traces, options)?;
    let report = leak_report(&read.figures(false), SiteFrame::Own);
    if read.parts().len() > 1 {
        evidence.remarks.push("several traces are taken for one: name those of one run".to_owned());
    }
    let info = read.info();
    evidence.pid = evidence.pid.or(Some(info.pid));
    if evidence.program.is_empty() {
        evidence.program = String::from_utf8_lossy(&info.executable).into_owned();
    }
    evidence.trace = Some(trace_evidence(&report, info.start_time, info.sample_rate));
    Ok(())
}

fn trace_evidence(report: &LeakReport, began_us: u64, rate: f64) -> TraceEvidence {
    let leaks = report.leaks.iter().map(|row| {
        let alone = if row.slowing { TraceVerdict::Slowing } else { TraceVerdict::KeepsGrowing };
        site(&row.site, row.live, row.growth_per_second, row.judged.as_ref(), alone)
    });
    let seconds = report.duration_us.saturating_sub(report.suspects.since_us) as f64 / 1e6;
    let suspects = report.suspects.rows.iter().map(|row| {
        let each_second = |bytes: f64| bytes / seconds.max(1e-6);
        let growth = Size {
            bytes: each_second(row.growth.bytes),
            error: row.growth.error.map(each_second),
            ..row.growth
        };
        site(&row.site, row.live, growth, row.judged.as_ref(), TraceVerdict::Undecided)
    });
    TraceEvidence {
        file: report.trace.clone(),
        began_us,
        duration_us: report.duration_us,
        rate,
        verdict: report.verdict.clone(),
        is_conclusive: report.conclusive,
        rows: leaks.chain(suspects).collect(),
    }
}

/// `alone`: the verdict if the collector's cycles are not known.
fn site(
    site: &Site,
    live: Size,
    growth: Size,
    judged: Option<&JudgedFigures>,
    alone: TraceVerdict,
) -> TraceSite {
    let growth = judged.map_or(growth, |judged| judged.growth_per_second);
    TraceSite {
        site: site.clone(),
        verdict: match judged.map(JudgedFigures::kind) {
            None => alone,
            Some(SiteVerdict::KeepsGrowing) => TraceVerdict::KeepsGrowing,
            Some(SiteVerdict::WasGrowing) => TraceVerdict::WasGrowing,
            Some(SiteVerdict::Slowing) => TraceVerdict::Slowing,
            Some(_) => TraceVerdict::NotGrowing,
        },
        live_bytes: live.bytes,
        growth_bytes_per_second: growth.bytes,
        growth_error: growth.error,
    }
}

/// Adds the time line, if there is a sidecar.
pub(crate) fn add_sidecar(evidence: &mut Evidence, trace: &Path) {
    if !sidecar_path(trace).is_file() {
        return;
    }
    let history = match read_sidecar(trace) {
        Ok((_, read)) => read.history,
        Err(failure) => return remark(evidence, &[failure]),
    };
    evidence.timeline = Timeline::of(&history);
    for snapshot in &mut evidence.snapshots {
        snapshot.allocated_bytes =
            allocated_bytes(&history, snapshot.taken_us.saturating_mul(1000));
    }
    if let Some(limit) = history.system.last().and_then(|system| system.cgroup_limit)
        && evidence.limit.as_ref().is_none_or(|known| limit < known.bytes)
    {
        evidence.limit = Some(MemoryLimit { bytes: limit, whose: "control group" });
    }
}

/// What a join with the trace needs of the snapshots: the first and the last of each process.
#[derive(Default)]
pub(crate) struct HeldSeries(Vec<(Option<u64>, u64, HeldBlocks)>);

impl HeldSeries {
    fn push(&mut self, snapshot: &SnapshotEvidence, held: HeldBlocks) {
        self.0.push((snapshot.pid, snapshot.taken_us, held));
        self.0.sort_by_key(|(pid, taken, _)| (*pid, *taken));
        let between = |window: &[(Option<u64>, u64, HeldBlocks)]| matches!(window, [(before, ..), (own, ..), (after, ..)] if before == own && own == after);
        if let Some(at) = self.0.windows(3).position(between) {
            self.0.remove(at + 1);
        }
    }

    fn get(&self, snapshot: &SnapshotEvidence) -> Option<&HeldBlocks> {
        let mut held = self.0.iter().map(|(.., held)| held);
        held.find(|held| shown(held.file()) == snapshot.file)
    }
}

/// Adds where what the holders gained was allocated: the last snapshot's join with the trace, less that of the first.
pub(crate) fn add_joins(evidence: &mut Evidence, held: &HeldSeries, trace: Option<&Path>) {
    let [first, .., last] = &evidence.snapshots[..] else {
        let only = evidence.snapshots.first().and_then(|only| held.get(only));
        return add_gains(evidence, only, None, trace);
    };
    // A snapshot from before the trace has nothing of it.
    let before = held.get(first).and_then(|held| held.join(trace).ok().flatten());
    add_gains(evidence, held.get(last), before.as_ref(), trace);
}

fn add_gains(
    evidence: &mut Evidence,
    last: Option<&HeldBlocks>,
    before: Option<&HolderSites>,
    trace: Option<&Path>,
) {
    match last.map(|held| held.join(trace)) {
        Some(Ok(Some(now))) => evidence.gains = now.since(before),
        Some(Ok(None)) | None => {}
        Some(Err(failure)) => remark(evidence, &[failure]),
    }
}

/// Snapshots of another process than the last one are no evidence of growth.
fn keep_one_process(evidence: &mut Evidence) {
    let pid = evidence.snapshots.last().and_then(|last| last.pid);
    let before = evidence.snapshots.len();
    evidence.snapshots.retain(|snapshot| snapshot.pid == pid);
    if evidence.snapshots.len() < before {
        evidence.remarks.push("snapshots of other processes are left out".to_owned());
    }
    evidence.pid = pid.or(evidence.pid);
}
