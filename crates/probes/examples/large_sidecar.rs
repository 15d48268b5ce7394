//! Writes a large sidecar, as of a program that ran for long: `large_sidecar FILE HOURS PROBES`.

use std::io::Write as _;

use heaptap_probes::{Encoder, Event, Heap, ProbeKind, Start, System, Timed};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "large.ctf.probes".to_owned());
    let mut number =
        |default| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (hours, probes): (u64, u64) = (number(1), number(20));
    let mut out = std::io::BufWriter::new(std::fs::File::create(path)?);
    let mut encoder = Encoder::new(1);
    let mut add = |time: u64, event: Event, out: &mut dyn std::io::Write| {
        let packet = encoder.add(&Timed { time: 1_700_000_000_000_000_000 + time, event });
        // One packet for each tick, as the plugin writes them.
        let rest = if time % 100_000_000 == 99 { encoder.take() } else { None };
        packet.into_iter().chain(rest).try_for_each(|packet| out.write_all(&packet))
    };
    let start = Start { trace_start: 1_700_000_000_000_000, word_size: 8, ..Start::default() };
    add(0, Event::Start(start), &mut out)?;
    for probe in 0..probes as u32 {
        let name = format!("group {}/probe {probe}", probe % 7);
        add(0, Event::Probe { probe, kind: ProbeKind::Value, name }, &mut out)?;
    }
    for tick in 1..=hours * 36_000 {
        let time = tick * 100_000_000;
        for probe in 0..probes as u32 {
            let last = (tick % 1_000) as f64;
            add(time, Event::Value { probe, last, least: last, greatest: last }, &mut out)?;
        }
        let heap =
            Heap { heap_words: Some(tick), minor_collections: Some(tick), ..Heap::default() };
        add(time, Event::Heap(heap), &mut out)?;
        add(time, Event::Log { text: format!("tick {tick}") }, &mut out)?;
        add(time + 99, Event::System(System { rss: Some(tick), ..System::default() }), &mut out)?;
    }
    out.flush()
}
