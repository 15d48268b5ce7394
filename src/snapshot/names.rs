//! Names of the functions whose addresses occur in a snapshot, and the end of the file.
//!
//! On the ordering thread: this allocates, and reads debug information of the runtime and the
//! program's symbols.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Seek as _, SeekFrom};

use heaptap_heap::{Encoder, MetaKey, Name, Suspended, Tracked, Workspace};
use heaptap_symbols::{Process, SourceLocation, Symbols};

use super::output::DescriptorSink;
use super::walker::HeapWalker;

/// The most bytes of debug information that are kept in the program's memory.
const LIMIT: u64 = 128 << 20;

/// Completes the file that the walk has left. `traced` is when the file of the trace begins, in
/// microseconds since the Unix epoch, and which of its blocks are where.
pub(super) fn append(
    mut file: &File,
    sink: DescriptorSink,
    workspace: &mut Workspace,
    walker: &dyn HeapWalker,
    traced: Option<(u64, impl Iterator<Item = Tracked>)>,
) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let suspended = Suspended::read(BufReader::with_capacity(1 << 20, file))
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?
        .ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "the walk did not end"))?;
    file.seek(SeekFrom::End(0))?;
    let totals = suspended.totals;
    let mut encoder = Encoder::resume(sink, workspace, walker.header_words(), totals);
    if let Some((start, blocks)) = traced {
        encoder.meta_number(MetaKey::TRACE_START, start).map_err(io::Error::from_raw_os_error)?;
        for block in blocks {
            encoder.tracked(block).map_err(io::Error::from_raw_os_error)?;
        }
    }
    let (mut named, mut result) = (HashSet::new(), Ok(()));
    walker.name_code(&suspended, &mut |name| {
        if named.insert(name.address) && result.is_ok() {
            result = encoder.name(name);
        }
    });
    let mut symbols = Symbols::of_process(Process::This, LIMIT);
    for &address in suspended.codes.iter().filter(|address| !named.contains(*address)) {
        let mut is_first = true;
        symbols.locate(
            behind(address, &suspended.return_addresses),
            &mut |found: SourceLocation<'_>| {
                if std::mem::take(&mut is_first) && result.is_ok() {
                    let SourceLocation { function, file, line, .. } = found;
                    result = encoder.name(Name { address, function, file, line });
                }
            },
        );
    }
    result.and_then(|()| encoder.finish()).map(drop).map_err(io::Error::from_raw_os_error)
}

/// Symbols are asked for return addresses, which lie behind the call that is meant. An address
/// that is none is where a function begins, and one more lies in it.
fn behind(address: u64, return_addresses: &[u64]) -> u64 {
    let is_return_address = return_addresses.binary_search(&address).is_ok();
    if is_return_address { address } else { address.saturating_add(1) }
}
