//! The file that a mapping is of, which need not be the one that has its name
//! today: programs are upgraded while they run.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::elf::Elf;
use crate::maps::Mapped;
use crate::source::{Origin, Process};

/// Where the bytes of what was mapped can be read.
pub(crate) fn origin(process: Process, mapped: &Mapped) -> Option<Origin> {
    if mapped.path == Path::new("[vdso]") {
        // It has no file; all of it, sections too, is in memory.
        return mapped.image.clone();
    }
    // Other names in brackets, and what never was a file.
    if !mapped.path.is_absolute() {
        return None;
    }
    // The program itself can be read through this link even when it was deleted,
    // and when it will be.
    let program = process.path("exe");
    let is_program = std::fs::read_link(&program).is_ok_and(|path| path == mapped.path);
    let mut candidates = [mapped.path.clone(), program];
    if is_program {
        candidates.reverse();
    }
    candidates.into_iter().find(|path| is_what_was_mapped(path, mapped)).map(Origin::File)
}

/// Is the file at `path` what is in memory? By build id, else by program headers;
/// when memory cannot be read, by inode.
fn is_what_was_mapped(path: &Path, mapped: &Mapped) -> bool {
    let same = || {
        let memory = mapped.image.as_ref()?.open()?;
        let memory = Elf::open(&*memory)?;
        let file = Origin::File(path.to_path_buf()).open()?;
        let Some(file) = Elf::open(&*file) else {
            return Some(false);
        };
        Some(match (memory.build_id(), file.build_id()) {
            (Some(memory), Some(file)) => memory == file,
            _ => memory.segments == file.segments,
        })
    };
    same().unwrap_or_else(|| {
        std::fs::metadata(path).is_ok_and(|metadata| metadata.ino() == mapped.inode)
    })
}
