//! The blocks whose lifetime is in a given range.
//!
//! A lifetime is known only at its end, so this takes a separate pass before the
//! one that counts. It keeps a bit for each block.

use std::ops::Range;

use hashbrown::HashMap;
use heaptap_trace::{Event, EventKind, LocationTable};

use crate::select::Span;
use crate::trace_ending::TraceEnding;

const PAGE_BITS: u32 = 16;
const WORDS: usize = (1 << PAGE_BITS) / 64;

/// The most blocks that may be alive at once: a table of 150 MB.
const MOST_LIVE: usize = (1 << 22) / 8 * 7;
/// The most pages of bits: 128 MB, for 10⁹ blocks.
const MOST_PAGES: usize = 1 << 14;

/// The ids of the blocks whose lifetime is in a span.
#[derive(Debug)]
pub struct Lifespans {
    span: Span,
    births: HashMap<u64, u64>,
    pages: HashMap<u64, Box<[u64; WORDS]>>,
    last: u64,
    overfull: bool,
}

impl Lifespans {
    /// For blocks that live this many microseconds.
    pub fn new(span: Span) -> Self {
        let (births, pages) = (HashMap::new(), HashMap::new());
        Lifespans { span, births, pages, last: 0, overfull: false }
    }

    /// Takes the next event, in the order of time.
    pub fn event(&mut self, event: &Event<'_>, _: &LocationTable) {
        self.last = self.last.max(event.time);
        match event.kind {
            EventKind::Alloc(allocation) => {
                self.overfull |= self.births.len() >= MOST_LIVE;
                if !self.overfull {
                    self.births.insert(allocation.id, event.time);
                }
            }
            EventKind::Collect(id) => {
                if let Some(birth) = self.births.remove(&id) {
                    self.judge(id, event.time.saturating_sub(birth));
                }
            }
            // Promotions and other kinds do not end a lifetime.
            _ => {}
        }
    }

    /// Takes the end of one of several traces, whose blocks have these ids.
    pub fn end_trace(&mut self, ids: Range<u64>, _: TraceEnding) {
        let ended: Vec<(u64, u64)> = self.births.extract_if(|id, _| ids.contains(id)).collect();
        for (id, birth) in ended {
            self.judge(id, self.last.saturating_sub(birth));
        }
    }

    /// After the last event. Returns false if more blocks were alive than can be
    /// tracked.
    #[must_use]
    pub fn finish(&mut self) -> bool {
        for (id, birth) in std::mem::take(&mut self.births) {
            self.judge(id, self.last.saturating_sub(birth));
        }
        !self.overfull
    }

    fn judge(&mut self, id: u64, lifetime: u64) {
        if !self.span.contains(lifetime) {
            return;
        }
        let number = id >> PAGE_BITS;
        if self.pages.len() >= MOST_PAGES && !self.pages.contains_key(&number) {
            self.overfull = true;
            return;
        }
        let page = self.pages.entry(number).or_insert_with(|| Box::new([0; WORDS]));
        let bit = id & ((1 << PAGE_BITS) - 1);
        page[(bit / 64) as usize] |= 1 << (bit % 64);
    }

    pub(crate) fn contains(&self, id: u64) -> bool {
        let bit = id & ((1 << PAGE_BITS) - 1);
        let page = self.pages.get(&(id >> PAGE_BITS));
        page.is_some_and(|page| page[(bit / 64) as usize] >> (bit % 64) & 1 == 1)
    }
}
