//! `probes.ctf` and `late-probes.ctf`, which are `service.ctf` with sidecars of the whole run and of a part of
//! it, and `hostile-probes.ctf`, whose probes have hostile names.

use std::fs;
use std::path::Path;

use heaptap_probes::{
    Encoder, Event, Heap, Pauses, ProbeKind, SliceKind, Start, System, TagSize, Timed,
};

/// Nanoseconds between two ticks.
const TICK: u64 = 100_000_000;

struct Sidecar {
    encoder: Encoder,
    bytes: Vec<u8>,
    /// Nanoseconds since the epoch.
    time: u64,
}

impl Sidecar {
    fn new(start_time: u64) -> Sidecar {
        Sidecar::begun(start_time, 0)
    }

    /// One that begins so many ticks after its trace.
    fn begun(start_time: u64, ticks: u64) -> Sidecar {
        let (host, program) = ("nowhere".to_owned(), "service".to_owned());
        let start = Start { trace_start: start_time, pid: 1, word_size: 8, host, program };
        let (encoder, time) = (Encoder::new(1), start_time * 1_000 + ticks * TICK);
        let mut sidecar = Sidecar { encoder, bytes: Vec::new(), time };
        sidecar.add(Event::Start(start));
        sidecar
    }

    fn add(&mut self, event: Event) {
        let packet = self.encoder.add(&Timed { time: self.time, event });
        self.bytes.extend(packet.unwrap_or_default());
    }

    fn open(&mut self, probe: u32, kind: ProbeKind, name: &str) {
        self.add(Event::Probe { probe, kind, name: name.to_owned() });
    }

    fn write(mut self, path: &Path) -> std::io::Result<()> {
        self.add(Event::End);
        self.bytes.extend(self.encoder.take().unwrap_or_default());
        fs::write(path, self.bytes)
    }
}

/// Writes a sidecar of as many seconds as the service runs.
pub(crate) fn write_service(
    directory: &Path,
    start_time: u64,
    seconds: u64,
) -> std::io::Result<()> {
    fs::copy(directory.join("service.ctf"), directory.join("probes.ctf"))?;
    let mut sidecar = Sidecar::new(start_time);
    sidecar.open(0, ProbeKind::Count, "requests/all");
    sidecar.open(1, ProbeKind::Timer, "requests/time");
    sidecar.open(2, ProbeKind::Value, "cache/load");
    sidecar.open(3, ProbeKind::Tag, "cache/sessions");
    sidecar.open(4, ProbeKind::Text, "phase");
    for tick in 1..=seconds * 10 {
        sidecar.time = start_time * 1_000 + tick * TICK;
        let wave = (tick as f64 / 20.0).sin();
        let load = (60.0 + 40.0 * wave).round();
        sidecar.add(Event::Count { probe: 0, total: tick * 30 + (200.0 * wave) as u64 });
        sidecar.add(Event::Timer {
            probe: 1,
            total_ns: tick * 40_000_000,
            runs: tick * 3,
            running: 0,
        });
        sidecar.add(Event::Value { probe: 2, last: load, least: load, greatest: load + 3.0 });
        let size = TagSize::AtLeast(tick * 500);
        sidecar.add(Event::Tag { probe: 3, live: tick * 2, marked: tick * 3, size });
        if tick % 50 == 1 {
            sidecar.add(Event::Text { probe: 4, text: format!("phase {}", tick / 50) });
            sidecar.add(Event::Log { text: format!("phase {} begins", tick / 50) });
        }
        if tick == seconds * 7 {
            sidecar.add(Event::Pause { text: "the cache is full".to_owned() });
        }
        collector(&mut sidecar, tick, wave);
    }
    sidecar.write(&directory.join("probes.ctf.probes"))
}

fn collector(sidecar: &mut Sidecar, tick: u64, wave: f64) {
    for (kind, count, each) in
        [(SliceKind::Minor, tick * 5, 300_000), (SliceKind::Major, tick, 1_500_000)]
    {
        let longest_ns = if tick.is_multiple_of(40) { 20 * each } else { each };
        sidecar.add(Event::Pauses(Pauses { kind, count, total_ns: count * each, longest_ns }));
    }
    let heap = (4_000_000.0 + 1_000_000.0 * wave) as u64 + tick * 10_000;
    sidecar.add(Event::Heap(Heap {
        minor_words: Some(tick * 1_000_000),
        promoted_words: Some(tick * 80_000),
        minor_collections: Some(tick * 5),
        major_collections: Some(tick / 12),
        heap_words: Some(heap),
        live_words: Some(heap * 3 / 4),
        ..Heap::default()
    }));
    sidecar.add(Event::System(System {
        rss: Some(heap * 8 + (20 << 20)),
        cgroup_usage: Some(heap * 8 + (30 << 20)),
        cgroup_limit: Some(128 << 20),
        threads: Some(4),
        domains: Some(3),
    }));
}

/// Writes a sidecar from second 5 to 15 of the service, with a pause of 3 s.
pub(crate) fn write_late(directory: &Path, start_time: u64) -> std::io::Result<()> {
    fs::copy(directory.join("service.ctf"), directory.join("late-probes.ctf"))?;
    let mut sidecar = Sidecar::begun(start_time, 50);
    for tick in 51..=150 {
        sidecar.time = start_time * 1_000 + tick * TICK;
        let (count, total_ns) = if tick < 100 { (0, 0) } else { (1, 3_000_000_000) };
        let longest_ns = if tick == 100 { total_ns } else { 0 };
        sidecar.add(Event::Pauses(Pauses { kind: SliceKind::Major, count, total_ns, longest_ns }));
        sidecar.add(Event::Heap(Heap { heap_words: Some(4_000_000), ..Heap::default() }));
    }
    sidecar.write(&directory.join("late-probes.ctf.probes"))
}

/// Names, texts and lines of a log that are HTML, scripts and terminal sequences.
pub(crate) fn write_hostile(
    directory: &Path,
    start_time: u64,
    names: &[&[u8]],
) -> std::io::Result<()> {
    fs::copy(directory.join("hostile.ctf"), directory.join("hostile-probes.ctf"))?;
    let mut sidecar = Sidecar::new(start_time);
    for (probe, name) in (0..).zip(names) {
        let name = String::from_utf8_lossy(name);
        let kind = if probe % 2 == 0 { ProbeKind::Text } else { ProbeKind::Value };
        sidecar.open(probe, kind, &name);
        sidecar.time += TICK / 4;
        sidecar.add(Event::Log { text: name.clone().into_owned() });
        sidecar.add(match kind {
            ProbeKind::Text => Event::Text { probe, text: name.into_owned() },
            _ => Event::Value { probe, last: f64::NAN, least: f64::NEG_INFINITY, greatest: 1e300 },
        });
    }
    sidecar.add(Event::Pause { text: "<img src=x onerror=window.hacked=9>".to_owned() });
    sidecar.write(&directory.join("hostile-probes.ctf.probes"))
}
