//! Small models whose interleavings loom explores, up to three preemptions.
//!
//! `Watch` makes loom report a word that is read and written at the same time. The
//! models also check that a lane yields exactly what was committed, in order, and that
//! in the end every buffer that no lane holds is free again.

use crate::queue::{Channel, Consumer, Producer};
use loom::thread;
use std::sync::Arc;

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Writes `count` records of one word each; returns those that were not refused.
fn write(producer: &mut Producer, tag: u64, count: u64) -> Vec<u64> {
    let mut written = Vec::new();
    for i in 0..count {
        let value = tag * 100 + i;
        if let Ok(room) = producer.reserve(1) {
            room[0] = value;
            producer.commit(1);
            written.push(value);
        }
    }
    written
}

/// A thread per lane that writes two records and ends its producer.
fn start_two(channel: &Arc<Channel>) -> Vec<thread::JoinHandle<Vec<u64>>> {
    // Both exist before either thread can end, so they are on two lanes.
    let producers = [channel.producer().unwrap(), channel.producer().unwrap()];
    let start = |mut producer: Producer| {
        let tag = u64::from(producer.lane()) + 1;
        thread::spawn(move || write(&mut producer, tag, 2))
    };
    producers.into_iter().map(start).collect()
}

/// Reads every lane once and consumes at most `most` words of each.
fn round(consumer: &mut Consumer, most: usize, read: &mut [Vec<u64>]) {
    for lane in 0..consumer.lanes() {
        let words = consumer.peek(lane);
        let taken = words.len().min(most);
        read[lane].extend_from_slice(&words[..taken]);
        consumer.consume(lane, taken);
    }
}

fn drain(consumer: &mut Consumer, read: &mut [Vec<u64>]) {
    while (0..consumer.lanes()).any(|lane| !consumer.peek(lane).is_empty()) {
        round(consumer, usize::MAX, read);
    }
}

#[test]
fn two_producers_and_a_reader() {
    explore(|| {
        let (channel, mut consumer) = Channel::with_buffer_words(3, 1).unwrap();
        let writers = start_two(&channel);
        let mut read = vec![Vec::new(); 2];
        round(&mut consumer, 1, &mut read);
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        drain(&mut consumer, &mut read);
        assert_eq!(read, written);
        assert_eq!((0..3).filter(|_| channel.pool.free.pop().is_some()).count(), 3);
    });
}

#[test]
fn a_current_buffer_is_read_while_it_is_filled_and_replaced() {
    explore(|| {
        let (channel, mut consumer) = Channel::with_buffer_words(2, 2).unwrap();
        let mut producer = channel.producer().unwrap();
        let writer = thread::spawn(move || write(&mut producer, 1, 5));
        let mut read = vec![Vec::new()];
        round(&mut consumer, 1, &mut read);
        round(&mut consumer, 1, &mut read);
        let written = writer.join().unwrap();
        drain(&mut consumer, &mut read);
        assert_eq!(read, [written]);
    });
}

#[test]
fn an_idle_buffer_is_reclaimed_from_its_producer() {
    explore(|| {
        let (channel, mut consumer) = Channel::with_buffer_words(1, 3).unwrap();
        let writers = start_two(&channel);
        let mut read = vec![Vec::new(); 2];
        round(&mut consumer, usize::MAX, &mut read);
        consumer.reclaim();
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        drain(&mut consumer, &mut read);
        assert_eq!(read, written);
        assert!(channel.pool.free.pop().is_some());
    });
}

#[test]
fn a_pinned_lane_keeps_its_buffer() {
    explore(|| {
        let (channel, mut consumer) = Channel::with_buffer_words(8, 2).unwrap();
        // The pool runs low.
        (0..7).for_each(|_| assert!(channel.pool.free.pop().is_some()));
        let mut producer = channel.producer().unwrap();
        let writer = thread::spawn(move || write(&mut producer, 1, 3));
        let mut read = vec![Vec::new()];
        round(&mut consumer, usize::MAX, &mut read);
        assert_eq!(consumer.reclaim(), 0);
        let written = writer.join().unwrap();
        drain(&mut consumer, &mut read);
        assert_eq!(read, [written]);
    });
}

#[test]
fn a_lane_continues_with_its_next_producer() {
    explore(|| {
        let (channel, mut consumer) = Channel::with_buffer_words(3, 2).unwrap();
        let first = channel.producer().unwrap();
        let writer = thread::spawn(move || {
            let mut first = first;
            let mut written = write(&mut first, 1, 1);
            first.end();
            let mut second = channel.producer().unwrap();
            assert_eq!(second.lane(), 0);
            written.extend(write(&mut second, 2, 2));
            written
        });
        let mut read = vec![Vec::new()];
        round(&mut consumer, 1, &mut read);
        consumer.reclaim();
        let written = writer.join().unwrap();
        drain(&mut consumer, &mut read);
        assert_eq!(read, [written]);
    });
}
