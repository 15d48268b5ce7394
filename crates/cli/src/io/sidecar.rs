//! `FILE.probes`, the sidecar of a trace: read as far as it is written.

use std::fs::{self, File};
use std::io::{self, Read, stdin};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use heaptap_client::origin;
use heaptap_probes::{Decoder, Event, History, Timed};

use crate::exit_status::{Failure, Verdict};
use crate::io::input::cannot_open;
use crate::io::sidecar_path::sidecar_path;
use crate::io::trace_files::{is_sidecar_file, shown};

/// How much is read at once.
pub(super) const CHUNK: usize = 128 << 10;

/// What was read of a sidecar.
#[derive(Default)]
pub(crate) struct ReadSidecar {
    decoder: Decoder,
    pub(crate) history: History,
    /// The bytes that were read.
    pub(super) read: u64,
}

impl ReadSidecar {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.decoder.feed(bytes);
        self.read += bytes.len() as u64;
        // Damage is asked for again by `damage`.
        while let Ok(Some(timed)) = self.decoder.next_event() {
            self.history.add(timed);
        }
    }

    /// Reads to the end. After each part, `look` is called.
    pub(crate) fn take_all(
        &mut self,
        mut from: impl Read,
        mut look: impl FnMut(&ReadSidecar) -> Result<(), Failure>,
        name: &str,
    ) -> Result<(), Failure> {
        let mut room = vec![0; CHUNK];
        loop {
            match from.read(&mut room) {
                Ok(0) => return self.refuse_others(name),
                Ok(count) => {
                    self.take(&room[..count]);
                    look(self)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::Trouble(format!("{name}: {error}"))),
            }
        }
    }

    /// Fails if the file is empty, or none of these.
    fn refuse_others(&mut self, name: &str) -> Result<(), Failure> {
        if self.read == 0 {
            let message = format!("{name}: is empty: the program wrote nothing yet");
            return Err(Failure::Trouble(message));
        }
        match self.decoder.next_event() {
            Err(damage) if damage.offset == 0 && self.history.span.is_none() => {
                Err(Failure::Trouble(format!("{name}: no sidecar of a trace: {}", damage.what)))
            }
            _ => Ok(()),
        }
    }

    /// Where the sidecar is damaged, and how.
    pub(crate) fn damage(&mut self) -> Option<String> {
        let damage = self.decoder.next_event().err()?;
        Some(format!("damaged {damage}; what comes before is used"))
    }

    /// That it ends in the middle of a packet.
    fn cut(&self) -> Option<String> {
        let pending = self.decoder.pending() as u64;
        let at = self.read - pending;
        (pending > 0).then(|| {
            format!(
                "ends inside the packet at byte {at}; its program was killed or still runs, what \
                 comes before is used"
            )
        })
    }

    /// That the writer goes on in another file.
    fn replaced(&self) -> Option<String> {
        self.history.replaced.then(|| {
            "ends here: its program went on in a shorter file of the same name; read that, and \
             follow it with `tail -F`, not `tail -f`"
                .to_owned()
        })
    }

    /// What is missing from the whole file, in a sentence, and what follows for it.
    pub(crate) fn finding(&mut self) -> (Option<String>, Verdict) {
        match self.damage() {
            Some(damage) => (Some(damage), Verdict::Defective),
            None => (self.replaced().or_else(|| self.cut()), Verdict::Sound),
        }
    }
}

/// The sidecar that an argument stands for: a trace, a sidecar, or `-` for one on standard input.
pub(crate) fn read_sidecar(argument: &Path) -> Result<(String, ReadSidecar), Failure> {
    let mut read = ReadSidecar::default();
    let path = if argument.as_os_str() == "-" { None } else { Some(path_of(argument)?) };
    let name = shown(path.as_deref().unwrap_or(argument));
    match &path {
        None => read.take_all(stdin().lock(), |_| Ok(()), &name)?,
        Some(path) => {
            let file = File::open(path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => missing(&name),
                _ => cannot_open(&name, &error),
            })?;
            read.take_all(file, |_| Ok(()), &name)?;
        }
    }
    Ok((name, read))
}

/// The last moment in the sidecar of a trace that began then; both in microseconds since the epoch.
/// `None` if there is no such sidecar.
pub(crate) fn sidecar_end(trace: &Path, trace_start: u64) -> Option<u64> {
    let path = sidecar_path(trace);
    // Opening a pipe would wait.
    if !fs::metadata(&path).ok()?.is_file() {
        return None;
    }
    let (file, mut decoder) = (File::open(path).ok()?, Decoder::new());
    let (mut room, mut offset, mut last, mut is_own) = (vec![0; CHUNK], 0, 0, false);
    while let Ok(count @ 1..) = file.read_at(&mut room, offset) {
        offset += count as u64;
        decoder.feed(&room[..count]);
        // What comes before damage counts.
        while let Ok(Some(Timed { time, event })) = decoder.next_event() {
            last = last.max(time / 1_000);
            is_own |= matches!(event, Event::Start(start) if start.trace_start == trace_start);
        }
    }
    is_own.then_some(last)
}

/// The sidecar of a trace, or the argument if that is one.
fn path_of(argument: &Path) -> Result<PathBuf, Failure> {
    let name = shown(argument);
    let sidecar = sidecar_path(argument);
    if argument.is_dir() {
        return Err(Failure::Trouble(format!("{name}: is a directory; name a trace in it")));
    }
    let is_one = match is_sidecar_file(argument) {
        Ok(is_one) => is_one,
        // The trace may be elsewhere: its sidecar is enough.
        Err(_) if sidecar.exists() => false,
        Err(error) => return Err(cannot_open(&name, &error)),
    };
    Ok(if is_one || is_called_sidecar(argument) { argument.to_owned() } else { sidecar })
}

pub(super) fn is_called_sidecar(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "probes")
}

fn missing(name: &str) -> Failure {
    Failure::Trouble(format!(
        "{name} does not exist: the program opened no probe, and no time line of its collector was \
         recorded; see docs/probes.md"
    ))
}

/// The bytes of the sidecar beside a trace; 0 if there is none, or only that of an earlier trace.
pub(crate) fn sidecar_bytes(trace: &Path) -> u64 {
    let sidecar = sidecar_path(trace);
    let began = origin(trace).map(|origin| origin.start_time);
    let mut room = vec![0; CHUNK];
    match fs::metadata(&sidecar) {
        Ok(found) if began.is_some() && trace_start(&sidecar, &mut room) == began => found.len(),
        _ => 0,
    }
}

/// When the trace of a sidecar began, in microseconds since the epoch; `None` if the file is none,
/// or does not say so yet. Only regular files are opened: opening a pipe would wait.
pub(super) fn trace_start(link: &Path, room: &mut [u8]) -> Option<u64> {
    if !fs::metadata(link).ok()?.is_file() || !is_sidecar_file(link).ok()? {
        return None;
    }
    // The first packet fits.
    let count = File::open(link).ok()?.read_at(room, 0).ok()?;
    let mut read = ReadSidecar::default();
    read.take(&room[..count]);
    read.history.start.map(|start| start.trace_start)
}

#[cfg(test)]
mod tests {
    use heaptap_probes::Encoder;

    use super::*;

    #[test]
    fn damage_ends_the_reading_and_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("t.ctf.probes");
        let mut encoder = Encoder::new(7);
        let event = Event::Log { text: "a".to_owned() };
        assert!(encoder.add(&Timed { time: 1_000, event }).is_none());
        let first = encoder.take().unwrap();
        fs::write(&path, [&first[..], &[9; 100]].concat()).unwrap();
        let (_, mut read) = read_sidecar(&path).unwrap();
        let (message, verdict) = read.finding();
        assert_eq!(verdict, Verdict::Defective);
        assert!(message.unwrap().contains(&format!("at byte {}", first.len())));
        assert_eq!(read.history.log.len(), 1);
        fs::write(&path, [&first[..], &first[..30]].concat()).unwrap();
        let (_, mut read) = read_sidecar(&path).unwrap();
        let (message, verdict) = read.finding();
        assert_eq!(verdict, Verdict::Sound);
        assert!(message.unwrap().contains(&format!("packet at byte {}", first.len())));
    }
}
