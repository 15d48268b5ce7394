//! What the file of a program says about where it came from.
//!
//! - `file`: the parts of the file that are worth reading.
//! - `marshal`: the compiler's own format for small values.
//! - `linked`: the units that were linked, with the digests of their interfaces and code.
//! - `sources`: names of source files and directories.
//!
//! The file is hostile: a snapshot may name any file of this machine, and anybody may have
//! written it. What is read here only says where to look.

mod file;
mod linked;
mod marshal;
mod sources;

use std::path::Path;
use std::time::SystemTime;

pub(crate) use file::open_regular;
pub(crate) use linked::{Digest, LinkedUnit, LinkedUnits, digests_at, own_digest};
pub(crate) use marshal::length as marshalled_length;
pub(crate) use sources::SourceNames;

/// What a program's file says.
#[derive(Debug, Default)]
pub(crate) struct ProgramFile {
    /// The units that were linked; empty if the file does not say.
    pub(crate) units: LinkedUnits,
    /// The names of source files and directories in it.
    pub(crate) sources: SourceNames,
    /// When it was written last.
    pub(crate) modified: Option<SystemTime>,
}

impl ProgramFile {
    /// Reads a program. `None` if there is no such file, or none that can be read.
    pub(crate) fn read(path: &Path) -> Option<ProgramFile> {
        let (modified, parts) = file::parts(path)?;
        let mut program = ProgramFile { modified, ..ProgramFile::default() };
        for part in &parts {
            match part {
                file::Part::Data(bytes) => {
                    if program.units.is_empty() {
                        program.units = LinkedUnits::in_data(bytes);
                    }
                    program.sources.add_all(bytes);
                }
                file::Part::Interfaces(bytes) => {
                    program.units = LinkedUnits::of_bytecode(bytes);
                }
                file::Part::Events(bytes) => program.sources.add_lists(bytes),
                file::Part::Debug(bytes) => program.sources.add_all(bytes),
                file::Part::Interpreter(path) => program.sources.interpreter = Some(path.clone()),
            }
        }
        Some(program)
    }
}
