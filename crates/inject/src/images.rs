//! The files that the program has loaded.

use std::fs;

use crate::elf::{Image, Kind, Symbol};
use crate::maps::Maps;
use crate::memory::Memory;

/// Programs load some ten files, some a few hundred plugins.
const MOST: usize = 2048;

/// `AT_PHDR` and `AT_SECURE` (`<elf.h>`).
const PROGRAM_HEADERS: u64 = 3;
const SECURE: u64 = 23;

/// The program's own file, and the libraries.
pub(crate) struct Images {
    /// The program first.
    all: Vec<Image>,
}

/// What the kernel told the program when it started it.
pub(crate) struct Start {
    /// The address of its program headers.
    headers: u64,
    /// Whether it got rights that its user has not.
    pub(crate) is_privileged: bool,
}

impl Start {
    /// Reads `/proc/PID/auxv`.
    pub(crate) fn read(pid: libc::pid_t) -> Option<Start> {
        Start::parse(&fs::read(format!("/proc/{pid}/auxv")).ok()?)
    }

    #[cfg(test)]
    pub(crate) fn of_headers(headers: u64) -> Start {
        Start { headers, is_privileged: false }
    }

    fn parse(auxv: &[u8]) -> Option<Start> {
        let word = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
        let value = |wanted: u64| {
            let mut entries = auxv.chunks_exact(16).map(|entry| entry.split_at(8));
            entries.find_map(|(key, value)| (word(key)? == wanted).then(|| word(value))?)
        };
        Some(Start {
            headers: value(PROGRAM_HEADERS)?,
            is_privileged: value(SECURE).unwrap_or(0) != 0,
        })
    }
}

impl Images {
    /// All files that are loaded. `None` if the program itself is none for amd64.
    pub(crate) fn find(memory: &Memory, maps: &Maps, start: &Start) -> Option<Images> {
        let program = maps.at(start.headers).filter(|mapping| mapping.offset == 0)?;
        let mut all = vec![Image::open(memory, program.start)?];
        let others = maps.0.iter().filter(|mapping| {
            let is_device =
                mapping.path.starts_with(b"/dev/") || mapping.path.starts_with(b"/sys/");
            mapping.offset == 0
                && mapping.file.is_some()
                && mapping.start != program.start
                // The registers of a device are not looked at.
                && !is_device
        });
        // Other files of the program's begin with other bytes, and are no images.
        all.extend(others.take(MOST).filter_map(|mapping| Image::open(memory, mapping.start)));
        Some(Images { all })
    }

    /// The program itself.
    pub(crate) fn program(&self) -> Option<&Image> {
        self.all.first()
    }

    /// The library of that name; `None` too if it is there twice, in namespaces of the loader.
    pub(crate) fn library(&self, soname: &[u8]) -> Option<&Image> {
        let mut named = self.all.iter().filter(|image| image.soname == soname);
        let first = named.next()?;
        named.next().is_none().then_some(first)
    }

    /// The file that defines a variable.
    pub(crate) fn defining(&self, memory: &Memory, variable: &str) -> Option<&Image> {
        self.all.iter().find(|image| {
            image.symbol(memory, variable).is_some_and(|symbol| symbol.kind == Kind::Variable)
        })
    }

    /// Whether some file defines this symbol.
    pub(crate) fn has(&self, memory: &Memory, name: &str, kind: Kind) -> bool {
        self.all
            .iter()
            .any(|image| image.symbol(memory, name).is_some_and(|symbol| symbol.kind == kind))
    }

    /// A symbol of the program, which goes first as in the loader, or of `image`.
    pub(crate) fn symbol(&self, memory: &Memory, image: &Image, name: &str) -> Option<Symbol> {
        let of_program = self.program().and_then(|program| program.symbol(memory, name));
        of_program.or_else(|| image.symbol(memory, name))
    }
}
