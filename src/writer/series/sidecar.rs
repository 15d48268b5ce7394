//! The sidecar of a part while it is written.

use std::io;

use heaptap_trace::{CarriedBlock, CarriedEnds, Locate, SeriesEncoder, SeriesHead};

use super::live_blocks::{CallTree, LiveBlock, LiveBlocks};
use super::store::{Store, StoredFile};

/// An open sidecar.
pub(crate) struct PartSidecar {
    out: StoredFile,
    store: Store,
    encoder: SeriesEncoder,
    /// The number in the sidecar of each node of the call tree; 0 if it is not in it.
    nodes: Vec<u32>,
    /// How many rates it has.
    rates: usize,
    /// Ends that further ones may follow on.
    last: Option<CarriedEnds>,
}

/// A block as the sidecar has it.
pub(super) fn carried(id: u64, block: &LiveBlock, node: u32, position: u64) -> CarriedBlock {
    let &LiveBlock { birth, promotion, length, samples, rate, domain, source, .. } = block;
    let promotion = Some(promotion).filter(|&time| time != 0);
    CarriedBlock { id, birth, promotion, length, samples, source, domain, node, rate, position }
}

impl PartSidecar {
    /// Begins a sidecar in an empty file with what is alive, unless that takes more than `most`
    /// bytes.
    pub(super) fn begin(
        (out, store): (StoredFile, Store),
        head: &SeriesHead,
        rates: &[f64],
        live: &LiveBlocks,
        most: u64,
        locate: &mut impl Locate,
    ) -> io::Result<PartSidecar> {
        let encoder = SeriesEncoder::new(head);
        let nodes = Vec::new();
        let mut sidecar = PartSidecar { out, store, encoder, nodes, rates: 0, last: None };
        sidecar.know_rates(rates);
        for (id, block) in live.by_birth() {
            let node = sidecar.node(block.node, &live.tree, locate);
            sidecar.block(&carried(id, &block, node, head.first_id));
            sidecar.flush_full()?;
            if sidecar.out.written() > most {
                return sidecar.without_base(head, rates, live.len());
            }
        }
        sidecar.encoder.base_complete();
        sidecar.flush()?;
        Ok(sidecar)
    }

    /// Begins again, and does not list what is alive.
    fn without_base(
        mut self,
        head: &SeriesHead,
        rates: &[f64],
        blocks: usize,
    ) -> io::Result<PartSidecar> {
        self.out.restart()?;
        self.encoder = SeriesEncoder::new(head);
        self.nodes.clear();
        self.rates = 0;
        self.know_rates(rates);
        self.encoder.base_left_out(blocks as u64);
        self.flush()?;
        Ok(self)
    }

    /// Adds rates that it does not have yet.
    pub(super) fn know_rates(&mut self, rates: &[f64]) {
        for &rate in rates.get(self.rates..).unwrap_or_default() {
            self.encoder.rate(rate);
        }
        self.rates = rates.len();
    }

    /// The number in the sidecar of a node of the call tree.
    pub(super) fn node(&mut self, node: u32, tree: &CallTree, locate: &mut impl Locate) -> u32 {
        if self.nodes.len() <= tree.len() {
            self.nodes.resize(tree.len() + 1, 0);
        }
        let mut new = Vec::new();
        let (mut at, mut number) = (node, 0);
        while let Some((outer, code)) = tree.node(at) {
            number = self.nodes.get(at as usize).copied().unwrap_or(0);
            if number != 0 {
                break;
            }
            new.push((at, code));
            at = outer;
        }
        for &(node, code) in new.iter().rev() {
            let code = self.encoder.code(code, locate);
            number = self.encoder.node(number, code);
            if let Some(place) = self.nodes.get_mut(node as usize) {
                *place = number;
            }
        }
        number
    }

    /// The call tree has other numbers from now on.
    pub(super) fn forget_nodes(&mut self) {
        self.nodes = Vec::new();
        self.encoder.forget_nodes();
    }

    pub(super) fn block(&mut self, block: &CarriedBlock) {
        self.put_last_ends();
        self.encoder.block(block);
    }

    /// Adds ends, together with those before if they follow on them.
    pub(super) fn ends(&mut self, ends: CarriedEnds) {
        if let Some(last) = &mut self.last
            && (last.end, last.time, last.domain) == (ends.end, ends.time, ends.domain)
            && last.position == ends.position
            && last.first + last.count == ends.first
        {
            last.count += ends.count;
            return;
        }
        self.put_last_ends();
        self.last = Some(ends);
    }

    fn put_last_ends(&mut self) {
        if let Some(ends) = self.last.take() {
            self.encoder.ends(&ends);
        }
    }

    /// The bytes that are not written yet.
    pub(super) fn pending(&self) -> usize {
        self.encoder.pending()
    }

    pub(super) fn flush_full(&mut self) -> io::Result<()> {
        if self.encoder.is_full() { self.flush() } else { Ok(()) }
    }

    /// Writes everything that was added.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.put_last_ends();
        let Some(chunk) = self.encoder.take() else { return Ok(()) };
        self.store.write(&mut self.out, &chunk).map(|_| ())
    }

    /// The trace of the part was truncated, and has begun again.
    pub(super) fn restarted(&mut self, first_id: u64) {
        self.put_last_ends();
        self.encoder.restarted(first_id);
    }

    /// The part is complete, and ends at this time.
    pub(crate) fn end(&mut self, time: u64) -> io::Result<()> {
        self.put_last_ends();
        self.encoder.part_complete(time);
        self.flush()
    }
}
