//! Why something was not done.

/// One variant for each reason; the C ABI has a status for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Failure {
    /// The rate is not from 1e-7 to 1.
    Rate = 4,
    /// Another option is out of its range.
    Option = 5,
    /// The file cannot be made or written.
    File = 6,
    /// There is no memory.
    Memory = 7,
    /// The writer thread cannot be started.
    Thread = 8,
    /// A session runs in this process.
    Already = 9,
    /// The session was stopped, or turned itself off.
    Off = 10,
    /// More mutators than promised, or than there can be.
    Mutators = 11,
    /// A frame table that makes no sense.
    Frames = 13,
    /// The environment asks for no trace.
    NotAsked = 14,
    /// Not at this moment.
    Order = 15,
    /// A defect of ours.
    Panic = 16,
    /// A sampled block was not recorded.
    Lost = 17,
}

impl Failure {
    /// The failure with this number.
    pub(crate) fn from_number(number: i32) -> Option<Failure> {
        use Failure::{
            Already, File, Frames, Lost, Memory, Mutators, NotAsked, Off, Option as BadOption,
            Order, Panic, Rate, Thread,
        };
        let all = [
            Rate, BadOption, File, Memory, Thread, Already, Off, Mutators, Frames, NotAsked, Order,
            Panic, Lost,
        ];
        all.into_iter().find(|&failure| failure as i32 == number)
    }
}
