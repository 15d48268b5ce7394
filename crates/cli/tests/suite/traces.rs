//! Traces to run the program on: made ones, and the real ones.

use std::collections::VecDeque;
use std::path::PathBuf;

use heaptap_trace::{
    Block, Code, Encoder, Format, Frames, Locate, Location, LocationList, Source, TraceInfo,
};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The original tool's traces, if they are on this machine.
pub(crate) fn real(name: &str) -> Option<PathBuf> {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = data.join(name);
    if !path.is_file() {
        eprintln!("\n*** SKIPPED: {} is not there ***\n", path.display());
        return None;
    }
    Some(path)
}

pub(crate) const START: u64 = 1_600_000_000_123_456;
pub(crate) const PID: u64 = 0x1234_5678_9abc;
pub(crate) const RATE: f64 = 0.01;

pub(crate) fn trace_info() -> TraceInfo {
    TraceInfo {
        sample_rate: RATE,
        word_size: 64,
        executable: b"/usr/bin/secretive-program".to_vec(),
        host: b"confidential-host".to_vec(),
        runtime_params: b"parameter=hidden".to_vec(),
        pid: PID,
        context: b"customer 42".to_vec(),
        start_time: START,
        domain: 0,
    }
}

/// Where the frames of made traces are: some inlined, some without location.
pub(crate) struct Sources;

impl Sources {
    pub(crate) const FIRST: Code = 0x5500_0000_1000;
}

impl Locate for Sources {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        let number = (code - Self::FIRST) as u32;
        let levels = [1, 2, 1, 3, 1, 0][number as usize % 6];
        for level in 0..levels {
            let file = format!("directory/source_{}.ml", number % 40);
            let definition = format!("Module{}.function_{number}_{level}", number % 40);
            list.add(Location {
                file: file.as_bytes(),
                line: 10 + number,
                start_char: number % 70,
                end_char: number % 70 + 9,
                definition: definition.as_bytes(),
            });
        }
    }
}

/// A made trace being written.
pub(crate) struct Writer {
    pub(crate) encoder: Encoder<Vec<u8>>,
    pub(crate) time: u64,
}

impl Writer {
    pub(crate) fn new(format: Format) -> Self {
        Writer::of(format, &trace_info())
    }

    pub(crate) fn of(format: Format, info: &TraceInfo) -> Self {
        let encoder = Encoder::new(Vec::new(), format, info).unwrap();
        Writer { encoder, time: info.start_time }
    }

    pub(crate) fn alloc(&mut self, domain: u16, block: Block, frames: &[Code]) -> u64 {
        self.time += 1;
        let frames = Frames::Whole(frames);
        self.encoder.domain(domain).alloc(self.time, block, frames, &mut Sources).unwrap()
    }

    /// A block of three words, two frames deep.
    pub(crate) fn small(&mut self) -> u64 {
        self.alloc(0, small_block(), &[Sources::FIRST, Sources::FIRST + 1])
    }

    pub(crate) fn promote(&mut self, domain: u16, id: u64) {
        self.time += 1;
        self.encoder.domain(domain).promote(self.time, id, &mut Sources).unwrap();
    }

    pub(crate) fn collect(&mut self, domain: u16, id: u64) {
        self.time += 1;
        self.encoder.domain(domain).collect(self.time, id, &mut Sources).unwrap();
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.encoder.finish(&mut Sources).unwrap()
    }
}

pub(crate) fn small_block() -> Block {
    Block { length: 3, samples: 1, source: Source::Minor }
}

/// A workload of a number of allocations in a number of domains, which take turns. Stacks
/// change a little at a time; most objects die, some are promoted before.
pub(crate) fn workload(format: Format, domains: u16, allocations: u64, seed: u64) -> Vec<u8> {
    workload_of(&trace_info(), format, domains, allocations, seed)
}

/// The same for a trace of this description.
pub(crate) fn workload_of(
    info: &TraceInfo,
    format: Format,
    domains: u16,
    allocations: u64,
    seed: u64,
) -> Vec<u8> {
    println!("workload of seed {seed}");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut below = |limit: u64| random.next_u64() % limit;
    let mut writer = Writer::of(format, info);
    let mut stacks = vec![vec![Sources::FIRST]; usize::from(domains)];
    let mut live = vec![VecDeque::new(); usize::from(domains)];
    for turn in 0..allocations {
        let domain = (turn % u64::from(domains)) as u16;
        let (stack, live) = (&mut stacks[usize::from(domain)], &mut live[usize::from(domain)]);
        stack.truncate(1 + below(stack.len() as u64) as usize);
        for _ in 0..below(6) {
            stack.push(Sources::FIRST + 1 + below(500));
        }
        let length = if below(10) == 0 { 20 + below(2000) } else { 1 + below(16) };
        let source = [Source::Minor, Source::Major, Source::External][(below(20) / 18) as usize];
        let samples = 1 + below(length.min(30));
        let block = Block { length, samples, source };
        writer.time += below(300);
        live.push_back((writer.alloc(domain, block, stack), false));
        if live.len() > 40
            && let Some((id, promoted)) = live.pop_front()
        {
            match below(4) {
                0 if !promoted => {
                    writer.promote(domain, id);
                    live.push_back((id, true));
                }
                1 => {}
                _ => writer.collect(domain, id),
            }
        }
    }
    writer.finish()
}

/// Offset and size of each packet.
pub(crate) fn packets(trace: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < trace.len() {
        let bits = u32::from_le_bytes(trace[at + 4..at + 8].try_into().unwrap());
        found.push((at, bits as usize / 8));
        at += bits as usize / 8;
    }
    found
}

/// The last packet that has events and others behind it.
pub(crate) fn middle_packet(trace: &[u8]) -> (usize, usize) {
    let packets = packets(trace);
    // Locations are small here; the larger ones have the events.
    let middle = packets.len() / 2;
    *packets[middle - 1..=middle + 1].iter().max_by_key(|(_, size)| size).unwrap()
}
