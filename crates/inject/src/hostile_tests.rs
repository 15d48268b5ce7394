//! Damaged and hostile programs: no panic, bounded time, and nothing is found that may be written
//! except within private memory of the right kind.
//!
//! The memory is a sparse file into which the stock `ocamlrun` and the C library are loaded as
//! the loader would, with a runtime state made up.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;

use object::LittleEndian;
use object::elf::{FileHeader64, PF_W, PF_X, PT_LOAD, ProgramHeader64};
use object::pod::{from_bytes, slice_from_bytes};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::elf::Kind;
use crate::images::{Images, Start};
use crate::maps::Maps;
use crate::memory::{Memory, Writable};
use crate::refusal::Refusal;
use crate::room::Room;
use crate::runtime::Runtime;

const LE: LittleEndian = LittleEndian;
const PROGRAM: &str = "/usr/bin/ocamlrun";
const LIBRARY: &str = "/lib/x86_64-linux-gnu/libc.so.6";
const PROGRAM_AT: u64 = 0x1000_0000;
const LIBRARY_AT: u64 = 0x2000_0000;
const STATE_AT: u64 = 0x3000_0000;
const HEAP_AT: u64 = 0x3100_0000;
const HEAP_WORDS: u64 = 0x4_0000;

/// A program in memory, before it is damaged.
struct Sample {
    pieces: Vec<(u64, Vec<u8>)>,
    maps: Vec<u8>,
    /// What of it is read: headers, tables, code, variables.
    read: Vec<Range<u64>>,
}

/// `None` if the files are not there, or are of another version.
fn sample() -> Option<&'static Sample> {
    static SAMPLE: OnceLock<Option<Sample>> = OnceLock::new();
    let make = || {
        let there = [PROGRAM, LIBRARY].iter().all(|file| Path::new(file).is_file());
        if !there {
            let all = std::env::var_os("HEAPTAP_TEST_ALL").is_some_and(|value| value == "1");
            assert!(!all, "{PROGRAM} or {LIBRARY} is missing and HEAPTAP_TEST_ALL=1");
            eprintln!("SKIPPED: {PROGRAM} or {LIBRARY} is missing");
            return None;
        }
        let mut sample = Sample { pieces: Vec::new(), maps: Vec::new(), read: Vec::new() };
        sample.load(PROGRAM, PROGRAM_AT);
        sample.load(LIBRARY, LIBRARY_AT);
        sample.start();
        Some(sample)
    };
    SAMPLE.get_or_init(make).as_ref()
}

impl Sample {
    fn load(&mut self, path: &str, base: u64) {
        let file = std::fs::read(path).expect("the file");
        let (header, _) = from_bytes::<FileHeader64<LittleEndian>>(&file).expect("a header");
        let table = &file[header.e_phoff.get(LE) as usize..];
        let count = usize::from(header.e_phnum.get(LE));
        let (headers, _) =
            slice_from_bytes::<ProgramHeader64<LittleEndian>>(table, count).expect("headers");
        for header in headers.iter().filter(|header| header.p_type.get(LE) == PT_LOAD) {
            self.map(path, base, header, &file);
        }
        self.read.push(base..base + 0x1000);
    }

    fn map(&mut self, path: &str, base: u64, header: &ProgramHeader64<LittleEndian>, file: &[u8]) {
        let start = base + header.p_vaddr.get(LE);
        let offset = header.p_offset.get(LE) as usize;
        let bytes = file[offset..offset + header.p_filesz.get(LE) as usize].to_vec();
        let flags = header.p_flags.get(LE);
        let page = start & !0xfff;
        let end = (start + header.p_memsz.get(LE)).next_multiple_of(0x1000);
        let line = format!(
            "{page:x}-{end:x} r{}{}p {:x} 08:01 {base} {path}\n",
            if flags.contains(PF_W) { 'w' } else { '-' },
            if flags.contains(PF_X) { 'x' } else { '-' },
            offset & !0xfff,
        );
        self.maps.extend_from_slice(line.as_bytes());
        self.pieces.push((start, bytes));
        // What the file has there, to its end, is not damaged all over, since most is never read.
        self.read.push(start..(start + 0x2000).min(end));
        self.read.push(end - 0x1000..end);
    }

    /// As if the runtime had started.
    fn start(&mut self) {
        let line = format!("{STATE_AT:x}-{:x} rw-p 0 00:00 0\n", STATE_AT + 0x1000);
        self.maps.extend_from_slice(line.as_bytes());
        let mut words = [0_u64; 54];
        let end = HEAP_AT + HEAP_WORDS * 8;
        for (index, word) in
            [(0, HEAP_AT), (1, end), (4, HEAP_AT), (5, end), (6, HEAP_AT), (7, end)]
        {
            words[index] = word;
        }
        (words[9], words[10]) = (HEAP_AT, HEAP_WORDS);
        let words = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.pieces.push((STATE_AT, words));
        self.read.push(STATE_AT..STATE_AT + 54 * 8);
        let memory = Memory::of_file(self.file());
        let (maps, images) = self.found(&memory);
        let images = images.expect("a program");
        let image = images.program().expect("a program");
        for (name, value) in [("Caml_state", STATE_AT), ("caml_memprof_young_trigger", HEAP_AT)] {
            let symbol = image.symbol(&memory, name).expect("a runtime");
            assert_eq!(symbol.kind, Kind::Variable);
            self.pieces.push((symbol.address, value.to_le_bytes().to_vec()));
        }
        let functions = ["caml_request_minor_gc", "caml_update_young_limit", "caml_memprof_stop"];
        for name in functions {
            let symbol = image.symbol(&memory, name).expect("a runtime");
            self.read.push(symbol.address..symbol.address + symbol.size);
        }
        assert_eq!(maps, Maps::parse(&self.maps));
    }

    fn file(&self) -> File {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(0x4000_0000).expect("a sparse file");
        for (at, bytes) in &self.pieces {
            file.write_all_at(bytes, *at).expect("written");
        }
        file
    }

    fn found(&self, memory: &Memory) -> (Maps, Option<Images>) {
        let maps = Maps::parse(&self.maps);
        let start = Start::of_headers(PROGRAM_AT + 64);
        let images = Images::find(memory, &maps, &start);
        (maps, images)
    }
}

/// All that may be written, with whether it is code.
fn writable(
    memory: &Memory,
    maps: &Maps,
    images: &Images,
) -> Result<Vec<(Writable, bool)>, Refusal> {
    let room = Room::find(memory, maps, images);
    let mut all: Vec<_> = room.code.iter().map(|&range| (range, true)).collect();
    all.extend(room.state.iter().map(|&range| (range, false)));
    let runtime = Runtime::find(memory, maps, images);
    if let Ok(runtime) = &runtime {
        all.push((runtime.hook, false));
        if let Ok(moment) = runtime.moment(memory) {
            all.extend(moment.writable().map(|range| (range, false)));
        }
    }
    runtime.map(|_| ()).or_else(|refusal| if all.is_empty() { Err(refusal) } else { Ok(()) })?;
    Ok(all)
}

#[test]
fn the_sample_is_understood() {
    let Some(sample) = sample() else { return };
    let memory = Memory::of_file(sample.file());
    let (maps, images) = sample.found(&memory);
    let images = images.expect("a program");
    let runtime = Runtime::find(&memory, &maps, &images).expect("a runtime");
    let moment = runtime.moment(&memory);
    assert!(moment.is_ok(), "{:?}", moment.err());
    assert!(
        images.library(b"libc.so.6").is_some_and(|libc| libc.symbol(&memory, "dlopen").is_some())
    );
    let room = Room::find(&memory, &maps, &images);
    assert_eq!((room.code.len(), room.state.len()), (2, 2), "{room:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damage_leads_to_no_panic_and_no_wild_write(
        damage in prop::collection::vec((any::<Index>(), any::<Index>(), any::<[u8; 8]>(), 1_usize..9), 1..40),
    ) {
        let Some(sample) = sample() else { return Ok(()) };
        let file = sample.file();
        for (range, offset, bytes, size) in damage {
            let range = &sample.read[range.index(sample.read.len())];
            let at = range.start + offset.index((range.end - range.start) as usize) as u64;
            file.write_all_at(&bytes[..size], at).expect("written");
        }
        let memory = Memory::of_file(file);
        let (maps, Some(images)) = sample.found(&memory) else { return Ok(()) };
        for (range, is_code) in writable(&memory, &maps, &images).unwrap_or_default() {
            let mapping = maps.around(range.start, range.size).expect("mapped as a whole");
            prop_assert!(mapping.private);
            prop_assert_eq!((mapping.executable, mapping.writable), (is_code, !is_code));
        }
    }
}
