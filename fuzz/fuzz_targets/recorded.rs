//! What a reader returns for some bytes, in a form that can be compared.

use heaptap_trace::{
    Event, EventKind, EventSource as _, Input, LocationTable, Losses, ReadError, Reader,
    TraceReader as _, TraceTotals,
};

/// Frames compared at either end of a backtrace: hostile ones have millions.
const FRAMES: usize = 64;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedEvent {
    pub time: u64,
    pub domain: u16,
    pub kind: RecordedKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedKind {
    Alloc {
        id: u64,
        length: u64,
        samples: u64,
        source: heaptap_trace::Source,
        common_prefix: u64,
        depth: usize,
        newest: Vec<u64>,
        new: Vec<u64>,
    },
    Promote(u64),
    Collect(u64),
}

impl RecordedEvent {
    /// The event without what it borrows.
    pub fn of(event: &Event<'_>) -> RecordedEvent {
        let kind = match event.kind {
            EventKind::Alloc(allocation) => RecordedKind::Alloc {
                id: allocation.id,
                length: allocation.length,
                samples: allocation.samples,
                source: allocation.source,
                common_prefix: allocation.backtrace.common_prefix,
                depth: allocation.backtrace.frames.len(),
                newest: allocation.backtrace.frames.iter().rev().take(FRAMES).copied().collect(),
                new: allocation.backtrace.new.iter().take(FRAMES).copied().collect(),
            },
            EventKind::Promote(id) => RecordedKind::Promote(id),
            EventKind::Collect(id) => RecordedKind::Collect(id),
            other => panic!("{other:?}"),
        };
        RecordedEvent { time: event.time, domain: event.domain, kind }
    }
}

/// Everything that a reader returns.
pub struct Reading {
    pub events: Vec<RecordedEvent>,
    /// The error that ended it, if one did.
    pub error: Option<String>,
    pub totals: TraceTotals,
    pub losses: Losses,
}

/// Every frame can be looked up, and what is found is within its bounds.
fn walk_locations(event: &Event<'_>, table: &LocationTable) {
    let EventKind::Alloc(allocation) = event.kind else { return };
    for &code in allocation.backtrace.new.iter().take(FRAMES) {
        for location in table.resolve(code) {
            assert!(location.line <= 0xf_ffff);
            assert!(location.start_char <= 0xff && location.end_char <= 0x3ff);
            assert!(!location.file.contains(&0) && !location.definition.contains(&0));
        }
    }
}

/// Reads to the end or to the first error.
pub fn read<I: Input>(reader: Result<Reader<I>, ReadError>) -> Reading {
    let mut reading = Reading {
        events: Vec::new(),
        error: None,
        totals: TraceTotals::default(),
        losses: Losses::default(),
    };
    let mut reader = match reader {
        Ok(reader) => reader,
        Err(error) => return Reading { error: Some(error.to_string()), ..reading },
    };
    loop {
        match reader.next_located() {
            Ok(Some((event, table))) => {
                walk_locations(&event, table);
                reading.events.push(RecordedEvent::of(&event));
            }
            Ok(None) => break,
            Err(error) => {
                reading.error = Some(error.to_string());
                break;
            }
        }
    }
    reading.totals = *reader.totals();
    reading.losses = reader.losses().clone();
    reading
}
