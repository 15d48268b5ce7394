//! The file behind a mapping. It need not be the one that has its name today: programs
//! are upgraded while they run.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::elf::Elf;
use crate::maps::Mapped;
use crate::source::{Origin, Process};

/// Where the mapped file's bytes can be read.
pub(crate) fn origin(process: Process, mapped: &Mapped) -> Option<Origin> {
    if mapped.path == Path::new("[vdso]") {
        // It has no file. All of it, with its sections, is in memory.
        return mapped.image.clone();
    }
    // Other names in brackets, and mappings of no file.
    if !mapped.path.is_absolute() {
        return None;
    }
    // Through this link the program itself can be read even after it was deleted.
    let program = process.path("exe");
    let is_program = std::fs::read_link(&program).is_ok_and(|path| path == mapped.path);
    let mut candidates = [mapped.path.clone(), program];
    if is_program {
        candidates.reverse();
    }
    candidates.into_iter().find(|path| is_mapped_file(path, mapped)).map(Origin::File)
}

/// Whether the file at `path` is the one in memory: by build id, else by program
/// headers; if memory cannot be read, by inode.
fn is_mapped_file(path: &Path, mapped: &Mapped) -> bool {
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
