//! Names of the functions whose addresses occur in a snapshot, and the end of the file.
//!
//! On the ordering thread: this allocates and reads the program's symbols.

use std::fs::File;
use std::io::{self, BufReader, Seek as _, SeekFrom};

use heaptap_heap::{Encoder, Followed, Name, Suspended, Workspace};
use heaptap_symbols::{Process, SourceLocation, Symbols};

use super::output::DescriptorSink;

/// The most bytes of debug information that are kept in the program's memory.
const LIMIT: u64 = 128 << 20;

/// Completes the file that the walk has left.
pub(super) fn append(
    mut file: &File,
    sink: DescriptorSink,
    workspace: &mut Workspace,
    header_words: u32,
    followed: impl Iterator<Item = Followed>,
) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let suspended = Suspended::read(BufReader::with_capacity(1 << 20, file))
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?
        .ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "the walk did not end"))?;
    file.seek(SeekFrom::End(0))?;
    let mut encoder = Encoder::resume(sink, workspace, header_words, suspended.totals);
    for followed in followed {
        encoder.followed(followed).map_err(io::Error::from_raw_os_error)?;
    }
    let mut symbols = Symbols::of_process(Process::This, LIMIT);
    let mut result = Ok(());
    for &address in &suspended.codes {
        let mut is_first = true;
        symbols.locate(behind(address), &mut |found: SourceLocation<'_>| {
            if std::mem::take(&mut is_first) && result.is_ok() {
                let SourceLocation { function, file, line, .. } = found;
                result = encoder.name(Name { address, function, file, line });
            }
        });
    }
    result.and_then(|()| encoder.finish()).map(drop).map_err(io::Error::from_raw_os_error)
}

/// Symbols are asked for return addresses, which lie behind what is meant. Functions begin at
/// multiples of 16, where return addresses seldom are.
fn behind(address: u64) -> u64 {
    if address.is_multiple_of(16) { address.saturating_add(1) } else { address }
}
