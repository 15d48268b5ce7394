//! Arbitrary scripts, with an eye for the format's limits.

use std::env;

use heaptap_trace::{Block, Code, Format, Source, TraceInfo};
use proptest::collection::{hash_map, vec};
use proptest::prelude::*;
use proptest::sample::select;

use crate::debug_info::{DebugInfo, OwnedLocation};
use crate::script::{Script, Step};

/// `usual` cases, unless `PROPTEST_CASES` is set. Nothing is kept between runs: a
/// failure prints the smallest script that it found.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let usual = if env::var_os("PROPTEST_CASES").is_some() {
        ProptestConfig::default()
    } else {
        ProptestConfig::with_cases(usual)
    };
    ProptestConfig { failure_persistence: None, max_shrink_iters: 500, ..usual }
}

/// Where the size of a variable-length integer changes, and the largest one.
pub(crate) const NUMBER_LIMITS: [u64; 12] = [
    0,
    1,
    16,
    17,
    252,
    253,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    (1 << 62) - 1,
];

/// The least and the most that 63 bits with sign hold, and the ones around 0.
pub(crate) const CODE_LIMITS: [Code; 5] = [1, 2, (1 << 62) - 1, u64::MAX, !((1 << 62) - 1)];

pub(crate) fn formats() -> impl Strategy<Value = Format> {
    select(vec![Format::V2, Format::V3])
}

pub(crate) fn blocks() -> impl Strategy<Value = Block> {
    let lengths = prop_oneof![6 => 0..20_u64, 3 => select(&NUMBER_LIMITS[..]), 1 => 0..1_u64 << 62];
    let samples = prop_oneof![6 => Just(1), 3 => select(&NUMBER_LIMITS[1..]), 1 => 1..1_u64 << 62];
    let sources = select(vec![Source::Minor, Source::Minor, Source::Major, Source::External]);
    (lengths, samples, sources).prop_map(|(length, samples, source)| Block {
        length,
        samples: samples.min(length + 1),
        source,
    })
}

pub(crate) fn codes() -> impl Strategy<Value = Code> {
    prop_oneof![8 => 1..400_u64, 2 => 1..1_u64 << 62, 1 => select(&CODE_LIMITS[..])]
}

/// Most events follow at once; some after a pause that a packet does not span,
/// or beyond what an event's 25 bits of time can hold.
fn waits() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => Just(0),
        6 => 0..2000_u64,
        1 => 29_999_990..30_000_010_u64,
        1 => 33_554_425..33_554_440_u64,
        1 => 0..1_u64 << 40,
    ]
}

fn calls() -> impl Strategy<Value = Vec<(Code, usize)>> {
    let times = prop_oneof![8 => Just(1_usize), 1 => 0..40_usize, 1 => 250..600_usize];
    vec((codes(), times), 0..12)
}

fn steps(format: Format, domains: Vec<u16>) -> impl Strategy<Value = Step> {
    let domain = select(domains);
    let allocs = (domain.clone(), waits(), blocks(), any::<usize>(), calls()).prop_map(
        |(domain, wait, block, keep, calls)| Step::Alloc { domain, wait, block, keep, calls },
    );
    let promotes = (domain.clone(), waits(), 0..1000_usize)
        .prop_map(|(domain, wait, back)| Step::Promote { domain, wait, back });
    let collects = (domain.clone(), waits(), 0..1000_usize)
        .prop_map(|(domain, wait, back)| Step::Collect { domain, wait, back });
    let skips = prop_oneof![Just(0), 1..30_u64, 1..1_u64 << 40];
    let renumbers = (domain, skips).prop_map(|(domain, skip)| Step::Renumber { domain, skip });
    // In version 2 ids that are left out are a defect.
    let renumbers = renumbers.prop_map(move |step| match format {
        Format::V2 => Step::Flush,
        Format::V3 => step,
    });
    prop_oneof![40 => allocs, 15 => promotes, 20 => collects, 3 => Just(Step::Flush), 2 => renumbers]
}

/// Names that no source file has, yet that a debug section can hold.
pub(crate) fn names() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => select(vec!["list.ml", "set.ml", "a", ""]).prop_map(|name| name.as_bytes().to_vec()),
        4 => (0..80_u32).prop_map(|number| format!("name{number}").into_bytes()),
        2 => vec(any::<u8>(), 0..12),
        1 => (0..5_usize, 0..5_usize).prop_map(|(before, behind)| {
            [vec![b'x'; before], vec![0], vec![b'y'; behind]].concat()
        }),
        1 => (4000..4200_usize).prop_map(|len| vec![b'l'; len]),
    ]
}

pub(crate) fn locations() -> impl Strategy<Value = OwnedLocation> {
    let numbers = || prop_oneof![4 => 0..300_u32, 1 => Just(0xf_ffff), 1 => any::<u32>()];
    (names(), names(), numbers(), numbers(), numbers()).prop_map(
        |(file, definition, line, start_char, end_char)| OwnedLocation {
            file,
            line,
            start_char,
            end_char,
            definition,
        },
    )
}

pub(crate) fn debug_infos() -> impl Strategy<Value = DebugInfo> {
    let lists = prop_oneof![10 => vec(locations(), 0..4), 1 => vec(locations(), 250..260)];
    (hash_map(codes(), lists, 0..30), 0..60_u64)
        .prop_map(|(locations, files)| DebugInfo { locations, files })
}

pub(crate) fn infos(format: Format) -> impl Strategy<Value = TraceInfo> {
    let texts = (names(), names(), names(), names());
    let rates = prop_oneof![Just(1.0), Just(1e-7), Just(f64::MIN_POSITIVE), 1e-6..1.0_f64];
    let starts = prop_oneof![Just(0), Just(1_600_000_000_000_000), 0..1_u64 << 60];
    (texts, rates, select(vec![32_u8, 64]), any::<u64>(), starts, any::<u16>()).prop_map(
        move |(texts, sample_rate, word_size, pid, start_time, domain)| TraceInfo {
            sample_rate,
            word_size,
            executable: texts.0,
            host: texts.1,
            runtime_params: texts.2,
            pid,
            context: texts.3,
            start_time,
            domain: if format == Format::V2 { 0 } else { domain },
        },
    )
}

/// Scripts of all kinds.
pub(crate) fn scripts(events: usize) -> impl Strategy<Value = Script> {
    formats().prop_flat_map(move |format| {
        infos(format).prop_flat_map(move |info| {
            let domains = match format {
                Format::V2 => vec![0],
                Format::V3 => vec![info.domain, 0, 1, 2, 65_535],
            };
            (vec(steps(format, domains), 0..events), debug_infos()).prop_map(
                move |(steps, debug_info)| Script { format, info: info.clone(), steps, debug_info },
            )
        })
    })
}

/// A plain trace info for scripts that are about something else.
pub(crate) fn plain_info() -> TraceInfo {
    TraceInfo {
        sample_rate: 1e-3,
        word_size: 64,
        executable: b"/bin/program".to_vec(),
        host: b"host".to_vec(),
        runtime_params: b"v=0".to_vec(),
        pid: 4242,
        context: Vec::new(),
        start_time: 1_600_000_000_000_000,
        domain: 0,
    }
}
