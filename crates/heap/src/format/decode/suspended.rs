//! What another process needs in order to complete a file.

use std::io::Read;

use super::error::ReadError;
use super::reader::Reader;
use crate::format::model::Item;
use crate::format::totals::Totals;

/// A file that [`Encoder::suspend`](crate::Encoder::suspend) left, to be completed by
/// [`Encoder::resume`](crate::Encoder::resume).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspended {
    /// What the file holds.
    pub totals: Totals,
    /// The code addresses that need names, ascending and each once.
    pub codes: Vec<u64>,
}

impl Suspended {
    /// Reads a file to its end. `None` if its writer did not get as far as to suspend it.
    pub fn read(input: impl Read) -> Result<Option<Suspended>, ReadError> {
        let mut reader = Reader::new(input)?;
        let mut codes = Vec::new();
        while let Some(item) = reader.next_item()? {
            if let Item::CodeSeen(address) = item {
                codes.push(address);
            }
        }
        codes.sort_unstable();
        codes.dedup();
        Ok(reader.totals().map(|&totals| Suspended { totals, codes }))
    }
}
