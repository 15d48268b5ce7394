//! What a value may be, and the error for one that is not.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use crate::budget::{self, budget};
use crate::recorder::Recorder;
use crate::rotation::Rotation;
use crate::trigger::Trigger;

/// The values that a variable accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Syntax {
    /// The name of a file.
    File,
    /// A number, bounds included.
    Number {
        /// The smallest.
        min: f64,
        /// The largest.
        max: f64,
    },
    /// A whole number, bounds included.
    Integer {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// One word.
    Word(&'static str),
    /// `1` for yes or `0` for no.
    Flag,
    /// A list of [`Trigger`]s, separated by commas.
    Triggers,
    /// Names of programs, separated by commas.
    Names,
    /// A [`Rotation`].
    Rotation,
    /// A share in per cent: see [`budget`](crate::budget()).
    Budget,
    /// A [`Recorder`].
    Recorder,
}

impl fmt::Display for Syntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Syntax::File => f.write_str("a file name"),
            Syntax::Number { min, max } => {
                write!(f, "a number from {} to {}", Bound(min), Bound(max))
            }
            Syntax::Integer { min: 0, max: u64::MAX } => f.write_str("a whole number below 2^64"),
            Syntax::Integer { min, max } => write!(f, "a whole number from {min} to {max}"),
            Syntax::Word(word) => write!(f, "`{word}`"),
            Syntax::Flag => f.write_str("`1` or `0`"),
            Syntax::Triggers => write!(f, "a comma-separated list of {}", Trigger::SYNTAX),
            Syntax::Rotation => f.write_str(Rotation::SYNTAX),
            Syntax::Budget => f.write_str(budget::SYNTAX),
            Syntax::Recorder => f.write_str(Recorder::SYNTAX),
            Syntax::Names => f.write_str("names of programs, separated by commas"),
        }
    }
}

/// A bound as people write it: small ones with an exponent.
struct Bound(f64);

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1e-3 { write!(f, "{:e}", self.0) } else { write!(f, "{}", self.0) }
    }
}

impl Syntax {
    /// The number in `value`, if it is one and in range. Surrounding white space is
    /// ignored.
    pub(crate) fn number(&self, value: &OsStr) -> Option<f64> {
        let Syntax::Number { min, max } = *self else { return None };
        let number = value.to_str()?.trim().parse().ok()?;
        (min..=max).contains(&number).then_some(number)
    }

    /// The whole number in `value`, if it is one and in range. Surrounding white
    /// space is ignored.
    pub(crate) fn integer(&self, value: &OsStr) -> Option<u64> {
        let Syntax::Integer { min, max } = *self else { return None };
        let number = value.to_str()?.trim().parse().ok()?;
        (min..=max).contains(&number).then_some(number)
    }

    /// Whether `value` is the word, or the flag's `1`; `None` for any other value than
    /// these and `0` of a flag.
    pub(crate) fn is_on(&self, value: &OsStr) -> Option<bool> {
        match *self {
            Syntax::Word(word) => (value == word).then_some(true),
            Syntax::Flag if value == "1" => Some(true),
            Syntax::Flag if value == "0" => Some(false),
            _ => None,
        }
    }

    /// The triggers in `value`, if it is a list of them.
    pub(crate) fn triggers(&self, value: &OsStr) -> Option<Vec<Trigger>> {
        let Syntax::Triggers = *self else { return None };
        Trigger::parse_list(value.to_str()?)
    }

    /// The share in `value`, if it is a budget.
    pub(crate) fn budget(&self, value: &OsStr) -> Option<f64> {
        let Syntax::Budget = *self else { return None };
        budget(value.to_str()?)
    }

    /// The rotation in `value`, if it is one.
    pub(crate) fn rotation(&self, value: &OsStr) -> Option<Rotation> {
        let Syntax::Rotation = *self else { return None };
        Rotation::parse(value.to_str()?)
    }

    /// The recorder in `value`, if it is one.
    pub(crate) fn recorder(&self, value: &OsStr) -> Option<Recorder> {
        let Syntax::Recorder = *self else { return None };
        Recorder::parse(value.to_str()?)
    }

    /// The names in `value`; `None` if one of them is empty.
    pub(crate) fn names(&self, value: &OsStr) -> Option<Vec<OsString>> {
        let Syntax::Names = *self else { return None };
        let names = value.as_bytes().split(|&byte| byte == b',');
        names.map(|name| (!name.is_empty()).then(|| OsStr::from_bytes(name).to_owned())).collect()
    }

    /// Whether `value` is accepted.
    pub(crate) fn accepts(&self, value: &OsStr) -> bool {
        match self {
            Syntax::File => true,
            Syntax::Number { .. } => self.number(value).is_some(),
            Syntax::Integer { .. } => self.integer(value).is_some(),
            Syntax::Word(_) | Syntax::Flag => self.is_on(value).is_some(),
            Syntax::Triggers => self.triggers(value).is_some(),
            Syntax::Names => self.names(value).is_some(),
            Syntax::Rotation => self.rotation(value).is_some(),
            Syntax::Budget => self.budget(value).is_some(),
            Syntax::Recorder => self.recorder(value).is_some(),
        }
    }
}

/// A value that its variable does not accept.
#[derive(Clone, Debug, PartialEq)]
pub struct Invalid {
    /// The variable, by the name under which it was set.
    pub name: &'static str,
    /// The value, with what is not UTF-8 replaced.
    pub value: String,
    /// What would have been accepted.
    pub expected: Syntax,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={} is not {}", self.name, self.value, self.expected)
    }
}

impl Error for Invalid {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_written_as_people_write_them() {
        assert_eq!(Syntax::Number { min: 1e-7, max: 1.0 }.to_string(), "a number from 1e-7 to 1");
        assert_eq!(Syntax::Integer { min: 1, max: 9 }.to_string(), "a whole number from 1 to 9");
        assert_eq!(
            Syntax::Integer { min: 0, max: u64::MAX }.to_string(),
            "a whole number below 2^64"
        );
    }

    #[test]
    fn bounds_are_included_and_nothing_beyond_them() {
        let rate = Syntax::Number { min: 1e-7, max: 1.0 };
        for (text, number) in [("1e-7", Some(1e-7)), ("1", Some(1.0)), (" 0.5 ", Some(0.5))] {
            assert_eq!(rate.number(OsStr::new(text)), number, "{text}");
        }
        for text in ["", "0", "9.9e-8", "1.0000001", "nan", "inf", "-1", "0.5x", "often"] {
            assert_eq!(rate.number(OsStr::new(text)), None, "{text}");
        }
        let frames = Syntax::Integer { min: 1, max: 9 };
        for (text, number) in [("1", Some(1)), (" 9", Some(9))] {
            assert_eq!(frames.integer(OsStr::new(text)), number, "{text}");
        }
        for text in ["", "0", "10", "-1", "1.5", "99999999999999999999999"] {
            assert_eq!(frames.integer(OsStr::new(text)), None, "{text}");
        }
        assert_eq!(rate.integer(OsStr::new("1")), None);
        assert_eq!(frames.number(OsStr::new("1")), None);
    }
}
