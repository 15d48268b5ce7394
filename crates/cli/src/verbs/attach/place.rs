//! Where the trace goes.
//!
//! The program writes it, so that it has to be a name of the program's own file system. In a
//! container that is another one than ours; it is seen through `/proc/PID/root`, as long as the
//! program runs.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use heaptap_client::Process;
use heaptap_settings::file_name;

use crate::exit_status::Failure;
use crate::io::notices::say;
use crate::io::running;
use crate::text::escape;

/// The name of a trace.
pub(super) struct Place {
    /// As the program knows it.
    file: PathBuf,
    /// The program's root directory, if it is another one.
    root: Option<PathBuf>,
}

impl Place {
    pub(super) fn of(process: Process, file: Option<&Path>) -> Result<Place, Failure> {
        let root = process.other_root();
        let program = process.program().unwrap_or_else(|| "program".to_owned());
        let default = PathBuf::from(format!("{program}-{}.ctf", process.pid()));
        let file = file.map_or(default, Path::to_owned);
        let file = match root {
            None => running::absolute(&file)?,
            Some(_) if file.is_absolute() => file,
            // The current directory is none of the container's.
            Some(_) if file.components().count() == 1 => Path::new("/tmp").join(&file),
            Some(_) => {
                return Err(Failure::Trouble(format!(
                    "-o {}: the program runs in a container, or has another root directory: give an \
                     absolute name there",
                    escape::path(&file)
                )));
            }
        };
        Ok(Place { file, root })
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// The name without placeholders, for a command.
    pub(super) fn pattern(&self) -> PathBuf {
        PathBuf::from(file_name::literal(self.file.as_os_str()))
    }

    /// A file of the program's, as it is found here.
    pub(super) fn here(&self, file: &Path) -> PathBuf {
        match (&self.root, file.strip_prefix("/")) {
            (Some(root), Ok(below)) => root.join(below),
            _ => file.to_owned(),
        }
    }

    /// For messages.
    pub(super) fn shown(&self, file: &Path) -> String {
        match &self.root {
            None => escape::path(file).to_string(),
            Some(_) => format!(
                "{} of its container ({} while it runs)",
                escape::path(file),
                escape::path(&self.here(file))
            ),
        }
    }

    /// Gives a snapshot the name that belongs to a trace, if the program has chosen another one for that,
    /// since there was one before.
    pub(super) fn put_beside(&self, snapshot: &Path, trace: &Path) {
        let wanted = beside(trace);
        if snapshot == wanted || self.here(&wanted).symlink_metadata().is_ok() {
            return;
        }
        match fs::rename(self.here(snapshot), self.here(&wanted)) {
            Ok(()) => say(&format!("the snapshot is now {}", self.shown(&wanted))),
            Err(error) => say(&format!(
                "{} belongs to the trace {}, and cannot be renamed: {error}",
                self.shown(snapshot),
                escape::path(trace)
            )),
        }
    }
}

/// The snapshot that belongs to a trace.
pub(super) fn beside(trace: &Path) -> PathBuf {
    let mut name = OsString::from(trace);
    name.push(".heap");
    PathBuf::from(name)
}
