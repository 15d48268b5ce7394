//! Reads the lanes.

use heaptap_trace::{LiveSink, WriteError};

use crate::queue::Consumer;
use crate::writer::context::Context;
use crate::writer::trace_file::TraceFile;

/// Whether a pass over the lanes found anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    Something,
    Nothing,
}

/// How often in a row one lane is read before the others get their turn.
const MAX_TURNS: usize = 8;

/// Reads each lane once, as far as possible.
///
/// A record of a block that another lane has allocated must wait until its
/// allocation has been read. Since a block's allocation is committed before
/// anything else happens to it, lanes never wait for each other in a circle:
/// repeating this until it finds nothing reads everything.
pub(crate) fn drain<S: LiveSink>(
    consumer: &mut Consumer,
    file: &mut TraceFile<S>,
    context: &mut impl Context,
) -> Result<Drained, WriteError> {
    let mut drained = Drained::Nothing;
    for lane in 0..consumer.lanes() {
        for _ in 0..MAX_TURNS {
            let words = consumer.peek(lane);
            let read = file.apply_all(lane as u16, words, context)?;
            if read == 0 {
                break;
            }
            consumer.consume(lane, read);
            drained = Drained::Something;
            // The rest goes into the next part.
            if file.series.as_ref().is_some_and(|series| series.is_due()) {
                consumer.reclaim();
                return Ok(drained);
            }
        }
    }
    consumer.reclaim();
    Ok(drained)
}
