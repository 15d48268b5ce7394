//! Output: standard output, or a file that appears only when it is complete.
//!
//! A new trace is written under a temporary name beside its destination, and
//! renamed when it is complete: a run that fails leaves no partial file and does
//! not touch the old one. So a trace can also replace its own source. Like the
//! traces of the plugin, new files are readable by their owner only.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write, stdout};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process;

use serde::Serialize;

use crate::exit_status::Failure;
use crate::text::terminal::Layout;
use crate::text::{escape, json};

/// A trace being written.
pub(crate) struct Output {
    name: String,
    file: File,
    /// None if the output is not a regular file.
    unfinished: Option<Unfinished>,
}

/// A file under a temporary name, which is removed when this is dropped.
struct Unfinished {
    temporary: PathBuf,
    destination: PathBuf,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After it was renamed there is nothing to remove.
        let _ = fs::remove_file(&self.temporary);
    }
}

impl Output {
    /// Opens OUT, or standard output if it is `-`.
    pub(crate) fn create(path: &Path) -> Result<Output, Failure> {
        if path.as_os_str() == "-" {
            return Output::standard(Some(
                "a trace is binary; name a file or send it through a pipe",
            ));
        }
        let name = escape::path(path).to_string();
        let unwritable = |error: io::Error| {
            Failure::Trouble(match error.kind() {
                io::ErrorKind::NotFound if !directory_of(path).is_dir() => {
                    format!("{name}: no such directory; make it first")
                }
                _ => format!("{name}: cannot be written: {error}; name another place"),
            })
        };
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                let message = format!("{name}: is a directory; name a file in it");
                Err(Failure::Trouble(message))
            }
            // A device or a pipe is never replaced.
            Ok(metadata) if !metadata.is_file() => {
                let file = OpenOptions::new().write(true).open(path).map_err(unwritable)?;
                Ok(Output { name, file, unfinished: None })
            }
            existing => {
                // The target of a symbolic link is replaced, not the link.
                let followed = existing.and_then(|_| fs::canonicalize(path));
                let destination = followed.unwrap_or_else(|_| path.to_path_buf());
                let (file, temporary) = beside(&destination).map_err(unwritable)?;
                let unfinished = Some(Unfinished { temporary, destination });
                Ok(Output { name, file, unfinished })
            }
        }
    }

    /// Opens the output of an export, standard output if it has no name. `not_for_terminals` says
    /// why that must not be a terminal.
    pub(crate) fn of_export(
        path: Option<&Path>,
        not_for_terminals: Option<&str>,
    ) -> Result<Output, Failure> {
        path.map_or_else(|| Output::standard(not_for_terminals), Output::create)
    }

    fn standard(not_for_terminals: Option<&str>) -> Result<Output, Failure> {
        if let Some(why) = not_for_terminals
            && stdout().is_terminal()
        {
            return Err(Failure::Trouble(format!("standard output is a terminal, and {why}")));
        }
        let name = "standard output".to_string();
        match raw_stdout() {
            Ok(file) => Ok(Output { name, file, unfinished: None }),
            Err(error) => Err(Failure::writing(&name, &error)),
        }
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Gives the complete file its name. It is on disk before: a crash of the machine leaves
    /// the old file or the new one.
    pub(crate) fn complete(self) -> Result<(), Failure> {
        if self.unfinished.is_some() {
            self.file.sync_data().map_err(|error| Failure::writing(&self.name, &error))?;
        }
        self.complete_export()
    }

    /// The same for what can be made again from its source: it does not wait for the disk,
    /// which may take many seconds.
    pub(crate) fn complete_export(self) -> Result<(), Failure> {
        let Some(unfinished) = &self.unfinished else { return Ok(()) };
        fs::rename(&unfinished.temporary, &unfinished.destination)
            .map_err(|error| Failure::writing(&self.name, &error))
    }

    /// Writes an export, and completes it.
    pub(crate) fn write_export<T>(
        mut self,
        write: impl FnOnce(&mut BufWriter<&mut Output>) -> io::Result<T>,
    ) -> Result<T, Failure> {
        let mut out = BufWriter::with_capacity(1 << 16, &mut self);
        let written = write(&mut out).and_then(|written| out.flush().map(|()| written));
        drop(out);
        let written = written.map_err(|error| Failure::writing(&self.name, &error))?;
        self.complete_export()?;
        Ok(written)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Standard output without a buffer.
pub(crate) fn raw_stdout() -> io::Result<File> {
    stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// Prints a whole text on standard output.
pub(crate) fn print(text: &[u8]) -> Result<(), Failure> {
    raw_stdout()
        .and_then(|mut out| out.write_all(text))
        .map_err(|error| Failure::writing("standard output", &error))
}

/// Prints a value on standard output, as one line of JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut line = Vec::new();
    json::put(&mut line, value);
    line.push(b'\n');
    print(&line)
}

/// Prints figures: as one line of JSON, or laid out for people or programs.
pub(crate) fn print_figures(
    figures: &impl Serialize,
    as_json: bool,
    text: impl FnOnce(Layout) -> String,
) -> Result<(), Failure> {
    if as_json { print_json(figures) } else { print(text(Layout::of_stdout()).as_bytes()) }
}

/// A new file in the same directory.
fn beside(destination: &Path) -> io::Result<(File, PathBuf)> {
    new_file(directory_of(destination))
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

/// A file that exists only as long as it is open.
pub(crate) fn unnamed_file() -> io::Result<File> {
    let (file, path) = new_file(&env::temp_dir())?;
    fs::remove_file(path)?;
    Ok(file)
}

/// Creates a file that only its owner can read, under an unused name.
fn new_file(directory: &Path) -> io::Result<(File, PathBuf)> {
    for attempt in 0..1000 {
        let path = directory.join(format!(".heaptap-{}-{attempt}.tmp", process::id()));
        let mut options = OpenOptions::new();
        match options.read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => return Ok((file, path)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
