//! What a flight recorder keeps in memory.

use std::time::Duration;

use crate::rotation::size;
use crate::trigger::period;

/// The shortest time.
const SHORTEST: Duration = Duration::from_secs(1);

/// The value of [`RECORDER`](crate::RECORDER): what is kept in memory, and written when somebody asks
/// or the program dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorder {
    /// This much time, if it fits.
    pub time: Duration,
    /// The most memory, in bytes.
    pub bytes: u64,
    /// Whether it is written when the program exits, too.
    pub at_exit: bool,
}

impl Recorder {
    /// The most memory, unless another bound is set.
    pub const DEFAULT_BYTES: u64 = 64 << 20;
    /// The least and the most that can be asked for.
    pub const MIN_BYTES: u64 = 8 << 20;
    /// See [`Recorder::MIN_BYTES`].
    pub const MAX_BYTES: u64 = 16 << 30;
    /// The longest time.
    pub const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

    /// What a value may be, for messages.
    pub(crate) const SYNTAX: &str = "a time (such as 30s or 10m, up to 168h), and separated by commas the most memory \
         (such as 64MiB, the default, or 1GB; from 8MiB to 16GiB) and `exit`";

    /// The recorder that a value asks for.
    pub fn parse(value: &str) -> Option<Recorder> {
        let (mut time, mut bytes, mut at_exit) = (None, None, false);
        for entry in value.split(',') {
            let entry = entry.trim();
            let is_new = match (entry, size(entry), period(entry)) {
                ("exit", ..) => !std::mem::replace(&mut at_exit, true),
                (_, Some(size), _) => {
                    (Self::MIN_BYTES..=Self::MAX_BYTES).contains(&size)
                        && bytes.replace(size).is_none()
                }
                (_, None, Some(period)) => {
                    (SHORTEST..=Self::LONGEST).contains(&period) && time.replace(period).is_none()
                }
                (_, None, None) => false,
            };
            if !is_new {
                return None;
            }
        }
        Some(Recorder { time: time?, bytes: bytes.unwrap_or(Self::DEFAULT_BYTES), at_exit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_needed_and_the_rest_is_not() {
        for (text, seconds, mib, at_exit) in [
            ("30s", 30, 64, false),
            ("10m,128MiB", 600, 128, false),
            (" exit , 8MiB,168h ", 7 * 24 * 3600, 8, true),
            ("1s,exit", 1, 64, true),
        ] {
            let time = Duration::from_secs(seconds);
            let recorder = Recorder { time, bytes: mib << 20, at_exit };
            assert_eq!(Recorder::parse(text), Some(recorder), "{text}");
        }
    }

    #[test]
    fn other_values_are_refused() {
        for text in [
            "",
            "64MiB",
            "exit",
            "30",
            "0s",
            "500ms",
            "169h",
            "30s,7MiB",
            "30s,17GiB",
            "30s,31s",
            "30s,64MiB,64MiB",
            "30s,exit,exit",
            "30s,",
            "30s,asked",
            "-1s",
        ] {
            assert_eq!(Recorder::parse(text), None, "{text}");
        }
    }
}
