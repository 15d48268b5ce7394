//! Reading the lanes.

use std::io::Write;

use heaptap_trace::WriteError;

use crate::queue::Consumer;
use crate::writer::Host;
use crate::writer::trace_file::TraceFile;

/// Whether a pass over the lanes found anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    Something,
    Nothing,
}

/// How often in a row one lane is read before the others get their turn.
const TURNS: usize = 8;

/// Reads each lane once, as far as it goes.
///
/// A lane that tells of a block which another has allocated must wait until
/// that one was read. Since whatever happens to a block happens after its
/// allocation was committed, the lanes never wait for each other in a circle:
/// passes until nothing is found read everything.
pub(crate) fn drain<W: Write>(
    consumer: &mut Consumer,
    file: &mut TraceFile<W>,
    host: &mut impl Host,
) -> Result<Drained, WriteError> {
    let mut drained = Drained::Nothing;
    for lane in 0..consumer.lanes() {
        for _ in 0..TURNS {
            let words = consumer.peek(lane);
            let read = file.apply_all(lane as u16, words, host)?;
            if read == 0 {
                break;
            }
            consumer.consume(lane, read);
            drained = Drained::Something;
        }
    }
    consumer.reclaim();
    Ok(drained)
}
