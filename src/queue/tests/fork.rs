//! A child forked while other threads are in the middle of queue operations.

use crate::queue::{Channel, Producer};
use crate::sys::testing::{in_a_fork, in_a_process};
use std::sync::atomic::{AtomicBool, Ordering};

fn write(producer: &mut Producer, words: usize) {
    if let Ok(room) = producer.reserve(words) {
        room.fill(words as u64);
        producer.commit(words);
    }
}

#[test]
fn a_child_abandons_the_channel_and_makes_its_own() {
    in_a_process(module_path!(), "a_child_abandons_the_channel_and_makes_its_own", || {
        let (channel, mut consumer) = Channel::with_buffer_words(8, 16).unwrap();
        let mut own = Some(channel.producer().unwrap());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let (mut producer, stop) = (channel.producer().unwrap(), &stop);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        write(&mut producer, 9);
                    }
                });
            }
            let stop_reading = &stop;
            scope.spawn(move || {
                while !stop_reading.load(Ordering::Relaxed) {
                    for lane in 0..consumer.lanes() {
                        let words = consumer.peek(lane).len();
                        consumer.consume(lane, words);
                    }
                    consumer.reclaim();
                }
            });
            for _ in 0..50 {
                write(own.as_mut().unwrap(), 9);
                in_a_fork(|| {
                    own.take().unwrap().abandon();
                    let (channel, mut consumer) = Channel::new(4).unwrap();
                    let mut producer = channel.producer().unwrap();
                    write(&mut producer, 3);
                    assert_eq!(consumer.peek(0), [3, 3, 3]);
                });
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
}
