//! Tests of [`Decompressed`].

use std::io::Write as _;
use std::process::{Command, Stdio};

use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

const TRACE: &[u8] = include_bytes!("../../../trace/tests/data/made-threads.v2.ctf");

/// The whole contents of a file, or what is said in place of them.
fn contents(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut contents = Vec::new();
    let compression = Compression::of(FileKind::of(bytes));
    // More than that many bytes would not come of these files.
    let read = Decompressed::new(bytes, compression).take(1 << 26).read_to_end(&mut contents);
    read.map(|_| contents).map_err(|error| {
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        error.to_string()
    })
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

/// The output of a program for this input; `None` if it is not installed.
fn through(program: &str, arguments: &[&str], bytes: &[u8]) -> Option<Vec<u8>> {
    let mut command = Command::new(program);
    let command = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().ok()?;
    let (mut input, bytes) = (child.stdin.take().unwrap(), bytes.to_vec());
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    Some(output.stdout)
}

#[test]
fn files_are_decompressed_whole_in_any_number_of_pieces() {
    let (first, second) = TRACE.split_at(TRACE.len() / 3);
    for pack in [gzip, zstd] {
        assert!(contents(&pack(TRACE)).unwrap() == TRACE);
        assert!(contents(&[pack(first), pack(b""), pack(second)].concat()).unwrap() == TRACE);
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &pack(second)];
        if FileKind::of(&pack(first)) == Some(FileKind::Zstd) {
            let with_skippable = [pack(first), skippable.concat()].concat();
            assert!(contents(&with_skippable).unwrap() == TRACE);
            let cut = &with_skippable[..pack(first).len() + 9];
            assert!(contents(cut).unwrap_err().contains("ends too early"));
        }
    }
    assert!(contents(TRACE).unwrap() == TRACE, "as it is");
}

#[test]
fn the_programs_that_compress_are_understood() {
    let long = TRACE.repeat(200);
    for (program, levels) in [("gzip", &["-1", "-9"][..]), ("zstd", &["-1", "-19", "--no-check"])] {
        for level in levels {
            match through(program, &[level, "-c"], &long) {
                Some(packed) => assert!(contents(&packed).unwrap() == long, "{program} {level}"),
                None => println!("{program} is not installed"),
            }
        }
    }
}

#[test]
fn a_window_that_is_too_large_is_refused_with_what_to_do() {
    // A frame of unknown size, and a window of 2^(10 + 21) bytes.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3, 1, 0, 0];
    let said = contents(&frame).unwrap_err();
    assert!(said.contains("a window of 2048 MiB") && said.contains("--long=31"), "{said}");
    // Dictionary 7, which nobody has.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 1, 0, 7, 1, 0, 0];
    assert!(contents(&frame).unwrap_err().contains("zstdcat -D"));
}

#[test]
fn a_file_that_ends_early_is_never_a_shorter_trace() {
    for (pack, program) in [(gzip as fn(&[u8]) -> Vec<u8>, "zcat"), (zstd, "zstdcat")] {
        let packed = pack(TRACE);
        for length in (5..packed.len()).step_by(packed.len() / 50).chain([packed.len() - 1]) {
            let said = contents(&packed[..length]).unwrap_err();
            assert!(said.contains("ends too early") && said.contains(program), "{length}: {said}");
        }
    }
}

#[test]
fn damage_is_found_and_does_no_harm() {
    let checked = through("zstd", &["-c"], TRACE).unwrap_or_else(|| zstd(TRACE));
    for (packed, has_checksum) in [(gzip(TRACE), true), (checked, true), (zstd(TRACE), false)] {
        for place in (4..packed.len()).step_by(packed.len() / 50) {
            for change in [0x01, 0x80, 0xff] {
                let mut damaged = packed.clone();
                damaged[place] ^= change;
                // Some fields of a header, such as the time of a file, say nothing of its contents.
                if let Ok(found) = contents(&damaged) {
                    assert!(!has_checksum || place < 10 || found == TRACE, "{place}");
                }
            }
        }
    }
}

/// What the decoder says of its source must not be taken for damage.
#[test]
fn an_error_in_reading_is_passed_on() {
    struct Failing<'a>(&'a [u8]);
    impl Read for Failing<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            match self.0.read(room)? {
                0 => Err(io::Error::other("the reading was cancelled")),
                count => Ok(count),
            }
        }
    }
    for packed in [gzip(TRACE), zstd(TRACE)] {
        let half = Failing(&packed[..packed.len() / 2]);
        let compression = Compression::of(FileKind::of(&packed));
        let error = io::copy(&mut Decompressed::new(half, compression), &mut io::sink());
        assert_eq!(error.unwrap_err().to_string(), "the reading was cancelled");
    }
}
