//! Follows a program: snapshots at their times, what is known so far, and the end.
//!
//! Snapshots are read on a thread of their own: reading one must not delay the next.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use heaptap_client::Process;
use heaptap_report::diagnosis::{
    Certainty, Evidence, FindingKind, MemoryLimit, TimelinePoint, diagnose,
};
use heaptap_report::figures::units::{bytes, count};

use super::folder::Folder;
use super::options::WatchOptions;
use super::session::Session;
use crate::analysis::evidence::{HeldSeries, ReadSnapshot, add_joins, add_sidecar, add_traces};
use crate::analysis::ocaml_types::TypeOptions;
use crate::exit_status::Failure;
use crate::io::attaching::interruption::Interruption;
use crate::io::watch::Watch as Quiet;
use crate::text::terminal::fit;

const PACE: Duration = Duration::from_millis(50);

/// A leak that is sure ends the watching if the process is so old: a younger one still loads what it needs.
const OLD_ENOUGH_US: u64 = 60_000_000;

/// When snapshots are taken.
#[derive(Clone, Copy)]
pub(super) enum Schedule {
    /// Until then: soon after each other at first, so that what grows fast is seen soon, and then every quarter.
    Until(Duration),
    /// Until the program ends: each twice as late as the one before.
    ToTheEnd,
}

impl Schedule {
    /// When the snapshot with this number is due; `None` if there is none.
    fn due(self, number: usize) -> Option<Duration> {
        /// In twelfths of the time.
        const TWELFTHS: [u32; 6] = [0, 1, 2, 3, 6, 9];
        match self {
            Schedule::Until(span) => TWELFTHS.get(number).map(|part| span * *part / 12),
            Schedule::ToTheEnd => {
                let seconds = 1u64.checked_shl(u32::try_from(number).ok()?)?;
                Some(Duration::from_secs(seconds))
            }
        }
    }

    fn is_over(self, elapsed: Duration) -> bool {
        matches!(self, Schedule::Until(span) if elapsed >= span)
    }
}

/// A program that is followed.
pub(super) struct Watch<'a> {
    session: &'a Session,
    folder: &'a Folder,
    types: &'a TypeOptions,
    schedule: Schedule,
    begin: Instant,
    is_shown: bool,
}

/// The thread that reads snapshots: what it is to read, and what it has read.
struct Reading {
    files: Sender<PathBuf>,
    read: Receiver<Result<ReadSnapshot, Failure>>,
}

/// Why watching has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Due,
    Sure,
    Interrupted,
    ProgramEnded,
}

/// What was seen.
#[derive(Default)]
pub(super) struct Watched {
    evidence: Evidence,
    /// How many were taken.
    snapshots: usize,
    held: HeldSeries,
    /// What became of the program or of the watching, in sentences.
    pub(super) closing: Vec<String>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        session: &'a Session,
        folder: &'a Folder,
        options: &'a WatchOptions,
        schedule: Schedule,
    ) -> Watch<'a> {
        let is_shown = stderr().is_terminal();
        Watch { session, folder, types: &options.types, schedule, begin: Instant::now(), is_shown }
    }

    /// Watches until the time is up, and calls `end` then, before the last snapshots are read.
    pub(super) fn run<T>(
        &self,
        interruption: &Interruption,
        end: impl FnOnce() -> T,
    ) -> (Watched, T) {
        let process = self.session.process;
        let evidence = Evidence {
            program: process.program().unwrap_or_default(),
            pid: Some(u64::from(process.pid())),
            began_us: process.began_us(),
            limit: machine_memory(),
            ..Evidence::default()
        };
        let mut watched = Watched { evidence, ..Watched::default() };
        let (files, of_reader) = channel::<PathBuf>();
        let (results, read) = channel();
        let types = self.types;
        thread::scope(|scope| {
            scope.spawn(move || {
                // No bars of progress beside the line of this one.
                Arc::new(Quiet::default()).during(|| {
                    for file in of_reader {
                        let _ = results.send(ReadSnapshot::of(&file, types));
                    }
                });
            });
            let reading = Reading { files, read };
            let why = self.follow(&mut watched, &reading, interruption);
            let is_late = why == End::Interrupted && watched.snapshots >= 3;
            if matches!(why, End::Due | End::Interrupted) && !is_late {
                self.take(&mut watched, &reading);
            }
            let ended = end();
            self.show("reading what was recorded");
            let Reading { files, read } = reading;
            drop(files);
            read.into_iter().for_each(|result| watched.add_read(result));
            watched.closing.extend(match why {
                End::Due | End::Sure => None,
                End::Interrupted => Some("Interrupted: this is what was known by then".to_owned()),
                End::ProgramEnded => Some("The program has ended".to_owned()),
            });
            watched.evidence.is_running = process.is_running();
            watched.evidence.has_ended = why == End::ProgramEnded;
            (watched, ended)
        })
    }

    fn follow(&self, watched: &mut Watched, reading: &Reading, interruption: &Interruption) -> End {
        let mut number = 0;
        let mut shown = Instant::now();
        loop {
            if interruption.has_come() {
                return End::Interrupted;
            }
            if !self.session.process.is_running() {
                return End::ProgramEnded;
            }
            let elapsed = self.begin.elapsed();
            if self.schedule.is_over(elapsed) {
                return End::Due;
            }
            if self.schedule.due(number).is_some_and(|due| elapsed >= due) {
                // Those that are overdue too would say the same.
                while self.schedule.due(number).is_some_and(|due| elapsed >= due) {
                    number += 1;
                }
                self.take(watched, reading);
            }
            while let Ok(result) = reading.read.try_recv() {
                watched.add_read(result);
                if self.is_decided(watched) {
                    return End::Sure;
                }
            }
            if shown.elapsed() > Duration::from_millis(500) {
                shown = Instant::now();
                watched.look_at(self.session.process);
                self.show(&so_far(&watched.evidence));
            }
            thread::sleep(PACE);
        }
    }

    /// Takes a snapshot, and has it read.
    fn take(&self, watched: &mut Watched, reading: &Reading) {
        let stem = format!("snapshot-{}", watched.snapshots + 1);
        self.show("taking a snapshot");
        match self.session.snapshot(self.folder.free_name(&stem, "heap")) {
            Ok(file) => {
                watched.snapshots += 1;
                // The reader lives as long as this.
                let _ = reading.files.send(file);
            }
            // It may end at any moment.
            Err(_) if !self.session.process.is_running() => {}
            Err(failure) => watched.remark(&failure),
        }
    }

    /// Whether a leak is sure, in a process that does not load any more.
    fn is_decided(&self, watched: &mut Watched) -> bool {
        let Schedule::Until(_) = self.schedule else { return false };
        let is_old = |began: u64| {
            let first = watched.evidence.snapshots.first().map_or(0, |first| first.taken_us);
            first.saturating_sub(began) >= OLD_ENOUGH_US
        };
        if !watched.evidence.began_us.is_some_and(is_old) {
            return false;
        }
        if let Some(trace) = self.session.trace() {
            add_sidecar(&mut watched.evidence, trace);
        }
        let diagnosis = diagnose(&watched.evidence);
        let is_sure = |kind: FindingKind, certainty: Certainty| {
            kind == FindingKind::Leak && certainty == Certainty::Sure
        };
        diagnosis.findings.iter().any(|finding| is_sure(finding.kind, finding.certainty))
    }

    /// One line on the terminal, which the next one replaces.
    fn show(&self, what: &str) {
        if !self.is_shown {
            return;
        }
        let elapsed = self.begin.elapsed().as_secs();
        let time = match self.schedule {
            Schedule::Until(span) => format!("{elapsed} s of {} s", span.as_secs()),
            Schedule::ToTheEnd => format!("{elapsed} s"),
        };
        let line = fit(&format!("heaptap: {time}: {what}"), 78);
        let _ = write!(stderr(), "\r\x1b[K{line}");
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

/// What is known so far.
fn so_far(evidence: &Evidence) -> String {
    let snapshots = count(evidence.snapshots.len() as u64, "snapshot", "snapshots");
    let diagnosis = diagnose(evidence);
    let first = diagnosis.findings.iter().find(|finding| finding.holder.is_some());
    let grows = first.and_then(|finding| {
        let holder = finding.holder.as_ref()?;
        Some(format!("; {} grows by {}/s", holder.name, bytes(finding.bytes_per_second?)))
    });
    format!("{snapshots}{}", grows.unwrap_or_default())
}

impl Watched {
    /// Of a program that ended before it could be watched, by itself or not.
    pub(super) fn ended(by_itself: bool) -> Watched {
        let evidence = Evidence { has_ended: by_itself, ..Evidence::default() };
        Watched { evidence, ..Watched::default() }
    }

    fn remark(&mut self, failure: &Failure) {
        self.evidence.remarks.extend(failure.message().map(str::to_owned));
    }

    /// Notes how large the process is: without a sidecar, nothing else says it.
    fn look_at(&mut self, process: Process) {
        /// Two in each second, of an hour.
        const MOST: usize = 7200;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let points = &mut self.evidence.timeline.points;
        if let (Some(now), Some((rss, threads)), true) =
            (now, size_of(process), points.len() < MOST)
        {
            points.push(TimelinePoint {
                at_us: now.as_micros() as u64,
                rss_bytes: Some(rss),
                threads: Some(threads),
                ..TimelinePoint::default()
            });
        }
    }

    fn add_read(&mut self, read: Result<ReadSnapshot, Failure>) {
        match read {
            Ok(read) => read.add_to(&mut self.evidence, &mut self.held),
            Err(failure) => self.remark(&failure),
        }
    }

    /// Adds a snapshot that the program took by itself.
    pub(super) fn add(&mut self, file: &Path, types: &TypeOptions) {
        self.add_read(ReadSnapshot::of(file, types));
    }

    /// All evidence, with what the trace says.
    pub(super) fn evidence(&self, trace: Option<&Path>) -> Evidence {
        let mut evidence = self.evidence.clone();
        if let Some(trace) = trace {
            if let Err(failure) = add_traces(&mut evidence, &[trace.to_owned()]) {
                evidence.remarks.extend(failure.message().map(str::to_owned));
            }
            add_joins(&mut evidence, &self.held, Some(trace));
        }
        evidence
    }
}

/// The bytes of a process's memory that are resident, and the number of its threads.
fn size_of(process: Process) -> Option<(u64, u64)> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).ok()?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let kib: u64 = field("VmRSS:")?.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some((kib.checked_mul(1024)?, field("Threads:")?.trim().parse().ok()?))
}

/// The memory of this machine.
fn machine_memory() -> Option<MemoryLimit> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(MemoryLimit { bytes: kib.checked_mul(1024)?, whose: "machine" })
}

/// The process that writes a trace, once it takes commands.
pub(super) fn writer_of(trace: &Path) -> Option<Process> {
    let all = heaptap_client::listening();
    let (pid, _) = all
        .into_iter()
        .find(|(_, status)| status.as_ref().is_ok_and(|status| status.trace == trace))?;
    Process::of(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_are_dense_at_first_and_then_every_quarter() {
        let due = |schedule: Schedule| -> Vec<u64> {
            (0..8).filter_map(|number| Some(schedule.due(number)?.as_secs())).collect()
        };
        assert_eq!(due(Schedule::Until(Duration::from_secs(60))), [0, 5, 10, 15, 30, 45]);
        assert_eq!(due(Schedule::ToTheEnd), [1, 2, 4, 8, 16, 32, 64, 128]);
        assert_eq!(Schedule::ToTheEnd.due(200), None);
        assert!(Schedule::Until(Duration::from_secs(5)).is_over(Duration::from_secs(5)));
        assert!(!Schedule::ToTheEnd.is_over(Duration::MAX));
    }
}
