//! The separate file with a stripped module's debug information.
//!
//! It is found by build id, as `/usr/lib/debug/.build-id/xx/yyyy.debug`, or by the
//! section `.gnu_debuglink` (a file name, NUL, padding to 4 bytes, a CRC-32 of the whole
//! file): beside the module, in `.debug` beside it, and under `/usr/lib/debug` followed
//! by the module's directory. The rules are those of gdb ("Debugging Information in
//! Separate Files"). A file of another build is worse than none, so build ids are
//! compared, or else the checksum.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::elf::Elf;
use crate::source::{Budget, Origin, ReadAt};

/// The directory of separate debug files.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// The longest link that is read: a file name and its checksum.
const MAX_LINK: u64 = 4096;

/// Finds the debug file of the module `elf`, which was read from `path`.
pub(crate) fn find(elf: &Elf<'_>, path: Option<&Path>) -> Option<Origin> {
    let id = elf.build_id();
    let link = debug_link(elf);
    let by_id = id.iter().filter_map(|id| by_build_id(id)).map(|path| (path, None));
    let directory = path.and_then(Path::parent);
    let by_link = link.iter().flat_map(|link| {
        let checksum = Some(link.checksum);
        by_link(&link.name, directory).into_iter().map(move |path| (path, checksum))
    });
    by_id
        .chain(by_link)
        // A link may lead back to the module itself.
        .filter(|(candidate, _)| Some(candidate.as_path()) != path)
        .map(|(candidate, checksum)| (Origin::File(candidate), checksum))
        .find(|(origin, checksum)| belongs(origin, id.as_deref(), *checksum))
        .map(|(origin, _)| origin)
}

struct DebugLink {
    name: Vec<u8>,
    checksum: u32,
}

fn debug_link(elf: &Elf<'_>) -> Option<DebugLink> {
    let section = elf.section(b".gnu_debuglink")?;
    let bytes = elf.contents(section, &mut Budget::new(MAX_LINK))?;
    let length = bytes.iter().position(|&byte| byte == 0)?;
    let checksum = bytes.get((length + 1).next_multiple_of(4)..)?.first_chunk::<4>()?;
    let name = bytes.get(..length)?;
    // A name without directories.
    let plain = !name.is_empty() && !name.contains(&b'/');
    plain.then(|| DebugLink { name: name.to_vec(), checksum: u32::from_le_bytes(*checksum) })
}

fn by_build_id(id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = id.split_first()?;
    if rest.is_empty() || rest.len() > 64 {
        return None;
    }
    let mut path = format!("{DEBUG_ROOT}/.build-id/{first:02x}/");
    for byte in rest {
        write!(path, "{byte:02x}").ok()?;
    }
    path.push_str(".debug");
    Some(PathBuf::from(path))
}

fn by_link(name: &[u8], directory: Option<&Path>) -> Vec<PathBuf> {
    let Some(directory) = directory else {
        return Vec::new();
    };
    let name = OsStr::from_bytes(name);
    let below_root = directory.strip_prefix("/").unwrap_or(directory);
    vec![
        directory.join(name),
        directory.join(".debug").join(name),
        Path::new(DEBUG_ROOT).join(below_root).join(name),
    ]
}

/// Whether the file belongs to the module with that build id, or has that checksum.
fn belongs(origin: &Origin, id: Option<&[u8]>, checksum: Option<u32>) -> bool {
    let Some(source) = origin.open() else {
        return false;
    };
    let Some(elf) = Elf::open(&*source) else {
        return false;
    };
    match (id, elf.build_id()) {
        (Some(id), Some(found)) => id == found,
        _ => checksum.is_some_and(|checksum| crc32(&*source) == Some(checksum)),
    }
}

/// The CRC-32 (IEEE, reflected) of a whole source, read piece by piece.
fn crc32(source: &dyn ReadAt) -> Option<u32> {
    let table: [u32; 256] = std::array::from_fn(|byte| {
        (0..8).fold(
            byte as u32,
            |crc, _| {
                if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 }
            },
        )
    });
    let mut buffer = vec![0; 64 << 10];
    let mut crc = u32::MAX;
    let mut offset = 0;
    while offset < source.size() {
        let length = (source.size() - offset).min(buffer.len() as u64);
        let piece = buffer.get_mut(..usize::try_from(length).ok()?)?;
        if !source.read_at(offset, piece) {
            return None;
        }
        for byte in &*piece {
            let index = (crc as u8) ^ byte;
            crc = table[usize::from(index)] ^ (crc >> 8);
        }
        offset += length;
    }
    Some(!crc)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_checksum_is_the_usual_one() {
        let check: Arc<[u8]> = Arc::from(&b"123456789"[..]);
        assert_eq!(crc32(&check), Some(0xcbf4_3926));
        let long: Arc<[u8]> = Arc::from(vec![0; 200_000]);
        // zlib's crc32 of 200,000 zeros.
        assert_eq!(crc32(&long), Some(0x5ce0_587b));
    }

    #[test]
    fn a_build_id_names_one_path() {
        let path = by_build_id(&[0xab, 0x0c, 0xff]);
        assert_eq!(path, Some(PathBuf::from("/usr/lib/debug/.build-id/ab/0cff.debug")));
        assert_eq!(by_build_id(&[0xab]), None);
        assert_eq!(by_build_id(&[]), None);
        assert_eq!(by_build_id(&[1; 1000]), None);
    }

    #[test]
    fn a_link_is_looked_for_in_three_places() {
        let found = by_link(b"x.debug", Some(Path::new("/opt/bin")));
        let wanted =
            ["/opt/bin/x.debug", "/opt/bin/.debug/x.debug", "/usr/lib/debug/opt/bin/x.debug"];
        assert_eq!(found, wanted.map(PathBuf::from));
    }
}
