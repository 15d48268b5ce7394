//! The cost of a record on its way from a mutator to the writer.
//!
//! Both ends run on one thread, so no core waits for another: the numbers are those of the
//! code itself. Every bench asserts that it has read what it wrote.
//!
//! The modules are private to the package, so their files are compiled into this bench.

use core::time::Duration;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use queue::{BUFFER_WORDS, Channel, Consumer, Producer};
use std::hint::black_box;
use sys::clock::TickSource;

#[allow(dead_code, unused_imports, reason = "the package uses more of it")]
#[path = "../src/queue/mod.rs"]
mod queue;
#[allow(dead_code, unused_imports, reason = "the package uses more of it")]
#[path = "../src/sys/mod.rs"]
mod sys;

/// The limits are those of the plugin, not those of its unit tests.
const SMALL_LIMITS: bool = false;

/// Writes a record. If no buffer is free, reads everything first.
fn put(producer: &mut Producer, consumer: &mut Consumer, words: usize, read: &mut u64) {
    loop {
        if let Ok(record) = producer.reserve(words) {
            record.fill(black_box(7));
            producer.commit(words);
            return;
        }
        take_all(consumer, read);
    }
}

fn take_all(consumer: &mut Consumer, read: &mut u64) {
    loop {
        let words = consumer.peek(0).len();
        if words == 0 {
            return;
        }
        *read += words as u64;
        consumer.consume(0, words);
    }
}

/// Reserve, fill and commit, and the record's share of the hand-over and recycling.
fn records(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("record");
    for words in [4, 32, 128, BUFFER_WORDS] {
        let (channel, mut consumer) = Channel::new(128).expect("memory");
        let mut producer = channel.producer().expect("a lane");
        let (mut written, mut read) = (0, 0);
        group.throughput(Throughput::Bytes(words as u64 * 8));
        group.bench_function(format!("{words} words"), |bencher| {
            bencher.iter(|| {
                put(&mut producer, &mut consumer, words, &mut read);
                written += words as u64;
            });
        });
        take_all(&mut consumer, &mut read);
        assert_eq!(read, written);
    }
    group.finish();
}

/// A buffer for each record of one word: only hand-over, taking and recycling.
fn hand_over(criterion: &mut Criterion) {
    let (channel, mut consumer) = Channel::with_buffer_words(128, 1).expect("memory");
    let mut producer = channel.producer().expect("a lane");
    let (mut written, mut read) = (0, 0);
    criterion.bench_function("hand over", |bencher| {
        bencher.iter(|| {
            put(&mut producer, &mut consumer, 1, &mut read);
            written += 1;
        });
    });
    take_all(&mut consumer, &mut read);
    assert_eq!(read, written);
}

fn stamp(criterion: &mut Criterion) {
    for ticks in [TickSource::detect(), TickSource::Monotonic] {
        let first = ticks.now();
        criterion.bench_function(&format!("stamp by {ticks:?}"), |bencher| {
            bencher.iter(|| black_box(ticks).now());
        });
        assert!(ticks.now() > first);
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(2));
    targets = records, hand_over, stamp
}
criterion_main!(benches);
