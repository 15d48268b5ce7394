//! The hash table of an image's dynamic symbols. Its format is only documented by the
//! loader's source (`elf/dl-lookup.c`, glibc 2.36).

use std::ffi::CStr;

use super::tables::Tables;

/// An image's `DT_GNU_HASH`: four 32-bit words of header, a Bloom filter, the first
/// symbol of each bucket, and for each symbol from `first_symbol` on a word with its
/// hash, whose lowest bit ends the bucket.
pub(super) struct GnuHash {
    tables: Tables,
    bucket_count: usize,
    /// Symbols before it are imported and have no hash.
    first_symbol: usize,
    /// The address of the buckets.
    buckets: usize,
    /// The address of the hashes.
    chains: usize,
}

impl GnuHash {
    pub(super) fn read(tables: Tables, table: usize) -> GnuHash {
        let [bucket_count, first_symbol, filter_words, _]: [u32; 4] = tables.read(table);
        let buckets = table + 16 + filter_words as usize * 8;
        let bucket_count = bucket_count as usize;
        let chains = buckets + bucket_count * 4;
        GnuHash { tables, bucket_count, first_symbol: first_symbol as usize, buckets, chains }
    }

    /// The indices of the symbols whose hash is that of this name.
    pub(super) fn candidates<'a>(&'a self, name: &CStr) -> impl Iterator<Item = usize> + use<'a> {
        let step = |hash: u32, &byte: &u8| hash.wrapping_mul(33).wrapping_add(u32::from(byte));
        let wanted = name.to_bytes().iter().fold(5381, step);
        let bucket = (wanted as usize).checked_rem(self.bucket_count);
        let first = bucket.map_or(0, |bucket| self.first_of(bucket));
        self.bucket_from(first).filter(move |&symbol| self.hash(symbol) | 1 == wanted | 1)
    }

    /// The indices of all symbols that the image defines.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        // They are in the order of their buckets.
        let last_bucket = (0..self.bucket_count).map(|bucket| self.first_of(bucket)).max();
        let last = self.bucket_from(last_bucket.unwrap_or(0)).last();
        self.first_symbol..last.map_or(self.first_symbol, |last| last + 1)
    }

    /// The first symbol of a bucket; 0 if it is empty.
    fn first_of(&self, bucket: usize) -> usize {
        self.tables.read::<u32>(self.buckets + bucket * 4) as usize
    }

    /// The indices of a bucket's symbols, of which `first` is the first.
    fn bucket_from(&self, first: usize) -> impl Iterator<Item = usize> {
        let mut next = Some(first).filter(|&first| first >= self.first_symbol && first != 0);
        std::iter::from_fn(move || {
            let symbol = next?;
            next = (self.hash(symbol) & 1 == 0).then_some(symbol + 1);
            Some(symbol)
        })
    }

    fn hash(&self, symbol: usize) -> u32 {
        self.tables.read(self.chains + (symbol - self.first_symbol) * 4)
    }
}
