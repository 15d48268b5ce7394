//! One thread plays both ends.

use crate::queue::channel::MAX_LANES;
use crate::queue::producer::Refusal;
use crate::queue::{BUFFER_WORDS, Channel, Consumer, Producer, WaitOutcome};
use core::time::Duration;
use proptest::prelude::*;
use std::collections::VecDeque;

fn put(producer: &mut Producer, record: &[u64]) -> Result<(), Refusal> {
    producer.reserve(record.len())?.copy_from_slice(record);
    producer.commit(record.len());
    Ok(())
}

fn take_all(consumer: &mut Consumer, lane: usize) -> Vec<u64> {
    let mut all = Vec::new();
    loop {
        let words = consumer.peek(lane).to_vec();
        if words.is_empty() {
            return all;
        }
        consumer.consume(lane, words.len());
        all.extend(words);
    }
}

#[test]
fn an_idle_producers_partial_buffer_is_read() {
    let (channel, mut consumer) = Channel::new(2).unwrap();
    let mut producer = channel.producer().unwrap();
    assert_eq!(consumer.peek(0), []);
    put(&mut producer, &[1, 2, 3]).unwrap();
    assert_eq!(consumer.peek(0), [1, 2, 3]);
    consumer.consume(0, 2);
    assert_eq!(consumer.peek(0), [3]);
    put(&mut producer, &[4]).unwrap();
    assert_eq!(take_all(&mut consumer, 0), [3, 4]);
    assert_eq!(channel.free_buffers(), 1, "the producer still has it");
}

#[test]
fn a_reservation_is_invisible_until_committed() {
    let (channel, mut consumer) = Channel::new(2).unwrap();
    let mut producer = channel.producer().unwrap();
    producer.reserve(5).unwrap().fill(9);
    assert_eq!(consumer.peek(0), []);
    producer.reserve(4).unwrap().fill(8);
    producer.commit(2);
    assert_eq!(consumer.peek(0), [8, 8], "a shorter record than was reserved");
}

#[test]
fn records_do_not_straddle_buffers() {
    let (channel, mut consumer) = Channel::with_buffer_words(3, 4).unwrap();
    let mut producer = channel.producer().unwrap();
    put(&mut producer, &[1, 1, 1]).unwrap();
    put(&mut producer, &[2, 2]).unwrap();
    assert_eq!(consumer.peek(0), [1, 1, 1]);
    consumer.consume(0, 3);
    assert_eq!(consumer.peek(0), [2, 2]);
    assert_eq!(channel.free_buffers(), 2, "the first is back");
}

#[test]
fn refusals_say_why_and_lose_nothing() {
    let (channel, mut consumer) = Channel::with_buffer_words(2, 4).unwrap();
    let mut producer = channel.producer().unwrap();
    assert_eq!(producer.reserve(5), Err(Refusal::TooLong));
    assert_eq!(producer.reserve(usize::MAX), Err(Refusal::TooLong));
    for value in [1, 2] {
        put(&mut producer, &[value; 4]).unwrap();
    }
    assert_eq!(put(&mut producer, &[3; 4]), Err(Refusal::NoBuffer));
    assert_eq!(put(&mut producer, &[3; 1]), Err(Refusal::NoBuffer));
    assert_eq!(producer.wait_for_buffer(Duration::ZERO), WaitOutcome::TimedOut);
    assert_eq!(producer.wait_for_buffer(Duration::from_millis(1)), WaitOutcome::TimedOut);
    assert_eq!(take_all(&mut consumer, 0), [1, 1, 1, 1, 2, 2, 2, 2]);
    assert_eq!(producer.wait_for_buffer(Duration::from_secs(3600)), WaitOutcome::NotNeeded);
    put(&mut producer, &[4]).unwrap();
    assert_eq!(take_all(&mut consumer, 0), [4]);
}

#[test]
fn sizes_that_do_not_fit_a_lanes_word_are_refused() {
    assert!(Channel::new(0).is_none());
    assert!(Channel::with_buffer_words(65_537, 1).is_none());
    assert!(Channel::with_buffer_words(1, 16_384).is_none());
    assert!(Channel::with_buffer_words(65_536, 1).is_some());
}

#[test]
fn a_wake_up_after_the_ticket_is_not_lost() {
    let (channel, consumer) = Channel::new(1).unwrap();
    let ticket = consumer.ticket();
    channel.wake_writer();
    consumer.wait(ticket, Duration::from_secs(3600));
}

#[test]
fn a_quarter_of_full_buffers_wakes_the_writer() {
    let (channel, consumer) = Channel::with_buffer_words(8, 4).unwrap();
    let mut producer = channel.producer().unwrap();
    let ticket = consumer.ticket();
    for value in 0..3 {
        put(&mut producer, &[value; 4]).unwrap();
    }
    // Two were handed over. If that does not wake the writer, this sleeps for an hour.
    consumer.wait(ticket, Duration::from_secs(3600));
}

#[test]
fn a_whole_buffer_is_one_record() {
    let (channel, mut consumer) = Channel::new(1).unwrap();
    let mut producer = channel.producer().unwrap();
    let record: Vec<u64> = (0..BUFFER_WORDS as u64).collect();
    put(&mut producer, &record).unwrap();
    assert_eq!(take_all(&mut consumer, 0), record);
    assert_eq!(put(&mut producer, &[1]), Err(Refusal::NoBuffer), "full, but not collected yet");
    assert_eq!(take_all(&mut consumer, 0), []);
    put(&mut producer, &[1]).unwrap();
}

#[test]
fn lanes_are_reused_and_keep_their_order() {
    let (channel, mut consumer) = Channel::with_buffer_words(4, 4).unwrap();
    let (mut first, other) = (channel.producer().unwrap(), channel.producer().unwrap());
    assert_eq!((first.lane(), other.lane(), consumer.lanes()), (0, 1, 2));
    put(&mut first, &[1]).unwrap();
    first.end();
    let mut second = channel.producer().unwrap();
    assert_eq!(second.lane(), 0);
    put(&mut second, &[2]).unwrap();
    drop(second);
    assert_eq!(take_all(&mut consumer, 0), [1, 2]);
    assert_eq!(channel.free_buffers(), 4);
    assert_eq!(consumer.lanes(), 2);
}

#[test]
fn the_last_lane_works_and_there_are_no_more() {
    let (channel, mut consumer) = Channel::with_buffer_words(1, 4).unwrap();
    let mut producers: Vec<_> = (0..MAX_LANES).map_while(|_| channel.producer()).collect();
    assert_eq!(producers.len(), MAX_LANES);
    assert!(channel.producer().is_none());
    put(producers.last_mut().unwrap(), &[7]).unwrap();
    assert_eq!(consumer.peek(MAX_LANES - 1), [7]);
    assert_eq!(consumer.peek(MAX_LANES), []);
    drop(producers.swap_remove(5));
    assert_eq!(channel.producer().unwrap().lane(), 5);
}

#[test]
fn more_lanes_than_buffers_all_make_progress() {
    let (channel, mut consumer) = Channel::with_buffer_words(4, 8).unwrap();
    let mut producers: Vec<_> = (0..100).map(|_| channel.producer().unwrap()).collect();
    for round in 0..3 {
        for (lane, producer) in producers.iter_mut().enumerate() {
            while put(producer, &[lane as u64, round]) == Err(Refusal::NoBuffer) {
                assert_ne!(consumer.reclaim(), 0, "lane {lane} finds no idle buffers");
            }
            assert_eq!(take_all(&mut consumer, lane), [lane as u64, round]);
        }
    }
}

#[test]
fn a_lane_that_is_held_up_leaves_the_reserve_to_others() {
    let (channel, mut consumer) = Channel::with_buffer_words(16, 1).unwrap();
    let mut alone = channel.producer().unwrap();
    let fill = |producer: &mut Producer| (0..).take_while(|&i| put(producer, &[i]).is_ok()).count();
    assert_eq!(fill(&mut alone), 16, "there are no others");
    take_all(&mut consumer, 0);
    let (mut held_up, mut other) = (alone, channel.producer().unwrap());
    assert_eq!(fill(&mut held_up), 14);
    put(&mut other, &[1]).unwrap();
    assert_eq!(put(&mut other, &[2]), Err(Refusal::NoBuffer));
    assert_eq!(take_all(&mut consumer, 1), [1]);
    put(&mut other, &[2]).unwrap();
    assert_eq!(put(&mut held_up, &[0]), Err(Refusal::NoBuffer));
    assert_eq!(take_all(&mut consumer, 0).len(), 14);
    put(&mut held_up, &[0]).unwrap();
}

#[test]
fn no_buffer_is_reclaimed_while_enough_are_free_or_words_are_unread() {
    let (channel, mut consumer) = Channel::with_buffer_words(2, 8).unwrap();
    let mut producer = channel.producer().unwrap();
    put(&mut producer, &[1]).unwrap();
    assert_eq!(consumer.reclaim(), 0, "unread");
    assert_eq!(take_all(&mut consumer, 0), [1]);
    producer.reserve(1).unwrap();
    assert_eq!(consumer.reclaim(), 0, "being written");
    producer.commit(0);
    assert_eq!(consumer.reclaim(), 1);
    put(&mut producer, &[2]).unwrap();
    assert_eq!(take_all(&mut consumer, 0), [2]);

    let (channel, mut consumer) = Channel::with_buffer_words(8, 8).unwrap();
    let mut producer = channel.producer().unwrap();
    put(&mut producer, &[1]).unwrap();
    assert_eq!(take_all(&mut consumer, 0), [1]);
    assert_eq!(consumer.reclaim(), 0, "enough");
}

#[test]
fn pinned_lanes_keep_their_buffers() {
    let (channel, mut consumer) = Channel::with_buffer_words(8, 8).unwrap();
    let mut producers = [channel.producer().unwrap(), channel.producer().unwrap()];
    for (lane, producer) in producers.iter_mut().enumerate() {
        put(producer, &[1]).unwrap();
        assert_eq!(take_all(&mut consumer, lane), [1]);
    }
    while channel.pool.free.pop().is_some() {}
    assert_eq!(consumer.reclaim(), 1, "the second lane's");
    put(&mut producers[0], &[2]).unwrap();
    assert_eq!(take_all(&mut consumer, 0), [2]);
    put(&mut producers[1], &[3]).unwrap();
    assert_eq!(take_all(&mut consumer, 1), [3]);
}

#[test]
fn an_abandoned_producer_pushes_nothing() {
    let (channel, consumer) = Channel::with_buffer_words(2, 8).unwrap();
    let mut producer = channel.producer().unwrap();
    put(&mut producer, &[1]).unwrap();
    producer.abandon();
    assert_eq!(channel.pool.full.len(), 0);
    drop(consumer);
    assert_eq!(std::sync::Arc::strong_count(&channel), 1);
}

#[derive(Clone, Debug)]
enum Step {
    Put { lane: usize, words: usize },
    Take { lane: usize, most: usize },
    Replace { lane: usize },
    Reclaim,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_usize..3, 0_usize..6).prop_map(|(lane, words)| Step::Put { lane, words }),
        4 => (0_usize..3, 0_usize..9).prop_map(|(lane, most)| Step::Take { lane, most }),
        1 => (0_usize..3).prop_map(|lane| Step::Replace { lane }),
        1 => Just(Step::Reclaim),
    ]
}

proptest! {
    #[test]
    fn each_lane_is_a_queue(steps in proptest::collection::vec(step(), 0..600)) {
        let (channel, mut consumer) = Channel::with_buffer_words(5, 5).unwrap();
        let mut producers: Vec<_> = (0..3).map(|_| channel.producer()).collect();
        let mut oracle = vec![VecDeque::new(); 3];
        let mut next = 0;
        for step in steps {
            match step {
                Step::Put { lane, words } => {
                    let record: Vec<u64> = (next..next + words as u64).collect();
                    next += words as u64;
                    if put(producers[lane].as_mut().unwrap(), &record).is_ok() {
                        oracle[lane].extend(record);
                    }
                }
                Step::Take { lane, most } => {
                    let words = consumer.peek(lane).to_vec();
                    prop_assert_eq!(words.is_empty(), oracle[lane].is_empty());
                    let taken = words.len().min(most);
                    consumer.consume(lane, taken);
                    let expected: Vec<u64> = oracle[lane].drain(..taken).collect();
                    prop_assert_eq!(&words[..taken], &*expected);
                }
                Step::Replace { lane } => {
                    producers[lane] = None;
                    producers[lane] = channel.producer();
                    prop_assert_eq!(usize::from(producers[lane].as_ref().unwrap().lane()), lane);
                }
                Step::Reclaim => { consumer.reclaim(); }
            }
        }
        drop(producers);
        for (lane, expected) in oracle.into_iter().enumerate() {
            prop_assert_eq!(take_all(&mut consumer, lane), Vec::from(expected));
        }
        prop_assert_eq!(channel.free_buffers(), 5);
    }
}
