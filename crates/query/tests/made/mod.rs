//! Archives of made programs.

use heaptap_report::{Aggregator, Archive, Depth, MOST_BLOCKS, Options};
use heaptap_trace::{Allocation, Backtrace, Event, EventKind, LocationTable, Source, TraceInfo};

/// A block of one sample, allocated by one function.
pub(crate) fn block(id: u64, source: Source) -> EventKind<'static> {
    let backtrace = Backtrace { frames: &[1], common_prefix: 0, new: &[1] };
    EventKind::Alloc(Allocation { id, length: 7, samples: 1, source, backtrace })
}

/// The archive of a program, sampled at 1 %, that passes its events with their times.
pub(crate) fn archive(program: impl FnOnce(&mut dyn FnMut(u64, EventKind<'_>))) -> Archive {
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
    let options = Options { depth: Depth::Whole, most_blocks: MOST_BLOCKS, ..Options::default() };
    let locations = LocationTable::default();
    let mut aggregator = Aggregator::new(&info, options);
    program(&mut |time, kind| aggregator.event(&Event { time, domain: 0, kind }, &locations));
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
}
