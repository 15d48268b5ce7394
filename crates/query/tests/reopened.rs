//! A trace that has grown takes the place of what was there of it before.

use heaptap_query::Engine;
use heaptap_report::{Aggregator, Archive, Depth, MOST_BLOCKS, Options};
use heaptap_trace::{Allocation, Backtrace, Event, EventKind, LocationTable, Source, TraceInfo};
use serde_json::Value;

/// The bytes of an archive of so many blocks.
fn archive(blocks: u64) -> Vec<u8> {
    let info = TraceInfo {
        sample_rate: 0.01,
        word_size: 64,
        executable: b"made".to_vec(),
        host: Vec::new(),
        runtime_params: Vec::new(),
        pid: 1,
        context: Vec::new(),
        start_time: 0,
        domain: 0,
    };
    let locations = LocationTable::default();
    let options = Options { depth: Depth::Whole, most_blocks: MOST_BLOCKS, ..Options::default() };
    let mut aggregator = Aggregator::new(&info, options);
    for id in 0..blocks {
        let backtrace = Backtrace { frames: &[1], common_prefix: 0, new: &[1] };
        let source = Source::Minor;
        let kind = EventKind::Alloc(Allocation { id, length: 7, samples: 1, source, backtrace });
        aggregator.event(&Event { time: id, domain: 0, kind }, &locations);
    }
    let (aggregate, blocks) = aggregator.finish_with_blocks();
    Archive {
        name: "made.ctf".to_owned(),
        info,
        cut_short: None,
        incomplete: None,
        notices: Vec::new(),
        aggregate,
        blocks,
        locations,
        answers: Vec::new(),
    }
    .to_bytes()
}

/// The samples of the table's rows.
fn samples(engine: &mut Engine) -> Value {
    let request = br#"{"q": "report", "trace": 0, "metric": "allocated", "by": "function"}"#;
    let mut answer: Value = serde_json::from_str(&engine.query(request)).unwrap();
    match answer["error"].take() {
        Value::Null => answer["table"]["total"]["samples"].take(),
        error => error,
    }
}

#[test]
fn the_larger_one_is_shown() {
    let mut engine = Engine::default();
    assert_eq!(engine.open(&archive(100)), Ok(0));
    assert_eq!(samples(&mut engine), 100);
    assert_eq!(engine.reopen(0, &archive(250)), Ok(()));
    assert_eq!(samples(&mut engine), 250);
    assert!(engine.reopen(1, &archive(250)).unwrap_err().contains("no trace 1"));
}

#[test]
fn what_is_not_an_archive_of_this_version_changes_nothing() {
    let mut engine = Engine::default();
    engine.open(&archive(100)).unwrap();
    let mut other_version = archive(250);
    other_version[b"heaptap archive ".len()] += 1;
    let error = engine.reopen(0, &other_version).unwrap_err();
    assert!(error.contains("another version"), "{error}");
    assert!(engine.reopen(0, b"<html>").is_err());
    assert_eq!(samples(&mut engine), 100);
}

#[test]
fn after_a_damaged_one_there_is_none_until_the_next() {
    let mut engine = Engine::default();
    engine.open(&archive(100)).unwrap();
    let mut damaged = archive(250);
    damaged.truncate(damaged.len() - 3);
    let error = engine.reopen(0, &damaged).unwrap_err();
    assert!(error.contains("at byte"), "{error}");
    assert_eq!(samples(&mut engine), "there is no trace 0");
    assert_eq!(engine.reopen(0, &archive(300)), Ok(()));
    assert_eq!(samples(&mut engine), 300);
}
