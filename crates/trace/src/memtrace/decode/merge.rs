//! Several domains in the order of time.
//!
//! In a file the packets of a domain are in order. But a domain with few events
//! keeps its packet open, so that the packet may come long after those of other
//! domains that cover the same time. So the merge reads the file once for each
//! domain, in parallel, which takes the memory of as many readers and needs an
//! input that can be opened again.
//!
//! A first pass over the whole file finds the domains, the locations and the
//! defects.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use crate::input::Input;
use crate::memtrace::decode::reader::Reader;
use crate::model::event::Event;
use crate::model::{
    EventSource, Limits, LocationTable, Losses, Mode, ReadError, TraceInfo, TraceReader,
};

/// The order of events: time, allocations before promotions and collections,
/// which may be of the same block in another domain, the domain's number, and the
/// index of its reader.
type MergeKey = Reverse<(u64, bool, u16, usize)>;

/// Reads the events of all domains in the order of time.
pub struct Merged<I> {
    /// The first pass, at its end.
    whole: Reader<I>,
    readers: Vec<Reader<I>>,
    /// The next event of every reader except the one used last.
    next: BinaryHeap<MergeKey>,
    last_used: Option<usize>,
}

impl<I: Input> Merged<I> {
    /// Reads the input once in full and opens it again for each domain.
    pub fn open(
        mut reopen: impl FnMut() -> io::Result<I>,
        mode: Mode,
        limits: Limits,
    ) -> Result<Self, ReadError> {
        let mut whole = Reader::open(reopen()?, mode, limits)?;
        while whole.next_event()?.is_some() {}
        let numbers = whole.domains();
        let mut merged =
            Merged { whole, readers: Vec::new(), next: BinaryHeap::new(), last_used: None };
        for number in numbers {
            let mut reader = Reader::open(reopen()?, Mode::Lenient, limits)?;
            reader.only = Some(number);
            // A file that is still being written may have grown since.
            reader.until = merged.whole.offset();
            merged.readers.push(reader);
            merged.queue(merged.readers.len() - 1)?;
        }
        Ok(merged)
    }

    /// The next event in the order of time, or `None` at the end.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, ReadError> {
        Ok(self.next_located()?.map(|(event, _)| event))
    }

    /// Queues a reader's next event.
    fn queue(&mut self, place: usize) -> Result<(), ReadError> {
        if let Some(reader) = self.readers.get_mut(place)
            && let Some((time, allocates)) = reader.peek()?
        {
            let number = reader.only.unwrap_or(0);
            self.next.push(Reverse((time, !allocates, number, place)));
        }
        Ok(())
    }
}

impl<I: Input> EventSource for Merged<I> {
    fn info(&self) -> &TraceInfo {
        self.whole.info()
    }

    fn locations(&self) -> &LocationTable {
        self.whole.locations()
    }

    fn losses(&self) -> &Losses {
        self.whole.losses()
    }

    fn next_located(&mut self) -> Result<Option<(Event<'_>, &LocationTable)>, ReadError> {
        if let Some(place) = self.last_used.take() {
            self.queue(place)?;
        }
        let Some(Reverse((.., place))) = self.next.pop() else { return Ok(None) };
        self.last_used = Some(place);
        let Some(reader) = self.readers.get_mut(place) else { return Ok(None) };
        let event = reader.next_event()?;
        Ok(event.map(|event| (event, self.whole.locations())))
    }
}
