//! Real threads, many records, every word checked.

use crate::queue::{Channel, Consumer, Producer, WaitOutcome};
use core::time::Duration;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus as Random;
use std::sync::atomic::{AtomicUsize, Ordering};

const PRODUCERS: usize = 8;
const RECORDS: u64 = 200_000;
const LONG: Duration = Duration::from_secs(3600);

fn random(seed: u64) -> Random {
    Random::seed_from_u64(seed)
}

/// A record is its length, its number and random words from the lane's generator.
fn produce(mut producer: Producer) {
    let lane = producer.lane();
    let (mut sizes, mut contents) = (random(1000 + u64::from(lane)), random(u64::from(lane)));
    for number in 0..RECORDS {
        let len = record_len(&mut sizes);
        let record = loop {
            if producer.reserve(len).is_ok() {
                break producer.reserve(len).unwrap();
            }
            assert_ne!(producer.wait_for_buffer(LONG), WaitOutcome::TimedOut);
        };
        record[0] = len as u64;
        record[1] = number;
        record[2..].fill_with(|| contents.next_u64());
        producer.commit(len);
    }
}

/// Mostly short; one in 64 is long.
fn record_len(sizes: &mut Random) -> usize {
    let draw = sizes.next_u32() as usize;
    2 + if draw.is_multiple_of(64) { draw / 64 % 60 } else { draw / 64 % 8 }
}

/// Regenerates the records that a lane must deliver.
struct Expected {
    sizes: Random,
    contents: Random,
    number: u64,
}

impl Expected {
    fn new(lane: u64) -> Self {
        Self { sizes: random(1000 + lane), contents: random(lane), number: 0 }
    }

    fn check(&mut self, record: &[u64]) {
        assert_eq!(record.len(), record_len(&mut self.sizes));
        assert_eq!(record[1], self.number);
        self.number += 1;
        assert!(record[2..].iter().all(|&word| word == self.contents.next_u64()));
    }
}

/// Consumes at most `most` whole records of a lane. Returns whether it had any.
fn take_some(consumer: &mut Consumer, lane: usize, expected: &mut Expected, most: u32) -> bool {
    let words = consumer.peek(lane);
    let mut taken = 0;
    for _ in 0..most {
        let Some(&len) = words.get(taken) else { break };
        expected.check(&words[taken..taken + len as usize]);
        taken += len as usize;
    }
    let any = !words.is_empty();
    consumer.consume(lane, taken);
    any
}

fn consume(consumer: &mut Consumer, running: &AtomicUsize, seed: u64) -> Vec<Expected> {
    let mut random = random(seed);
    let mut lanes: Vec<_> = (0..PRODUCERS as u64).map(Expected::new).collect();
    loop {
        let ticket = consumer.ticket();
        let last = running.load(Ordering::Acquire) == 0;
        let mut any = false;
        for (lane, expected) in lanes.iter_mut().enumerate() {
            any |= take_some(consumer, lane, expected, random.next_u32() % 4000);
        }
        consumer.reclaim();
        if last && !any {
            return lanes;
        }
        match random.next_u32() % 64 {
            0 => std::thread::sleep(Duration::from_micros(u64::from(random.next_u32() % 2000))),
            1..8 => consumer.wait(ticket, Duration::from_millis(1)),
            _ => {}
        }
    }
}

fn run(buffers: usize, buffer_words: usize) {
    let (channel, mut consumer) = Channel::with_buffer_words(buffers, buffer_words).unwrap();
    let running = AtomicUsize::new(PRODUCERS);
    let producers: Vec<_> = (0..PRODUCERS).map(|_| channel.producer().unwrap()).collect();
    let lanes = std::thread::scope(|scope| {
        for producer in producers {
            let running = &running;
            scope.spawn(move || {
                produce(producer);
                running.fetch_sub(1, Ordering::Release);
            });
        }
        consume(&mut consumer, &running, 42)
    });
    assert!(lanes.iter().all(|lane| lane.number == RECORDS));
    assert_eq!(channel.free_buffers(), buffers);
}

#[test]
fn eight_producers_with_enough_buffers() {
    run(128, 8192);
}

#[test]
fn eight_producers_that_must_wait() {
    run(16, 64);
}

/// Makes progress only if the consumer reclaims idle buffers.
#[test]
fn eight_producers_on_three_buffers() {
    run(3, 256);
}
