//! What the reader counts: events and bytes.

/// Counts of a trace's events, and of its bytes by their use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceTotals {
    /// Packets used, the trace info's included.
    pub packets: u64,
    /// Allocations.
    pub allocations: u64,
    /// Promotions.
    pub promotions: u64,
    /// Collections.
    pub collections: u64,
    /// Location events.
    pub locations: u64,
    /// Bytes of packet headers.
    pub header_bytes: u64,
    /// Bytes of the trace info.
    pub info_bytes: u64,
    /// Bytes of location events.
    pub location_bytes: u64,
    /// Bytes of allocation events without their backtraces.
    pub allocation_bytes: u64,
    /// Bytes of backtraces: prefix, count and entries.
    pub backtrace_bytes: u64,
    /// Bytes of promotions.
    pub promotion_bytes: u64,
    /// Bytes of collections.
    pub collection_bytes: u64,
}

impl TraceTotals {
    /// Allocations, promotions and collections together.
    pub fn events(&self) -> u64 {
        self.allocations + self.promotions + self.collections
    }

    /// Bytes of a packet's body that do not belong to backtraces.
    pub(crate) fn bytes_but_backtraces(&self) -> u64 {
        self.allocation_bytes + self.promotion_bytes + self.collection_bytes + self.location_bytes
    }

    pub(crate) fn add(&mut self, other: &TraceTotals) {
        let TraceTotals {
            packets,
            allocations,
            promotions,
            collections,
            locations,
            header_bytes,
            info_bytes,
            location_bytes,
            allocation_bytes,
            backtrace_bytes,
            promotion_bytes,
            collection_bytes,
        } = other;
        self.packets += packets;
        self.allocations += allocations;
        self.promotions += promotions;
        self.collections += collections;
        self.locations += locations;
        self.header_bytes += header_bytes;
        self.info_bytes += info_bytes;
        self.location_bytes += location_bytes;
        self.allocation_bytes += allocation_bytes;
        self.backtrace_bytes += backtrace_bytes;
        self.promotion_bytes += promotion_bytes;
        self.collection_bytes += collection_bytes;
    }
}
