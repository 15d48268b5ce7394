//! Any bytes can be read as the sidecar of a series: no panic, bounded memory and time, and the same
//! events whether it is there at once or grows, read beside a part or by itself.

#![no_main]

use heaptap_trace::{EventKind, SeriesReader, SeriesRecord, SeriesSummary, SeriesTail};
use libfuzzer_sys::fuzz_target;

/// The most events of a sidecar that lists this few blocks.
const MOST: u64 = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let reader = || SeriesReader::new(bytes).expect("memory can be read");
    let mut records = reader();
    let summary = SeriesSummary::of(&mut records).expect("memory can be read");
    let (mut blocks, mut ends, mut unlisted) = (0_u64, 0_u64, false);
    let (mut records, mut stack) = (reader(), Vec::new());
    while let Some(record) = records.next_record().expect("memory can be read") {
        match record {
            SeriesRecord::Block(block) => {
                blocks += 1;
                let (node, rate) = (block.node, block.rate);
                records.stack(node, &mut stack);
                let rate = records.rate(rate).expect("a rate that is known");
                assert!(rate > 0.0 && rate <= 1.0);
                assert!(stack.iter().all(|&code| records.locations().get(code).is_some()));
            }
            SeriesRecord::Ends(found) => ends = ends.saturating_add(found.count),
            SeriesRecord::BaseLeftOut { .. } | SeriesRecord::Restarted { .. } => unlisted = true,
            _ => {}
        }
    }
    assert_eq!(summary.defect.map(|(_, defect)| defect), records.defect());
    assert!(unlisted || ends <= 2 * blocks);
    if ends > MOST {
        return;
    }
    let mut tail = SeriesTail::default();
    tail.begin_part(reader(), summary.first_id, true);
    let (mut found, mut born) = (0, 0);
    tail.rest(&mut |event, _, _| match event.kind {
        EventKind::Alloc(_) => born += 1,
        _ => found += 1,
    })
    .expect("memory can be read");
    // A base whose end is missing is read as far as it goes.
    assert_eq!(born, blocks);
    assert!(found >= ends && found <= ends + blocks);
});
