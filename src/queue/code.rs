//! Frames that are no return addresses.
//!
//! A backtrace is a list of codes. A runtime's own lie below [`HOST_CODES`];
//! those above stand for what the tracer has to say itself. All fit the 63 bits
//! with sign that the format has.

/// Codes from 1 up to this are the runtime's.
pub(crate) const HOST_CODES: u64 = 1 << 60;

/// The code of a label is this plus its number.
const LABELS: u64 = 1 << 60;

/// The code for frames left out of a backtrace is this plus how many there are.
pub(crate) const LEFT_OUT: u64 = 2 << 60;

/// Stands for the frames beyond the depth limit.
const BEYOND_LIMIT: u64 = 3 << 60;

/// Stands for frames that could not be found: the walk ended too early.
const UNKNOWN: u64 = BEYOND_LIMIT + 1;

/// What a code stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// A frame of the runtime.
    Host(u64),
    /// What the mutator is doing, by the number of its label.
    Label(u32),
    /// So many frames for which there was no room.
    LeftOut(u64),
    /// The frames beyond the depth limit.
    BeyondLimit,
    /// The walk ended before the outermost frame.
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
            0..HOST_CODES => Code::Host(bits),
            UNKNOWN.. => Code::Unknown,
            BEYOND_LIMIT => Code::BeyondLimit,
            LEFT_OUT.. => Code::LeftOut(bits - LEFT_OUT),
            _ => Code::Label((bits - LABELS) as u32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_told_apart() {
        for code in [
            Code::Host(1),
            Code::Host(HOST_CODES - 1),
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
