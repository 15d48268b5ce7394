//! How the frames of one trace are written into another.

use heaptap_trace::{Code, Location, LocationList, LocationTable, NamedLocation};

use crate::exit_status::Failure;

/// How codes and their locations change between the traces.
pub(crate) trait Renaming {
    /// The code to write for a code that was read.
    fn code(&mut self, read: Code, table: &LocationTable) -> Result<Code, Failure>;

    /// The code that was read for a code that was written; `None` if it stands for a
    /// lost frame.
    fn origin(&self, written: Code) -> Option<Code>;

    /// Adds a location under its new names.
    fn rename(&mut self, location: Location<'_>, ids: &NamedLocation, list: &mut LocationList);
}

/// The location of a frame that damage made unknown.
pub(super) const LOST: Location<'static> =
    Location { file: b"<lost>", line: 0, start_char: 0, end_char: 0, definition: b"<lost>" };

/// Keeps codes and names; only a frame that cannot be written gets another code.
#[derive(Default)]
pub(crate) struct SameNames {
    /// Frames were written as [`SameNames::STAND_IN`].
    lost: bool,
    /// The trace has a code of that number itself.
    taken: bool,
}

impl SameNames {
    /// The code written for a frame that damage made unknown: the largest one, far
    /// above all addresses.
    pub(crate) const STAND_IN: Code = (1 << 62) - 1;

    /// Records that a frame is written as the stand-in: because it is lost, now or in
    /// an earlier repair of the trace, or because it has that code itself.
    fn record_stand_in(&mut self, read: Code, table: &LocationTable) -> Result<(), Failure> {
        let lost = read != Self::STAND_IN || table.resolve(read).eq([LOST]);
        self.lost |= lost;
        self.taken |= !lost;
        if self.taken && self.lost {
            return Err(Failure::Defective(format!(
                "the trace has lost frames, and uses the code {:#x} that would stand for them",
                Self::STAND_IN
            )));
        }
        Ok(())
    }
}

impl Renaming for SameNames {
    fn code(&mut self, read: Code, table: &LocationTable) -> Result<Code, Failure> {
        // Codes are signed numbers of 63 bits, and 0 marks an empty cache slot.
        let fits = matches!(read >> 62, 0b00 | 0b11) && read != 0;
        if fits && read != Self::STAND_IN {
            return Ok(read);
        }
        self.record_stand_in(read, table)?;
        Ok(Self::STAND_IN)
    }

    fn origin(&self, written: Code) -> Option<Code> {
        (written != Self::STAND_IN || self.taken).then_some(written)
    }

    fn rename(&mut self, location: Location<'_>, _ids: &NamedLocation, list: &mut LocationList) {
        list.add(location);
    }
}
