//! A table of 32-bit numbers.

/// Stands for no number.
pub(crate) const NONE: u32 = u32::MAX;

/// Numbers by index. An index beyond the table reads as [`NONE`] and is not written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers(Vec<u32>);

impl Numbers {
    pub(crate) fn new(count: usize, value: u32) -> Numbers {
        Numbers(vec![value; count])
    }

    /// From 0 on.
    pub(crate) fn ascending(count: usize) -> Numbers {
        Numbers((0..count as u32).collect())
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> u32 {
        self.0.get(index as usize).copied().unwrap_or(NONE)
    }

    #[inline]
    pub(crate) fn set(&mut self, index: u32, value: u32) {
        if let Some(place) = self.0.get_mut(index as usize) {
            *place = value;
        }
    }

    pub(crate) fn push(&mut self, value: u32) {
        self.0.push(value);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn slice(&self, from: u32, to: u32) -> &[u32] {
        self.0.get(from as usize..to as usize).unwrap_or_default()
    }
}

/// Rows of numbers, one behind the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    /// Where each row begins, and the end of the last.
    offsets: Numbers,
    entries: Numbers,
}

impl Rows {
    /// Rows of `count` keys from pairs of key and entry, which `pairs` enumerates twice in the same order.
    /// `None` if there are more than 2^32 - 2.
    pub(crate) fn new(
        count: usize,
        mut pairs: impl FnMut(&mut dyn FnMut(u32, u32)),
    ) -> Option<Rows> {
        let mut offsets = Numbers::new(count + 1, 0);
        let mut total = 0u64;
        pairs(&mut |key, _| {
            offsets.set(key + 1, offsets.get(key + 1).wrapping_add(1));
            total += 1;
        });
        if total >= u64::from(NONE) {
            return None;
        }
        for key in 0..count as u32 {
            offsets.set(key + 1, offsets.get(key) + offsets.get(key + 1));
        }
        let mut entries = Numbers::new(total as usize, 0);
        let mut next = offsets.clone();
        pairs(&mut |key, entry| {
            let at = next.get(key);
            entries.set(at, entry);
            next.set(key, at + 1);
        });
        Some(Rows { offsets, entries })
    }

    #[inline]
    pub(crate) fn row(&self, key: u32) -> &[u32] {
        self.entries.slice(self.offsets.get(key), self.offsets.get(key + 1))
    }
}
