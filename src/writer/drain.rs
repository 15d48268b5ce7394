//! Reading the lanes.

use std::io::Write;

use heaptap_trace::WriteError;

use crate::queue::{Consumer, Record};
use crate::writer::Host;
use crate::writer::trace_file::{Step, TraceFile};

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
            let read = apply_all(file, lane as u16, words, host)?;
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

/// Writes the records in `words` and says how many words were read: fewer than
/// all if a record comes too early.
fn apply_all<W: Write>(
    file: &mut TraceFile<W>,
    lane: u16,
    words: &[u64],
    host: &mut impl Host,
) -> Result<usize, WriteError> {
    let mut rest = words;
    while let Some((record, behind)) = Record::take(rest) {
        if file.apply(lane, record, host)? == Step::Early {
            return Ok(words.len() - rest.len());
        }
        rest = behind;
    }
    debug_assert!(rest.is_empty(), "words that are no record");
    Ok(words.len())
}
