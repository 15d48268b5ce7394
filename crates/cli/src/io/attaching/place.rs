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
pub(crate) struct Place {
    /// As the program knows it, with placeholders that are not replaced.
    file: PathBuf,
    /// The same, with those percent signs doubled that are none.
    pattern: PathBuf,
    /// The program's root directory, if it is another one.
    root: Option<PathBuf>,
}

impl Place {
    pub(crate) fn of(process: Process, file: Option<&Path>) -> Result<Place, Failure> {
        let root = process.other_root();
        let program = process.program().unwrap_or_else(|| "program".to_owned());
        let default = format!("{program}-{}.ctf", process.pid());
        let default = PathBuf::from(file_name::literal(default.as_ref()));
        let file = file.map_or(default, Path::to_owned);
        let (file, pattern) = match root {
            None => {
                let absolute = running::absolute(&file)?;
                let directory = running::absolute(Path::new("."))?;
                let directory = PathBuf::from(file_name::literal(directory.as_os_str()));
                (absolute, directory.join(&file))
            }
            Some(_) if file.is_absolute() => (file.clone(), file),
            // The current directory is none of the container's.
            Some(_) if file.components().count() == 1 => {
                let file = Path::new("/tmp").join(&file);
                (file.clone(), file)
            }
            Some(_) => {
                return Err(Failure::Trouble(format!(
                    "-o {}: the program runs in a container, or has another root directory: give an \
                     absolute name there",
                    escape::path(&file)
                )));
            }
        };
        Ok(Place { file, pattern, root })
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// The name for a command.
    pub(crate) fn pattern(&self) -> &Path {
        &self.pattern
    }

    /// A file of the program's, as it is found here.
    pub(crate) fn here(&self, file: &Path) -> PathBuf {
        match (&self.root, file.strip_prefix("/")) {
            (Some(root), Ok(below)) => root.join(below),
            _ => file.to_owned(),
        }
    }

    /// For messages.
    pub(crate) fn shown(&self, file: &Path) -> String {
        match &self.root {
            None => escape::path(file).to_string(),
            Some(_) => format!(
                "{} of its container ({} while it runs)",
                escape::path(file),
                escape::path(&self.here(file))
            ),
        }
    }

    /// Gives a snapshot the name that belongs to a trace, if that has another one than was asked for: one
    /// without placeholders, or with a number, since there was one before.
    pub(crate) fn put_beside(&self, snapshot: &Path, trace: &Path) {
        let wanted = beside(trace);
        if snapshot == wanted {
            return;
        }
        match fs::rename(self.here(snapshot), self.here(&wanted)) {
            Ok(()) => say(&format!("the snapshot is {}", self.shown(&wanted))),
            Err(error) => say(&format!(
                "{} belongs to the trace {}, and cannot be renamed: {error}",
                self.shown(snapshot),
                escape::path(trace)
            )),
        }
    }
}

/// The snapshot that belongs to a trace.
pub(crate) fn beside(trace: &Path) -> PathBuf {
    let mut name = OsString::from(trace);
    name.push(".heap");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn this() -> Process {
        Process::of(std::process::id()).unwrap()
    }

    #[test]
    fn a_relative_name_is_below_the_current_directory() {
        let here = std::env::current_dir().unwrap();
        let place = Place::of(this(), Some(Path::new("a-%p.ctf"))).unwrap();
        assert_eq!(place.file(), here.join("a-%p.ctf"));
        assert_eq!(
            place.pattern(),
            Path::new(&file_name::literal(here.as_os_str())).join("a-%p.ctf")
        );
        assert_eq!(beside(place.file()), here.join("a-%p.ctf.heap"));
        let absolute = Place::of(this(), Some(Path::new("/t/x"))).unwrap();
        assert_eq!((absolute.file(), absolute.pattern()), (Path::new("/t/x"), Path::new("/t/x")));
        assert!(Place::of(this(), Some(Path::new("-"))).is_err());
    }

    #[test]
    fn a_file_of_a_container_is_found_through_its_root() {
        let (file, root) = (PathBuf::from("/tmp/x"), Some(PathBuf::from("/proc/7/root")));
        let place = Place { pattern: file.clone(), file, root };
        assert_eq!(place.here(Path::new("/tmp/x.heap")), Path::new("/proc/7/root/tmp/x.heap"));
        assert!(place.shown(Path::new("/tmp/x")).contains("/proc/7/root/tmp/x"));
    }
}
