//! Whether a library can be loaded into a program at all.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Why a program cannot be traced, as far as its file tells. What cannot be
/// found or is no executable is left to whoever starts it.
pub(crate) fn why_not(program: &OsStr) -> Option<String> {
    let path = locate(program)?;
    let mut file = File::open(&path).ok()?;
    if file.metadata().is_ok_and(|metadata| metadata.mode() & 0o6000 != 0) {
        return Some("it runs with the rights of another user, and the system loads nothing into such programs".into());
    }
    let mut head = [0; 64];
    file.read_exact(&mut head).ok()?;
    let kind = Kind::of(&head, |at, into| file.read_exact_at(into, at).is_ok());
    // The program that it starts may be another.
    let refusal = kind.refusal();
    refusal.filter(|_| kind != Kind::Static || !is_wrapper(&path))
}

/// Programs that only start another, and that are distributed as static executables.
const WRAPPERS: [&str; 17] = [
    "bash", "busybox", "chroot", "dash", "dune", "env", "make", "nice", "ninja", "nohup", "opam",
    "setsid", "sh", "stdbuf", "time", "timeout", "xargs",
];

fn is_wrapper(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| WRAPPERS.contains(&name))
}

/// What kind of file it is.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// An executable that loads libraries, a script, or something unknown.
    Dynamic,
    /// Loads nothing, but has the library linked into it.
    Linked,
    Static,
    /// For another machine: the number of it.
    Foreign(u16),
}

impl Kind {
    /// From the first bytes, and from more of them (System V ABI, *ELF*).
    fn of(head: &[u8; 64], read: impl Fn(u64, &mut [u8]) -> bool) -> Kind {
        const INTERPRETER: u32 = 3;
        const NOTES: u32 = 4;
        const X86_64: u16 = 62;
        if !head.starts_with(b"\x7fELF") {
            return Kind::Dynamic;
        }
        let half = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        if head[4] != 2 || half(18) != X86_64 {
            return Kind::Foreign(half(18));
        }
        let (start, size, count) = (long(head, 32), half(54), half(56));
        let mut kind = Kind::Static;
        for index in 0..count {
            let mut segment = [0; 56];
            let at = start.saturating_add(u64::from(index) * u64::from(size));
            if !read(at, &mut segment) {
                continue;
            }
            match u32::from_le_bytes([segment[0], segment[1], segment[2], segment[3]]) {
                INTERPRETER => return Kind::Dynamic,
                NOTES => {
                    // Longer notes than these are not ours.
                    let mut notes = vec![0; long(&segment, 32).min(4096) as usize];
                    if read(long(&segment, 8), &mut notes) && has_our_note(&notes) {
                        kind = Kind::Linked;
                    }
                }
                _ => {}
            }
        }
        kind
    }

    fn refusal(&self) -> Option<String> {
        match self {
            Kind::Dynamic | Kind::Linked => None,
            Kind::Static => Some(
                "it is statically linked, so nothing can be loaded into it; link it dynamically, \
                 or with heaptap_ocaml.o (see docs/ocaml.md)"
                    .into(),
            ),
            Kind::Foreign(machine) => Some(format!(
                "it is for another machine (ELF machine {machine}); only amd64 is supported"
            )),
        }
    }
}

/// Eight bytes of a header.
fn long(bytes: &[u8], at: usize) -> u64 {
    let mut long = [0; 8];
    long.iter_mut().zip(bytes.iter().skip(at)).for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(long)
}

/// Whether a note is the one in `crates/ocaml-object`: lengths of name and
/// content, kind, name.
fn has_our_note(notes: &[u8]) -> bool {
    let ours = b"\x08\0\0\0\0\0\0\0\x01\0\0\0heaptap\0";
    notes.windows(ours.len()).any(|note| note == ours)
}

/// The file that a shell would run.
pub(crate) fn locate(program: &OsStr) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(program));
    }
    let path = std::env::var_os("PATH")?;
    let is_executable = |path: &Path| {
        path.metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path).map(|place| place.join(program)).find(|path| is_executable(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf(machine: u16, kinds: &[u32]) -> ([u8; 64], Vec<u8>) {
        let mut head = [0; 64];
        head[..5].copy_from_slice(b"\x7fELF\x02");
        head[18..20].copy_from_slice(&machine.to_le_bytes());
        head[32] = 64;
        head[54] = 56;
        head[56] = kinds.len() as u8;
        let mut all = head.to_vec();
        for kind in kinds {
            all.extend(kind.to_le_bytes());
            all.extend([0; 52]);
        }
        (head, all)
    }

    fn kind((head, all): &([u8; 64], Vec<u8>)) -> Kind {
        Kind::of(head, |at, into| {
            let Some(bytes) = all.get(at as usize..at as usize + into.len()) else { return false };
            into.copy_from_slice(bytes);
            true
        })
    }

    #[test]
    fn a_note_tells_that_the_library_is_in_it() {
        let (head, mut all) = elf(62, &[6, 4]);
        assert_eq!(kind(&(head, all.clone())), Kind::Static);
        let note = b"\x08\0\0\0\0\0\0\0\x01\0\0\0heaptap\0";
        let at = all.len() as u64;
        all[64 + 56 + 8..64 + 56 + 16].copy_from_slice(&at.to_le_bytes());
        all[64 + 56 + 32] = note.len() as u8;
        all.extend(note);
        assert_eq!(kind(&(head, all)), Kind::Linked);
    }

    #[test]
    fn an_interpreter_makes_it_dynamic() {
        assert_eq!(kind(&elf(62, &[6, 3, 1])), Kind::Dynamic);
        assert_eq!(kind(&elf(62, &[6, 1])), Kind::Static);
        assert_eq!(kind(&elf(183, &[3])), Kind::Foreign(183));
        assert_eq!(kind(&([b'#'; 64], Vec::new())), Kind::Dynamic);
    }
}
