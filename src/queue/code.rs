//! The codes that backtraces consist of.
//!
//! A code below [`HOST_CODE_LIMIT`] is the runtime's: usually a return address. Codes
//! above are frames that the tracer adds, such as a label or a number of frames left
//! out. All fit the trace format's signed integers of 63 bits.

/// The runtime's codes are from 1 to below this.
pub(crate) const HOST_CODE_LIMIT: u64 = 1 << 60;

/// The code of a label is this plus its number.
const LABELS: u64 = 1 << 60;

/// The code for frames left out of a backtrace is this plus their number.
pub(crate) const LEFT_OUT: u64 = 2 << 60;

/// Stands for the frames beyond the depth limit.
const BEYOND_LIMIT: u64 = 3 << 60;

/// Stands for frames that the walk could not find.
const UNKNOWN: u64 = BEYOND_LIMIT + 1;

/// A decoded frame code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// A frame of the runtime.
    Host(u64),
    /// The mutator's label, by its number.
    Label(u32),
    /// This many frames were left out, for lack of space.
    LeftOut(u64),
    /// The frames beyond the depth limit.
    BeyondLimit,
    /// Frames that the walk did not find: it ended before the outermost one.
    Unknown,
}

impl Code {
    pub(crate) fn to_bits(self) -> u64 {
        match self {
            Code::Host(code) => code,
            Code::Label(number) => LABELS + u64::from(number),
            Code::LeftOut(count) => LEFT_OUT + count,
            Code::BeyondLimit => BEYOND_LIMIT,
            Code::Unknown => UNKNOWN,
        }
    }

    pub(crate) fn from_bits(bits: u64) -> Code {
        match bits {
            0..HOST_CODE_LIMIT => Code::Host(bits),
            UNKNOWN.. => Code::Unknown,
            BEYOND_LIMIT => Code::BeyondLimit,
            LEFT_OUT.. => Code::LeftOut(bits - LEFT_OUT),
            _ => Code::Label((bits - LABELS) as u32),
        }
    }
}

/// What tells blocks apart that are allocated in one frame: which part of a combined allocation a
/// block is, where the parts have locations of their own; elsewhere its kind. A session has either
/// the one or the other.
///
/// The parts share a return address and may have different source locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part(u8);

/// In the code of an innermost frame, the part's number (its index plus 1) is above
/// this bit and the return address below: user addresses of amd64 have 47 bits.
const CODE_PART_SHIFT: u32 = 48;

impl Part {
    /// Not known, or neither.
    pub(crate) const NONE: Part = Part(0);

    /// The part with this index. Indices above 254 count as 254.
    pub(crate) fn of_index(index: usize) -> Part {
        Part(u8::try_from(index.saturating_add(1)).unwrap_or(u8::MAX))
    }

    /// A kind of blocks; 0 if it is not known.
    pub(crate) fn of_kind(kind: u8) -> Part {
        Part(kind)
    }

    /// The kind, where blocks have one; 0 if it is not known.
    pub(crate) fn kind(self) -> u8 {
        self.0
    }

    /// Its index, if known.
    pub(crate) fn index(self) -> Option<usize> {
        usize::from(self.0).checked_sub(1)
    }

    pub(crate) fn to_bits(self) -> u8 {
        self.0
    }

    pub(crate) fn from_bits(bits: u8) -> Part {
        Part(bits)
    }

    /// An innermost frame's code with this part, in place of any part it had. Codes of
    /// the tracer have no parts and are returned as they are.
    pub(crate) fn in_code(self, code: u64) -> u64 {
        if self == Part::NONE || code >= HOST_CODE_LIMIT {
            return code;
        }
        (Part::of_code(code).0 ^ self.spread()) | u64::from(self.0) << CODE_PART_SHIFT
    }

    /// The return address in a code, and the part's index if there is one.
    pub(crate) fn of_code(code: u64) -> (u64, Option<usize>) {
        let part = Part((code >> CODE_PART_SHIFT) as u8);
        let address = (code ^ part.spread()) & ((1 << CODE_PART_SHIFT) - 1);
        (address, part.index())
    }

    /// What a part's return address is xored with. The memtrace format's location cache
    /// is indexed by the low bits of a code. Without this, the parts of one allocation
    /// would evict each other, and their locations would be written again each time.
    fn spread(self) -> u64 {
        u64::from(self.0).wrapping_mul(0x9E_3779_B97F) & ((1 << CODE_PART_SHIFT) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_holds_part_and_return_address() {
        let address = 0x7fff_1234_5678;
        let mut code = address;
        for index in [0, 1, 254] {
            code = Part::of_index(index).in_code(code);
            assert!(code < HOST_CODE_LIMIT);
            assert_eq!(Part::of_code(code), (address, Some(index)));
        }
        assert_eq!(Part::of_index(255), Part::of_index(254));
        assert_eq!(Part::of_code(address), (address, None));
        assert_eq!(Part::NONE.in_code(code), code);
        assert_eq!(Part::of_index(3).in_code(UNKNOWN), UNKNOWN);
    }

    #[test]
    fn parts_differ_in_the_bits_that_index_the_cache() {
        let low = |index| Part::of_index(index).in_code(0x7fff_1234_5678) % (1 << 25);
        let codes: std::collections::BTreeSet<u64> = (0..255).map(low).collect();
        assert_eq!(codes.len(), 255);
    }

    #[test]
    fn codes_decode_to_what_was_encoded() {
        for code in [
            Code::Host(1),
            Code::Host(HOST_CODE_LIMIT - 1),
            Code::Label(0),
            Code::Label(u32::MAX),
            Code::LeftOut(1),
            Code::LeftOut(1 << 40),
            Code::BeyondLimit,
            Code::Unknown,
        ] {
            assert_eq!(Code::from_bits(code.to_bits()), code);
            assert!(code.to_bits() < 1 << 62, "fits an OCaml integer");
        }
    }
}
