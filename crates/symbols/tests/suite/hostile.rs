//! Damaged files: no panic, no endless loop, no memory beyond the budget.
//!
//! Real programs with changed bytes: anywhere, in the headers, and in the debug
//! sections.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use heaptap_symbols::{Budget, Module};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::native::C;
use crate::toolchain::{addresses_in, compile, directory, have, run};

/// A program, the ranges of its parts in the file, and addresses in it.
struct Sample {
    bytes: Vec<u8>,
    parts: Vec<Range<usize>>,
    addresses: Vec<u64>,
}

/// With DWARF, with compressed DWARF, and without.
fn samples() -> &'static [Sample] {
    static SAMPLES: OnceLock<Vec<Sample>> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        if !have(&["gcc", "nm", "objcopy", "strip", "readelf"]) {
            return Vec::new();
        }
        let directory = directory("hostile");
        compile(&directory, "program.c", C, "gcc -g -O2 -gdwarf-5 -o dwarf5 SOURCE");
        compile(&directory, "program.c", C, "gcc -g -O2 -gdwarf-4 -o dwarf4 SOURCE");
        run(&directory, "objcopy --compress-debug-sections=zlib dwarf5 compressed");
        run(&directory, "strip -g -o symbols dwarf5");
        let sample = |name: &str| {
            let program = directory.join(name);
            let own = addresses_in(&program, |name| ["outer", "main", "_start"].contains(&name));
            Sample {
                bytes: std::fs::read(&program).unwrap(),
                parts: parts(&run(&directory, &format!("readelf -SW {name}"))),
                addresses: own.into_iter().step_by(7).collect(),
            }
        };
        ["dwarf5", "dwarf4", "compressed", "symbols"].map(sample).into()
    })
}

/// The header, and the sections that are read, as `readelf` lists them.
fn parts(listed: &str) -> Vec<Range<usize>> {
    let read = [".debug", ".symtab", ".strtab", ".shstrtab", ".note", ".dynsym", ".dynstr"];
    let section = |line: &str| {
        let (_, rest) = line.split_once(']')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let name = fields.first()?;
        let number = |at: usize| usize::from_str_radix(fields.get(at)?, 16).ok();
        let (start, size) = (number(3)?, number(4)?);
        (size > 0 && read.iter().any(|prefix| name.starts_with(prefix)))
            .then_some(start..start + size)
    };
    let mut parts: Vec<Range<usize>> = listed.lines().filter_map(section).collect();
    assert!(parts.len() > 4, "{listed}");
    // The file's header and its program headers.
    parts.push(0..64);
    parts.push(64..64 + 13 * 56);
    parts
}

/// Locates every address. Each has a location, whatever is in the file.
fn ask(bytes: Vec<u8>, addresses: &[u64]) {
    let mut module = Module::of_bytes("damaged", Arc::from(bytes));
    let mut budget = Budget::new(8 << 20);
    for &address in addresses.iter().chain(&[0, 1, u64::MAX]) {
        let mut locations = 0;
        module.locate(address, &mut budget, &mut |_| locations += 1);
        assert!((1..=255).contains(&locations));
        module.linked_address(address);
    }
}

#[derive(Clone, Debug)]
struct Change {
    part: Option<Index>,
    at: Index,
    to: Vec<u8>,
}

fn change() -> impl Strategy<Value = Change> {
    let telling = prop::sample::select(vec![0, 1, 0x7f, 0x80, 0xff]);
    let byte = prop_oneof![any::<u8>(), telling];
    let to = prop::collection::vec(byte, 1..9);
    (prop::option::weighted(0.9, any::<Index>()), any::<Index>(), to)
        .prop_map(|(part, at, to)| Change { part, at, to })
}

impl Change {
    fn apply(&self, sample: &Sample, bytes: &mut [u8]) {
        let whole = 0..bytes.len();
        let part = self.part.map_or(whole, |part| part.get(&sample.parts).clone());
        let at = part.start + self.at.index(part.len());
        for (byte, &to) in bytes.iter_mut().skip(at).zip(&self.to) {
            *byte = to;
        }
    }
}

/// A thousand files, or `PROPTEST_CASES`. Nothing is kept between runs: a failure prints
/// the smallest change that it found.
fn cases() -> ProptestConfig {
    let usual = match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(1000),
    };
    ProptestConfig { failure_persistence: None, ..usual }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_damaged_file_still_gets_an_answer(
        which in any::<Index>(),
        changes in prop::collection::vec(change(), 1..12),
        keep in prop::option::weighted(0.1, any::<Index>()),
    ) {
        if !samples().is_empty() {
            let sample = which.get(samples());
            let mut bytes = sample.bytes.clone();
            for change in &changes {
                change.apply(sample, &mut bytes);
            }
            if let Some(keep) = keep {
                bytes.truncate(keep.index(bytes.len()));
            }
            ask(bytes, &sample.addresses);
        }
    }

    #[test]
    fn any_bytes_behind_a_magic_number_get_an_answer(
        rest in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.extend(rest);
        ask(bytes, &[4096]);
    }
}

#[test]
fn undamaged_samples_have_lines_and_names() {
    for sample in samples() {
        let mut module = Module::of_bytes("whole", Arc::from(sample.bytes.clone()));
        let mut budget = Budget::new(8 << 20);
        let mut named = 0;
        for address in &sample.addresses {
            module.locate(address + 1, &mut budget, &mut |location| {
                named += usize::from(!location.function.starts_with(b"whole+"));
            });
        }
        assert!(named >= sample.addresses.len());
    }
}

#[test]
fn a_section_larger_than_the_budget_is_not_read() {
    for sample in samples() {
        let mut module = Module::of_bytes("whole", Arc::from(sample.bytes.clone()));
        let mut budget = Budget::new(100);
        let address = sample.addresses[0] + 1;
        let mut shown = Vec::new();
        module.locate(address, &mut budget, &mut |location| shown = location.function.to_vec());
        assert_eq!(shown, format!("whole+{address:#x}").into_bytes());
    }
}
