//! What another process needs in order to complete a file.

use std::io::Read;

use super::error::ReadError;
use super::reader::Reader;
use crate::model::{Item, RootOwner};
use crate::totals::Totals;

/// A file that [`Encoder::suspend`](crate::Encoder::suspend) left, to be completed by
/// [`Encoder::resume`](crate::Encoder::resume).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspended {
    /// What the file holds.
    pub totals: Totals,
    /// The code addresses that need names, ascending and each once.
    pub codes: Vec<u64>,
    /// The return addresses of frames that hold a root, ascending and each once. An address
    /// that is not among them is where a function begins.
    pub return_addresses: Vec<u64>,
}

impl Suspended {
    /// Reads a file to its end. `None` if its writer did not get as far as to suspend it.
    pub fn read(input: impl Read) -> Result<Option<Suspended>, ReadError> {
        // The code addresses in blocks are listed once more.
        let mut reader = Reader::without_blocks(input)?;
        let (mut codes, mut return_addresses) = (Vec::new(), Vec::new());
        while let Some(item) = reader.next_item()? {
            match item {
                Item::CodeSeen(address) => codes.push(address),
                Item::Root(root) => return_addresses.extend(return_address(root.owner)),
                _ => {}
            }
        }
        for addresses in [&mut codes, &mut return_addresses] {
            addresses.sort_unstable();
            addresses.dedup();
        }
        Ok(reader.totals().map(|&totals| Suspended { totals, codes, return_addresses }))
    }
}

/// Of the frame that holds a root. 0 stands for none.
fn return_address(owner: RootOwner) -> Option<u64> {
    match owner {
        RootOwner::Stack { return_address, .. }
        | RootOwner::Handler { return_address, .. }
        | RootOwner::Continuation { return_address, .. } => {
            Some(return_address).filter(|&address| address != 0)
        }
        _ => None,
    }
}
