//! The mappings in `/proc/PID/maps`.
//!
//! Each line is `start-end perms offset dev inode path` (manual page
//! `proc_pid_maps(5)`), where newlines in the path are `\012` and ` (deleted)` follows
//! it if the file is gone. Only executable mappings are kept: return addresses are in
//! no others.

use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::source::{Origin, Process};

/// The file behind a mapping. Equal ones are the same module, still loaded at the same
/// address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    /// The path without ` (deleted)`, or a name in brackets.
    pub(crate) path: PathBuf,
    /// The inode.
    pub(crate) inode: u64,
    /// The beginning of the file, with its ELF header, in memory.
    pub(crate) image: Option<Origin>,
}

/// An executable range of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// The first address.
    pub(crate) start: u64,
    /// One past the last.
    pub(crate) end: u64,
    /// The offset in the file at which it begins.
    pub(crate) offset: u64,
    /// The file; `None` for anonymous memory.
    pub(crate) mapped: Option<Mapped>,
}

/// The executable mappings, in order of address. Malformed lines are ignored.
pub(crate) fn executable(process: Process, maps: &[u8]) -> Vec<Mapping> {
    let mut found = Vec::new();
    let mut beginning: Option<MapsLine<'_>> = None;
    for line in maps.split(|&byte| byte == b'\n').filter_map(MapsLine::parse) {
        // The loader maps a module's first page first. Anonymous memory may lie between
        // its segments, and has the offset 0 too.
        if line.offset == 0 && !line.path.is_empty() {
            beginning = Some(line);
        }
        if !line.executable {
            continue;
        }
        let first = beginning.filter(|first| first.same_file(&line));
        let image = first.map(|first| Origin::Memory {
            process,
            start: first.start,
            size: first.end.saturating_sub(first.start),
        });
        let mapped = (!line.path.is_empty()).then(|| Mapped {
            path: PathBuf::from(std::ffi::OsString::from_vec(plain_path(line.path))),
            inode: line.inode,
            image,
        });
        let MapsLine { start, end, offset, .. } = line;
        found.push(Mapping { start, end, offset, mapped });
    }
    found.sort_by_key(|mapping| mapping.start);
    found
}

/// One line of the file.
#[derive(Clone, Copy)]
struct MapsLine<'a> {
    start: u64,
    end: u64,
    executable: bool,
    offset: u64,
    device: &'a [u8],
    inode: u64,
    path: &'a [u8],
}

impl<'a> MapsLine<'a> {
    fn parse(line: &'a [u8]) -> Option<MapsLine<'a>> {
        // The path is the rest of the line and may hold spaces.
        let mut fields = line.splitn(6, |&byte| byte == b' ');
        let mut range = fields.next()?.splitn(2, |&byte| byte == b'-');
        let start = number(range.next()?, 16)?;
        let end = number(range.next()?, 16)?;
        let executable = fields.next()?.get(2) == Some(&b'x');
        let offset = number(fields.next()?, 16)?;
        let device = fields.next()?;
        let inode = number(fields.next()?, 10)?;
        let path = fields.next().unwrap_or_default().trim_ascii_start();
        (start < end).then_some(MapsLine { start, end, executable, offset, device, inode, path })
    }

    fn same_file(&self, other: &MapsLine<'_>) -> bool {
        (self.device, self.inode, self.path) == (other.device, other.inode, other.path)
    }
}

fn number(digits: &[u8], radix: u32) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

/// The path as it is on disk: without escapes and ` (deleted)`.
fn plain_path(path: &[u8]) -> Vec<u8> {
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        match rest.strip_prefix(b"\\012") {
            Some(after) => {
                plain.push(b'\n');
                rest = after;
            }
            None => {
                plain.push(byte);
                rest = after;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAPS: &str = "\
555555554000-555555556000 r--p 00000000 08:01 1234                       /usr/bin/a b
555555556000-555555557000 ---p 00000000 00:00 0 
555555557000-555555558000 r-xp 00002000 08:01 1234                       /usr/bin/a b
555555559000-55555555a000 rw-p 00000000 00:00 0                          [heap]
7ffff0000000-7ffff0001000 rwxp 00000000 00:00 0 
7ffff1000000-7ffff1001000 r-xp 00001000 08:01 99                         /lib/x\\012y.so (deleted)
7ffff7fc0000-7ffff7fc2000 r-xp 00000000 00:00 0                          [vdso]
nonsense
";

    fn memory(start: u64, size: u64) -> Origin {
        Origin::Memory { process: Process::This, start, size }
    }

    #[test]
    fn executable_mappings_are_found_with_their_files() {
        let found = executable(Process::This, MAPS.as_bytes());
        let starts: Vec<u64> = found.iter().map(|mapping| mapping.start).collect();
        let wanted = [0x5555_5555_7000, 0x7fff_f000_0000, 0x7fff_f100_0000, 0x7fff_f7fc_0000];
        assert_eq!(starts, wanted);
        let [program, bare, deleted, vdso] = &found[..] else { panic!("four mappings") };

        assert_eq!((program.end, program.offset), (0x5555_5555_8000, 0x2000));
        let mapped = program.mapped.clone().unwrap();
        assert_eq!((mapped.path, mapped.inode), (PathBuf::from("/usr/bin/a b"), 1234));
        assert_eq!(mapped.image, Some(memory(0x5555_5555_4000, 0x2000)));

        assert_eq!(bare.mapped, None);
        let mapped = deleted.mapped.clone().unwrap();
        assert_eq!((mapped.path, mapped.image), (PathBuf::from("/lib/x\ny.so"), None));
        let mapped = vdso.mapped.clone().unwrap();
        assert_eq!(mapped.path, PathBuf::from("[vdso]"));
        assert_eq!(mapped.image, Some(memory(0x7fff_f7fc_0000, 0x2000)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            executable(Process::This, &bytes);
        }

        #[test]
        fn any_line_is_read_without_a_panic(line in "[0-9a-f]{1,18}-[0-9a-f]{0,18} ?[rwxp-]{0,5} [0-9a-f ]{0,20}.{0,30}") {
            executable(Process::This, line.as_bytes());
        }
    }
}
