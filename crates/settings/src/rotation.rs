//! When a trace goes on in another file.

use std::time::Duration;

use crate::trigger::{digits, period};

/// The smallest part of a series, in bytes.
pub const MIN_PART: u64 = 64_000;

/// The shortest time of a part.
const SHORTEST: Duration = Duration::from_secs(1);

/// The value of [`ROTATE`](crate::ROTATE): when the next part of a series begins, besides when
/// that is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// Before the part has more bytes than these.
    pub bytes: Option<u64>,
    /// After so much time.
    pub age: Option<Duration>,
}

impl Rotation {
    /// What a value may be, for messages.
    pub(crate) const SYNTAX: &str = "a size (such as 500KB, 100MB or 2GiB, at least 64KB), a time (such as 30s, 10m or 24h), \
         both, separated by a comma, or `asked`";

    /// The rotation that a value asks for.
    pub fn parse(value: &str) -> Option<Rotation> {
        let mut rotation = Rotation::default();
        if value.trim() == "asked" {
            return Some(rotation);
        }
        for entry in value.split(',') {
            let entry = entry.trim();
            let is_new = match (size(entry), period(entry)) {
                (Some(bytes), _) => rotation.bytes.replace(bytes).is_none(),
                (None, Some(age)) => age >= SHORTEST && rotation.age.replace(age).is_none(),
                (None, None) => false,
            };
            if !is_new {
                return None;
            }
        }
        Some(rotation)
    }
}

/// A whole number of bytes and its unit.
pub(crate) fn size(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 6] = [
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ];
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let (_, bytes) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    let size = digits(number)?.checked_mul(bytes)?;
    (size >= MIN_PART).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_told_apart_by_their_units() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        for (text, bytes, age) in [
            ("100MB", Some(100_000_000), None),
            ("64KB", Some(64_000), None),
            ("2GiB", Some(2 << 30), None),
            ("10m", None, seconds(600)),
            ("1MB,24h", Some(1_000_000), seconds(86_400)),
            (" 30s , 1MiB ", Some(1 << 20), seconds(30)),
            ("asked", None, None),
        ] {
            assert_eq!(Rotation::parse(text), Some(Rotation { bytes, age }), "{text}");
        }
    }

    #[test]
    fn other_values_are_refused() {
        for text in [
            "",
            "1",
            "1B",
            "63KB",
            "1mb",
            "-1MB",
            "1.5MB",
            "1MB,2MB",
            "1s,2s",
            "1MB,",
            "500ms",
            "asked,1MB",
            "99999999999999999999MB",
            "20000000000GB",
            "MB",
        ] {
            assert_eq!(Rotation::parse(text), None, "{text}");
        }
    }
}
