//! Why a frame table is refused.

use core::fmt;

/// One variant per defect, with the offending value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableDefect {
    /// The table or its array of places is NULL or misaligned.
    Address(u64),
    /// More frames than any table has.
    Count(u64),
    /// No code can lie at this address.
    ReturnAddress(u64),
    /// Neither a boundary nor a positive multiple of 8.
    FrameSize { return_address: u64, size: u32 },
    /// The return address occurs twice in the table, or in an earlier table.
    Duplicate(u64),
    /// An index beyond the places.
    Place(u32),
    /// The place is inlined into itself, or too deeply.
    InliningLoop(u32),
    /// The boundary at this return address needs one more crossing rule than the
    /// tables can number.
    Rules(u64),
}

impl fmt::Display for TableDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Address(address) => write!(f, "a table at {address:#x}, NULL or misaligned"),
            Self::Count(count) => write!(f, "a table of {count} frames, more than any program has"),
            Self::ReturnAddress(address) => write!(f, "a return address {address:#x}"),
            Self::FrameSize { return_address, size } => {
                write!(f, "a frame of {size} bytes, not a multiple of 8, at {return_address:#x}")
            }
            Self::Duplicate(address) => write!(f, "the return address {address:#x} twice"),
            Self::Place(index) => write!(f, "place {index}, beyond the table's places"),
            Self::InliningLoop(index) => write!(f, "place {index}, inlined without end"),
            Self::Rules(address) => {
                write!(f, "a boundary at {address:#x} whose rule has no number left")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defects_name_the_value() {
        let text = TableDefect::FrameSize { return_address: 0x5000, size: 12 }.to_string();
        assert!(text.contains("12") && text.contains("0x5000"));
        assert!(TableDefect::Duplicate(0xabc).to_string().contains("0xabc"));
    }
}
