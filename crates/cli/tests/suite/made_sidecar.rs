//! Sidecars to run the program on: ten seconds of a made program whose quantities are known.

use heaptap_probes::{
    Encoder, Event, Heap, Pauses, ProbeKind, SliceKind, Start, System, TagSize, Timed,
};

use crate::traces::START;

/// Nanoseconds between two ticks.
const TICK: u64 = 100_000_000;

/// How many ticks a made sidecar has.
pub(crate) const TICKS: u64 = 100;

/// A name that would clear the screen.
pub(crate) const HOSTILE: &str = "evil/\u{1b}[2Jname\n";

/// A sidecar being written.
pub(crate) struct SidecarWriter {
    encoder: Encoder,
    bytes: Vec<u8>,
    /// When the trace began, in microseconds since the epoch.
    start: u64,
    /// Nanoseconds since then.
    pub(crate) time: u64,
}

impl SidecarWriter {
    pub(crate) fn new(pid: u64, host: &str) -> SidecarWriter {
        SidecarWriter::of_trace(START, pid, host)
    }

    /// What is appended to a sidecar.
    pub(crate) fn continued(pid: u64) -> SidecarWriter {
        SidecarWriter { encoder: Encoder::new(pid), bytes: Vec::new(), start: START, time: 0 }
    }

    /// The sidecar of a trace that began at this time, in microseconds since the epoch.
    pub(crate) fn of_trace(start: u64, pid: u64, host: &str) -> SidecarWriter {
        let mut writer = SidecarWriter { start, ..SidecarWriter::continued(pid) };
        let program = "/usr/bin/secretive-program".to_owned();
        let host = host.to_owned();
        writer.add(Event::Start(Start { trace_start: start, pid, word_size: 8, host, program }));
        writer
    }

    pub(crate) fn add(&mut self, event: Event) {
        let time = self.start * 1_000 + self.time;
        self.bytes.extend(self.encoder.add(&Timed { time, event }).unwrap_or_default());
    }

    /// Ends the packet.
    pub(crate) fn flush(&mut self) {
        self.bytes.extend(self.encoder.take().unwrap_or_default());
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.flush();
        self.bytes
    }

    pub(crate) fn open_probes(&mut self) {
        let probes = [
            (ProbeKind::Count, "parser/tokens"),
            (ProbeKind::Timer, "parser/time"),
            (ProbeKind::Value, "parser/depth"),
            (ProbeKind::Text, "phase"),
            (ProbeKind::Tag, "cache/entries"),
            (ProbeKind::Count, HOSTILE),
            (ProbeKind::Value, "unused"),
        ];
        for (probe, (kind, name)) in (0..).zip(probes) {
            self.add(Event::Probe { probe, kind, name: name.to_owned() });
        }
    }

    /// What the program does in the tick of this number, from 1.
    pub(crate) fn tick(&mut self, tick: u64) {
        self.time = tick * TICK;
        self.add(Event::Count { probe: 0, total: tick * tick });
        self.add(Event::Timer { probe: 1, total_ns: tick * 25_000_000, runs: tick, running: 0 });
        let depth = (tick % 10) as f64;
        self.add(Event::Value { probe: 2, last: depth, least: depth - 0.5, greatest: depth + 7.0 });
        if tick % 50 == 1 {
            let text = if tick == 1 { "reading" } else { "writing" }.to_owned();
            self.add(Event::Text { probe: 3, text });
        }
        let words = 1_024 * tick;
        let size = if tick < 50 { TagSize::Exactly(words) } else { TagSize::AtLeast(words) };
        self.add(Event::Tag { probe: 4, live: tick % 7, marked: tick, size });
        self.time_line(tick);
        if tick.is_multiple_of(20) {
            self.add(Event::Log { text: format!("tick {tick}") });
        }
        if tick == 70 {
            self.add(Event::Pause { text: "look at the cache".to_owned() });
        }
    }

    fn time_line(&mut self, tick: u64) {
        let pauses = |kind, count, each: u64, longest_ns| {
            Event::Pauses(Pauses { kind, count, total_ns: count * each, longest_ns })
        };
        self.add(pauses(SliceKind::Minor, 4 * tick, 500_000, 500_000 + tick));
        self.add(pauses(
            SliceKind::Major,
            tick,
            2_000_000,
            if tick == 33 { 9_000_000 } else { 2_000_000 },
        ));
        if tick.is_multiple_of(10) {
            self.add(Event::Slice { kind: SliceKind::Major, domain: 0, ns: 2_000_000 });
        }
        self.add(Event::Heap(Heap {
            minor_words: Some(100_000 * tick),
            promoted_words: Some(5_000 * tick),
            major_words: Some(6_000 * tick),
            minor_collections: Some(4 * tick),
            major_collections: Some(tick / 10),
            compactions: Some(0),
            heap_words: Some((1 << 17) + 1_000 * tick),
            live_words: Some((1 << 16) + 1_000 * tick),
        }));
        self.add(Event::System(System {
            rss: Some((8 << 20) + (tick << 14)),
            cgroup_usage: Some(16 << 20),
            cgroup_limit: Some(64 << 20),
            threads: Some(if tick < 50 { 1 } else { 3 }),
            domains: Some(1),
        }));
    }
}

/// The whole sidecar.
pub(crate) fn sidecar() -> Vec<u8> {
    sidecar_of(START)
}

/// The same of a trace that began at this time, in microseconds since the epoch.
pub(crate) fn sidecar_of(start: u64) -> Vec<u8> {
    let mut writer = SidecarWriter::of_trace(start, 4_711, "elsewhere");
    writer.open_probes();
    for tick in 1..=TICKS {
        writer.tick(tick);
        if tick.is_multiple_of(3) {
            writer.flush();
        }
    }
    writer.add(Event::Lost { logs: 2, slices: 5 });
    writer.add(Event::End);
    writer.finish()
}
