//! All domains of a trace, and finding one by its number.

use crate::memtrace::encode::domain::{DomainWriter, Shared};

/// The domains of a trace and what they share.
pub(super) struct Domains<W> {
    pub(super) shared: Shared<W>,
    pub(super) list: Vec<DomainWriter>,
    /// The index in `list` of each domain number.
    indices: Vec<Option<u16>>,
    pub(super) start_time: u64,
}

impl<W> Domains<W> {
    /// With one domain, which begins at the trace's start.
    pub(super) fn new(shared: Shared<W>, first: u16, start_time: u64) -> Self {
        let mut domains = Domains { shared, list: Vec::new(), indices: Vec::new(), start_time };
        domains.begin(first, start_time);
        domains
    }

    /// Begins again with one domain.
    pub(super) fn restart(&mut self, first: u16, start_time: u64) {
        self.list.clear();
        self.indices.clear();
        self.start_time = start_time;
        self.begin(first, start_time);
    }

    /// The index of a domain in `list`, if it has begun.
    #[inline(always)]
    pub(super) fn index(&self, number: u16) -> Option<usize> {
        self.indices.get(usize::from(number)).copied().flatten().map(usize::from)
    }

    /// Adds a domain that begins at `time`; returns its index.
    #[cold]
    pub(super) fn begin(&mut self, number: u16, time: u64) -> usize {
        self.list.push(DomainWriter::new(&mut self.shared, number, time));
        let index = self.list.len() - 1;
        let number = usize::from(number);
        if self.indices.len() <= number {
            self.indices.resize(number + 1, None);
        }
        if let Some(known) = self.indices.get_mut(number) {
            // There are no more domains than numbers, so an index fits too.
            *known = u16::try_from(index).ok();
        }
        index
    }
}
