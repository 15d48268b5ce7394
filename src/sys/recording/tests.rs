use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn recording(chunks: u64, seconds: u32) -> Arc<Recording> {
    Arc::new(Recording::new(chunks * CHUNK as u64, SECOND * seconds).unwrap())
}

/// A part whose trace and sidecar have these lengths.
fn part(recording: &Arc<Recording>, now: Instant, trace: usize, series: usize) -> u64 {
    let number = recording.begin_part(now);
    for (kind, length) in [(Kind::Series, series), (Kind::Trace, trace)] {
        let mut file = MemoryFile::new(Arc::clone(recording), number, kind);
        let byte = number as u8;
        // In packets that do not end with chunks.
        let bytes = vec![byte; length];
        bytes.chunks(777).for_each(|packet| _ = file.write(packet).unwrap());
        assert_eq!((file.contents(), file.written()), (bytes, length as u64));
    }
    recording.end_before();
    number
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn write(recording: &Recording, base: &Path) -> (PathBuf, WrittenParts) {
    let mut name = Box::new(DirectoryName::new());
    let base = base.as_os_str().as_bytes();
    let written = recording.write_to(&NewDirectory::Numbered(base), b"s", &mut name);
    (PathBuf::from(std::ffi::OsStr::from_bytes(name.bytes())), written)
}

#[test]
fn the_time_is_covered_by_as_few_parts_as_can_be() {
    let recording = recording(1000, 30);
    let start = Instant::now();
    for at in 0..100 {
        let now = start + 5 * SECOND * at;
        part(&recording, now, 1000, 100);
        let covered = recording.covered(now);
        let least = (5 * SECOND * at).min(30 * SECOND);
        assert!(covered >= least && covered < 35 * SECOND, "{covered:?} at {at}");
    }
    assert_eq!(recording.kept().parts.len(), 7);
    // A program that stood still: what was before the last part is not needed any more.
    part(&recording, start + 5000 * SECOND, 1, 1);
    assert_eq!(recording.kept().parts.len(), 2);
}

#[test]
fn there_is_never_more_than_fits() {
    let recording = recording(20, 1_000_000);
    let start = Instant::now();
    for at in 0..1000_u32 {
        let number =
            part(&recording, start + SECOND * at, (at as usize * 991) % (9 * CHUNK), CHUNK);
        assert!(recording.bytes() <= 20 * CHUNK as u64);
        assert!(recording.covered_from(number, start + SECOND * at).is_zero());
    }
    let used =
        recording.kept().parts.iter().flat_map(|part| part.tails).map(|tail| tail.1).sum::<usize>();
    assert_eq!(used + recording.kept().free.len(), 20);
    // A part that is written is not dropped for itself.
    let number = recording.begin_part(start + 2000 * SECOND);
    let mut file = MemoryFile::new(Arc::clone(&recording), number, Kind::Trace);
    recording.end_before();
    let full = file.write(&vec![0; 21 * CHUNK]).unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    assert_eq!((file.written(), recording.part_bytes()), (0, 0));
    file.write(&vec![1; 20 * CHUNK]).unwrap();
    assert_eq!(recording.kept().parts.len(), 1);
    file.restart();
    assert_eq!((recording.bytes(), file.contents().len()), (0, 0));
    file.write(b"again").unwrap();
    assert_eq!(file.contents(), b"again");
}

#[test]
fn there_are_no_more_parts_than_slots() {
    let recording = recording(1000, 1_000_000);
    let start = Instant::now();
    (0..200).for_each(|at| _ = part(&recording, start + SECOND * at, 10, 10));
    assert_eq!(recording.kept().parts.len(), MAX_PARTS);
}

#[test]
fn what_is_written_out_is_what_was_written() {
    let place = tempfile::tempdir().unwrap();
    let base = place.path().join("a");
    let recording = recording(100, 30);
    let start = Instant::now();
    (0..3).for_each(|at| _ = part(&recording, start + SECOND * at, CHUNK * 2 + 5, 7));
    let claimed = recording.begin_part(start);
    MemoryFile::new(Arc::clone(&recording), claimed, Kind::Series).write(b"claimed").unwrap();
    let (directory, written) = write(&recording, &base);
    assert_eq!(directory, place.path().join("a.recording-1"));
    let bytes = 3 * (CHUNK as u64 * 2 + 5 + 7);
    assert_eq!(written, WrittenParts { parts: 3, bytes, oldest: 1, errno: 0 });
    let expected: Vec<String> = (1..=3)
        .flat_map(|part| ["", ".series"].map(|kind| format!("s.00000{part}.ctf{kind}")))
        .collect();
    assert_eq!(names(&directory), expected);
    assert_eq!(fs::read(directory.join("s.000002.ctf")).unwrap(), vec![2; CHUNK * 2 + 5]);
    assert_eq!(fs::read(directory.join("s.000002.ctf.series")).unwrap(), vec![2; 7]);
    // Another one does not change it.
    let (second, _) = write(&recording, &base);
    assert_eq!(second, place.path().join("a.recording-2"));
    let exact = NewDirectory::Named(directory.as_os_str().as_bytes());
    let refused = recording.write_to(&exact, b"s", &mut Box::new(DirectoryName::new()));
    assert_eq!(refused, WrittenParts { errno: libc::EEXIST, ..WrittenParts::default() });
}

#[test]
fn nothing_is_left_where_nothing_can_be_written() {
    let place = tempfile::tempdir().unwrap();
    let recording = recording(10, 30);
    let (_, written) = write(&recording, &place.path().join("a"));
    assert_eq!(written, WrittenParts::default());
    assert_eq!(names(place.path()), [""; 0]);
    let (_, written) = write(&recording, &place.path().join("none/a"));
    assert_eq!((written.parts, written.errno), (0, libc::ENOENT));
    let (_, written) = write(&recording, Path::new(&"x".repeat(5000)));
    assert_eq!(written.errno, libc::ENAMETOOLONG);
}

#[test]
fn bytes_are_changed_in_their_place() {
    let recording = recording(10, 30);
    let number = recording.begin_part(Instant::now());
    let mut file = MemoryFile::new(Arc::clone(&recording), number, Kind::Trace);
    let mut expected = vec![7; CHUNK * 2 + 100];
    file.write(&expected).unwrap();
    for at in [0, CHUNK - 2, CHUNK * 2 + 96] {
        file.overwrite(at as u64, b"abcd");
        expected[at..at + 4].copy_from_slice(b"abcd");
    }
    file.overwrite(CHUNK as u64 * 2 + 97, b"abcd");
    assert_eq!(file.contents(), expected);
}
