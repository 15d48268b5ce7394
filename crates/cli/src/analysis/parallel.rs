//! Aggregation on two threads.
//!
//! The thread that reads a trace decodes it and finds the call path of each event
//! ([`EventResolver`]). A second thread counts ([`EventCounter`]). Events pass between them in
//! batches through a channel with a bound, and the buffers of the batches come back to
//! be filled again, so that memory does not depend on the trace. The second thread sees
//! the same events in the same order as one thread would: the figures are the same.
//!
//! The second thread starts only after [`ALONE`] events, and never if there is only one
//! processor, or if no thread can be started.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle, available_parallelism};

use heaptap_report::{
    Aggregate, Aggregator, BlockTable, EventCounter, EventResolver, Options, PathMoves,
    ResolvedEvent, TraceEnding,
};
use heaptap_trace::{Event, LocationTable, TraceInfo};

/// The events of a batch, 80 KiB: they fit the second-level cache of a processor.
const BATCH: usize = 2048;

/// The most batches that wait to be counted.
const WAITING: usize = 4;

/// The events before the second thread starts. A shorter trace is read in a few
/// milliseconds.
const ALONE: u64 = 32 << 10;

/// An aggregator that uses two threads where there are two processors.
pub(crate) struct ParallelAggregator {
    stage: Stage,
}

enum Stage {
    /// One thread does everything. The second starts after this many events.
    One(Box<Aggregator>, u64),
    Two(Box<TwoThreads>),
    /// While the stage changes.
    Changing,
}

impl ParallelAggregator {
    pub(crate) fn new(info: &TraceInfo, options: Options) -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        let alone = if processors > 1 { ALONE } else { u64::MAX };
        ParallelAggregator::starting_after(alone, info, options)
    }

    /// Starts the second thread after this many events.
    fn starting_after(alone: u64, info: &TraceInfo, options: Options) -> Self {
        let aggregator = Box::new(Aggregator::new(info, options));
        ParallelAggregator { stage: Stage::One(aggregator, alone) }
    }

    /// Takes the next event, in the order of time.
    #[inline]
    pub(crate) fn event(&mut self, event: &Event<'_>, table: &LocationTable) {
        self.event_at(event, table, 0);
    }

    /// The same of a trace with several rates, where the last block was sampled at the one with this number.
    #[inline]
    pub(crate) fn event_at(&mut self, event: &Event<'_>, table: &LocationTable, rate: u32) {
        match &mut self.stage {
            Stage::Two(two) => two.event(event, table, rate),
            Stage::One(aggregator, alone) => {
                aggregator.event_at(event, table, rate);
                *alone -= 1;
                if *alone == 0 {
                    self.start_second();
                }
            }
            Stage::Changing => {}
        }
    }

    /// Takes the end of one of several traces, whose blocks have these ids.
    pub(crate) fn end_trace(&mut self, ids: Range<u64>, ending: TraceEnding) {
        match &mut self.stage {
            Stage::One(aggregator, _) => aggregator.end_trace(ids, ending),
            Stage::Two(two) => two.end_trace(ids, ending),
            Stage::Changing => {}
        }
    }

    /// Starts the second thread, or goes on without one if that fails.
    #[cold]
    fn start_second(&mut self) {
        let Stage::One(aggregator, _) = std::mem::replace(&mut self.stage, Stage::Changing) else {
            return;
        };
        self.stage = match Counter::start() {
            Ok(counter) => Stage::Two(Box::new(TwoThreads::new(*aggregator, counter))),
            Err(_) => Stage::One(aggregator, u64::MAX),
        };
    }

    /// The aggregate and the table of blocks up to the latest event. Waits until everything is
    /// counted.
    pub(crate) fn so_far(&mut self) -> (&Aggregate, &BlockTable) {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Changing) {
            // Another second thread starts after the next event.
            Stage::Two(two) => Stage::One(Box::new(two.finish()), 1),
            other => other,
        };
        match &mut self.stage {
            Stage::One(aggregator, _) => aggregator.aggregate_with_blocks(),
            _ => unreachable!("a stage is always followed by another"),
        }
    }

    /// The aggregate after the last event, and the table of blocks.
    pub(crate) fn finish_with_blocks(self) -> (Aggregate, BlockTable) {
        match self.stage {
            Stage::One(aggregator, _) => aggregator.finish_with_blocks(),
            Stage::Two(two) => two.finish().finish_with_blocks(),
            Stage::Changing => unreachable!("a stage is always followed by another"),
        }
    }
}

/// What the second thread is to do.
enum Work {
    /// Go on from here. The first message.
    Begin(Box<EventCounter>),
    Events(Vec<ResolvedEvent>),
    MovePaths(PathMoves),
    EndTrace(Range<u64>, TraceEnding),
}

/// The second thread, from outside.
struct Counter {
    work: SyncSender<Work>,
    /// Batches that were counted, without their events.
    empty: Receiver<Vec<ResolvedEvent>>,
    /// `None` once it was joined. Its result is the counter that it began with.
    thread: Option<JoinHandle<Option<Box<EventCounter>>>>,
}

impl Counter {
    fn start() -> std::io::Result<Counter> {
        let (work, incoming) = sync_channel(WAITING);
        let (counted, empty) = channel();
        let thread =
            Builder::new().name("counter".into()).spawn(move || count(&incoming, &counted))?;
        Ok(Counter { work, empty, thread: Some(thread) })
    }

    /// Passes work to the thread. If that has panicked, so does this.
    fn send(&mut self, work: Work) {
        if self.work.send(work).is_err() {
            join(self.thread.take());
        }
    }

    /// Waits until everything is counted.
    fn finish(self) -> Option<Box<EventCounter>> {
        drop(self.work);
        join(self.thread)
    }
}

/// The result of the thread, or its panic.
fn join(thread: Option<JoinHandle<Option<Box<EventCounter>>>>) -> Option<Box<EventCounter>> {
    thread?.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// The second thread: counts until the other end of the channel is dropped.
fn count(work: &Receiver<Work>, counted: &Sender<Vec<ResolvedEvent>>) -> Option<Box<EventCounter>> {
    let Ok(Work::Begin(mut counter)) = work.recv() else { return None };
    while let Ok(next) = work.recv() {
        match next {
            Work::Events(mut events) => {
                events.iter().for_each(|event| counter.event(event));
                events.clear();
                // Nobody needs it after the last batch.
                let _ = counted.send(events);
            }
            Work::MovePaths(moves) => counter.move_paths(&moves),
            Work::EndTrace(ids, ending) => counter.end_trace(ids, ending),
            Work::Begin(another) => counter = another,
        }
    }
    Some(counter)
}

/// An aggregation on two threads, seen from the one that reads.
struct TwoThreads {
    resolver: EventResolver,
    batch: Vec<ResolvedEvent>,
    counter: Counter,
}

impl TwoThreads {
    fn new(aggregator: Aggregator, mut counter: Counter) -> Self {
        let (resolver, counting) = aggregator.split();
        counter.send(Work::Begin(Box::new(counting)));
        TwoThreads { resolver, batch: Vec::with_capacity(BATCH), counter }
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>, table: &LocationTable, rate: u32) {
        if let Some(moves) = self.resolver.make_room(event) {
            self.send_batch();
            self.counter.send(Work::MovePaths(moves));
        }
        self.batch.push(self.resolver.resolve_at(event, table, rate));
        if self.batch.len() >= BATCH {
            self.send_batch();
        }
    }

    fn end_trace(&mut self, ids: Range<u64>, ending: TraceEnding) {
        self.send_batch();
        self.counter.send(Work::EndTrace(ids, ending));
    }

    fn send_batch(&mut self) {
        let empty = self.counter.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
        let batch = std::mem::replace(&mut self.batch, empty);
        self.counter.send(Work::Events(batch));
    }

    fn finish(mut self) -> Aggregator {
        self.send_batch();
        match self.counter.finish() {
            Some(counter) => Aggregator::join(self.resolver, *counter),
            None => unreachable!("the event counter was its first message"),
        }
    }
}

#[cfg(test)]
mod tests {
    use heaptap_report::{Archive, Depth, OverTime};
    use heaptap_trace::EventSource as _;
    use heaptap_trace::{Mode, Reader};

    use super::*;

    const TRACE: &[u8] = include_bytes!("../../../trace/tests/data/tiny.v2.ctf");

    /// What an aggregator that starts its second thread after this many events finds in
    /// many passes over a trace. Somebody looks at the figures after each `look` events.
    fn archive(alone: u64, look: usize) -> Vec<u8> {
        let options = Options {
            depth: Depth::Whole,
            over_time: OverTime::LiveSize,
            most_blocks: 700,
            ..Options::default()
        };
        let mut reader = Reader::from_slice(TRACE, Mode::Strict).unwrap();
        let info = reader.info().clone();
        let mut aggregator = ParallelAggregator::starting_after(alone, &info, options.clone());
        let mut events = 0;
        while events < 10 * BATCH {
            reader = Reader::from_slice(TRACE, Mode::Strict).unwrap();
            while let Some((event, table)) = reader.next_located().unwrap() {
                aggregator.event(&event, table);
                events += 1;
                if events % look == 0 {
                    assert_eq!(aggregator.so_far().0.events(), events as u64);
                }
            }
            aggregator.end_trace(0..events as u64 / 3, TraceEnding::Process);
        }
        let is_two = matches!(aggregator.stage, Stage::Two(_));
        assert_eq!(is_two, alone < events as u64 && events % look != 0);
        let (aggregate, blocks) = aggregator.finish_with_blocks();
        assert_eq!(aggregate.events(), events as u64);
        let archive = Archive {
            name: String::new(),
            info,
            cut_short: None,
            incomplete: None,
            notices: Vec::new(),
            locations: reader.into_locations(),
            aggregate,
            blocks,
            answers: Vec::new(),
        };
        archive.to_bytes()
    }

    #[test]
    fn two_threads_have_the_figures_of_one() {
        let one = archive(u64::MAX, usize::MAX);
        for alone in [1, 100, BATCH as u64 * 3 + 1] {
            let two = archive(alone, usize::MAX);
            assert!(two == one, "the second thread began after {alone} events");
        }
    }

    #[test]
    fn figures_that_somebody_looks_at_on_the_way_are_the_same_at_the_end() {
        let undisturbed = archive(u64::MAX, usize::MAX);
        for (alone, look) in [(u64::MAX, 777), (1, 777), (100, BATCH + 1), (5_000, 9_000)] {
            assert!(archive(alone, look) == undisturbed, "{alone}, looked at each {look} events");
        }
    }

    #[test]
    fn a_reading_can_be_given_up() {
        let mut reader = Reader::from_slice(TRACE, Mode::Strict).unwrap();
        let info = reader.info().clone();
        let mut aggregator = ParallelAggregator::starting_after(1, &info, Options::default());
        while let Some((event, table)) = reader.next_located().unwrap() {
            aggregator.event(&event, table);
        }
        drop(aggregator);
    }
}
