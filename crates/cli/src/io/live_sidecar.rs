//! The sidecar of a trace, read further when it has grown. It may appear later than its trace, and another
//! one may take its place. That of a trace without a name is found among the open files of its
//! process.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heaptap_client::{FileIdentity, NamedWriter, WriterSign, WriterWatch, origin};
use heaptap_report::figures::probes::page::PageSidecar;

use crate::io::sidecar::{CHUNK, ReadSidecar, is_called_sidecar, trace_start};
use crate::io::sidecar_path::sidecar_path;
use crate::io::trace_files::shown;

/// How long to wait before the open files of a process are looked through again: there may be many.
const PAUSE: Duration = Duration::from_secs(1);

/// A sidecar of which nobody knows who writes it has ended when it has not grown for so long.
const QUIET: Duration = Duration::from_secs(10);

/// How long a page may wait while a sidecar is read; the next one has more.
const PATIENCE: Duration = Duration::from_secs(5);

/// A sidecar that is tailed while it is written.
pub(crate) struct LiveSidecar {
    place: SidecarPlace,
    opened: Option<(File, FileIdentity)>,
    watch: WriterWatch,
    pub(crate) read: ReadSidecar,
}

/// Where a sidecar is.
enum SidecarPlace {
    Named(PathBuf),
    /// Among the open files of a process, as its trace is.
    Open {
        trace: PathBuf,
        searched: Option<Instant>,
    },
}

impl LiveSidecar {
    /// The sidecar of the trace at this path, or the one at this path, whether or not it is there.
    pub(crate) fn of(argument: &Path) -> LiveSidecar {
        let sidecar = sidecar_path(argument);
        let place = if is_called_sidecar(argument) {
            SidecarPlace::Named(argument.to_owned())
        } else if open_files(argument).is_some() {
            SidecarPlace::Open { trace: argument.to_owned(), searched: None }
        } else {
            SidecarPlace::Named(sidecar)
        };
        LiveSidecar {
            place,
            opened: None,
            watch: WriterWatch::default(),
            read: ReadSidecar::default(),
        }
    }

    /// That of a trace; `None` for a pipe and for a directory of traces.
    pub(crate) fn beside(trace: &Path) -> Option<LiveSidecar> {
        (trace.as_os_str() != "-" && !trace.is_dir()).then(|| LiveSidecar::of(trace))
    }

    /// What it says by now, for the page; `None` if there is none.
    pub(crate) fn page(&mut self) -> Option<PageSidecar> {
        self.poll(Instant::now() + PATIENCE);
        let problem = self.read.damage().map(|damage| format!("{}: {damage}", self.name()));
        PageSidecar::new(&self.read.history, problem)
    }

    /// Reads what is written so far, until this moment at most. Returns whether there was
    /// anything. A file that cannot be read is one that is not there.
    pub(crate) fn poll(&mut self, until: Instant) -> bool {
        let mut changed = self.reopen();
        let Some((file, _)) = &self.opened else { return changed };
        let mut room = vec![0; CHUNK];
        while let Ok(count @ 1..) = file.read_at(&mut room, self.read.read) {
            self.read.take(&room[..count]);
            changed = true;
            if Instant::now() >= until {
                break;
            }
        }
        changed
    }

    /// Opens the file that is in the place now, if that is not the one that is read.
    fn reopen(&mut self) -> bool {
        let path = match &mut self.place {
            SidecarPlace::Named(path) => path.clone(),
            // It stays the same until the process says that it goes on in another one.
            SidecarPlace::Open { .. } if self.opened.is_some() && !self.read.history.replaced => {
                return false;
            }
            SidecarPlace::Open { searched: Some(last), .. } if last.elapsed() < PAUSE => {
                return false;
            }
            SidecarPlace::Open { trace, searched } => {
                *searched = Some(Instant::now());
                let Some(link) = open_sidecar(trace) else { return false };
                link
            }
        };
        let Ok(metadata) = fs::metadata(&path) else { return false };
        // Opening a pipe would wait.
        if !metadata.is_file() {
            return false;
        }
        let is_same = self.opened.as_ref().is_some_and(|(_, identity)| {
            *identity == FileIdentity::of(&metadata) && metadata.len() >= self.read.read
        });
        if is_same {
            return false;
        }
        let Ok(file) = File::open(&path) else { return false };
        let Ok(metadata) = file.metadata() else { return false };
        self.opened = Some((file, FileIdentity::of(&metadata)));
        (self.read, self.watch) = (ReadSidecar::default(), WriterWatch::default());
        true
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> String {
        match &self.place {
            SidecarPlace::Named(path) => shown(path),
            SidecarPlace::Open { trace, .. } => format!("file of probes beside {}", shown(trace)),
        }
    }

    /// Whether nothing more will be written: the sidecar says so, or its writer is gone.
    pub(crate) fn has_ended(&mut self) -> bool {
        let history = &self.read.history;
        if history.ended {
            return true;
        }
        let (Some((file, _)), Some(start)) = (&self.opened, &history.start) else { return false };
        let named = NamedWriter {
            pid: start.pid,
            start_time: start.trace_start,
            host: Some(start.host.as_bytes()),
        };
        let seems_gone = match self.watch.look(file, Some(named)) {
            WriterSign::Locked | WriterSign::Running => false,
            WriterSign::Gone => true,
            // It may be copied from elsewhere while it grows.
            WriterSign::Unknown => file
                .metadata()
                .and_then(|found| found.modified())
                .is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age >= QUIET)),
        };
        seems_gone && !self.has_more()
    }

    /// Whether there is more to read, in this file or in one that has taken its place. Its writer lets
    /// go of a file that it has thinned when the other one has its name.
    fn has_more(&self) -> bool {
        let Some((file, identity)) = &self.opened else { return false };
        let is_longer = file.metadata().is_ok_and(|found| found.len() > self.read.read);
        is_longer
            || match &self.place {
                SidecarPlace::Named(path) => {
                    fs::metadata(path).is_ok_and(|found| FileIdentity::of(&found) != *identity)
                }
                SidecarPlace::Open { trace, .. } => {
                    self.read.history.replaced && open_files(trace).is_some_and(Path::exists)
                }
            }
    }
}

/// The open files of a process, if this is one of them: `/proc/PID/fd`.
fn open_files(path: &Path) -> Option<&Path> {
    path.parent().filter(|folder| folder.starts_with("/proc") && folder.ends_with("fd"))
}

/// The sidecar of a trace that a process has open, if that process has it open too.
fn open_sidecar(trace: &Path) -> Option<PathBuf> {
    let began = origin(trace)?.start_time;
    let links = fs::read_dir(open_files(trace)?).ok()?.flatten().map(|entry| entry.path());
    let mut room = vec![0; CHUNK];
    links.into_iter().find(|link| trace_start(link, &mut room) == Some(began))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use heaptap_probes::{Encoder, Event, Start, Timed};

    use super::*;

    fn packet(lines: &[&str]) -> Vec<u8> {
        let mut encoder = Encoder::new(7);
        for (time, text) in (1_000..).zip(lines) {
            let event = Event::Log { text: (*text).to_owned() };
            assert!(encoder.add(&Timed { time, event }).is_none());
        }
        encoder.take().unwrap()
    }

    fn poll(live: &mut LiveSidecar) -> (bool, Vec<String>) {
        let changed = live.poll(Instant::now() + Duration::from_secs(60));
        (changed, live.read.history.log.iter().map(|(_, text)| text.clone()).collect())
    }

    #[test]
    fn it_appears_grows_and_is_replaced() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("t.ctf.probes");
        let mut live = LiveSidecar::of(&place.path().join("t.ctf"));
        assert_eq!(poll(&mut live), (false, vec![]));
        assert!(live.opened.is_none());
        let (first, second) = (packet(&["a", "b"]), packet(&["c"]));
        let mut file = File::create(&path).unwrap();
        file.write_all(&first[..20]).unwrap();
        assert_eq!(poll(&mut live), (true, vec![]));
        file.write_all(&first[20..]).unwrap();
        assert_eq!(poll(&mut live), (true, vec!["a".to_owned(), "b".to_owned()]));
        assert!(!poll(&mut live).0);
        file.write_all(&second).unwrap();
        assert_eq!(poll(&mut live).1.len(), 3);
        // Another file of the same name, then the same one cut off and written again.
        fs::remove_file(&path).unwrap();
        assert_eq!(poll(&mut live).1.len(), 3, "a removed file was forgotten");
        fs::write(&path, [first.clone(), second.clone()].concat()).unwrap();
        assert_eq!(poll(&mut live).1.len(), 3);
        fs::write(&path, &second).unwrap();
        assert_eq!(poll(&mut live), (true, vec!["c".to_owned()]));
    }

    /// A file that was thinned has another one in its place, and no writer.
    #[test]
    fn a_file_without_a_writer_has_not_ended_while_there_is_another_one() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("t.ctf.probes");
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim_end().to_owned();
        let mut encoder = Encoder::new(u64::from(u32::MAX));
        let start = Start { pid: u64::from(u32::MAX), host, ..Start::default() };
        assert!(encoder.add(&Timed { time: 1, event: Event::Start(start) }).is_none());
        let first = encoder.take().unwrap();
        fs::write(&path, &first).unwrap();
        let mut live = LiveSidecar::of(&path);
        assert!(!live.has_ended());
        assert!(poll(&mut live).0);
        assert!(live.has_ended(), "there is no such process");
        let other = place.path().join("other");
        let line = Event::Log { text: "a".to_owned() };
        assert!(encoder.add(&Timed { time: 2, event: line }).is_none());
        fs::write(&other, [first, encoder.take().unwrap()].concat()).unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(!live.has_ended());
        assert_eq!(poll(&mut live), (true, vec!["a".to_owned()]));
        assert!(live.has_ended());
        fs::remove_file(&path).unwrap();
        assert!(live.has_ended());
    }
}
