//! When the library takes heap snapshots by itself.

use std::fmt;
use std::time::Duration;

/// The shortest and the longest time between two snapshots.
const PERIODS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(365 * 24 * 3600);

/// One entry of [`SNAPSHOT`](crate::SNAPSHOT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// When the program exits.
    Exit,
    /// After the major collection with this number, from 1.
    Major(u64),
    /// Whenever this much time has passed.
    Every(Duration),
    /// Whenever the program gets this signal.
    Signal(TriggerSignal),
    /// When memory runs short, and not again soon.
    Pressure,
}

/// A signal that programs rarely use for themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerSignal {
    /// `SIGHUP`
    Hup,
    /// `SIGUSR1`
    Usr1,
    /// `SIGUSR2`
    Usr2,
}

impl TriggerSignal {
    const ALL: [TriggerSignal; 3] = [TriggerSignal::Hup, TriggerSignal::Usr1, TriggerSignal::Usr2];

    /// Its name without `SIG`.
    pub fn name(self) -> &'static str {
        match self {
            TriggerSignal::Hup => "HUP",
            TriggerSignal::Usr1 => "USR1",
            TriggerSignal::Usr2 => "USR2",
        }
    }
}

impl Trigger {
    /// What an entry may be, for messages.
    pub const SYNTAX: &str = "`exit`, `major:N`, `every:TIME` (such as 500ms, 30s, 5m or 1h, at least 100ms), `signal:NAME` \
         (USR1, USR2 or HUP) or `pressure`";

    /// The trigger that an entry names. Surrounding white space is ignored.
    pub fn parse(entry: &str) -> Option<Trigger> {
        let (kind, value) = match entry.trim().split_once(':') {
            Some((kind, value)) => (kind, Some(value)),
            None => (entry.trim(), None),
        };
        match (kind, value) {
            ("exit", None) => Some(Trigger::Exit),
            ("pressure", None) => Some(Trigger::Pressure),
            ("major", Some(number)) => {
                digits(number).filter(|&number| number > 0).map(Trigger::Major)
            }
            ("every", Some(time)) => period(time).map(Trigger::Every),
            ("signal", Some(name)) => {
                let name = name.strip_prefix("SIG").unwrap_or(name);
                let mut known = TriggerSignal::ALL.into_iter();
                known.find(|signal| signal.name() == name).map(Trigger::Signal)
            }
            _ => None,
        }
    }

    /// The triggers of a list that is separated by commas. At least one.
    pub fn parse_list(list: &str) -> Option<Vec<Trigger>> {
        list.split(',').map(Trigger::parse).collect()
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trigger::Exit => f.write_str("exit"),
            Trigger::Pressure => f.write_str("pressure"),
            Trigger::Major(number) => write!(f, "major:{number}"),
            Trigger::Every(period) => write!(f, "every:{}ms", period.as_millis()),
            Trigger::Signal(signal) => write!(f, "signal:{}", signal.name()),
        }
    }
}

/// A number without a sign.
pub(crate) fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// A whole number and its unit, such as `30s`: from 100 ms to a year.
pub fn period(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let period = Duration::from_millis(digits(number)?.checked_mul(milliseconds)?);
    PERIODS.contains(&period).then_some(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_and_written_alike() {
        for (text, trigger) in [
            ("exit", Trigger::Exit),
            ("pressure", Trigger::Pressure),
            ("major:1", Trigger::Major(1)),
            ("major:18446744073709551615", Trigger::Major(u64::MAX)),
            ("every:100ms", Trigger::Every(Duration::from_millis(100))),
            ("signal:USR2", Trigger::Signal(TriggerSignal::Usr2)),
            ("signal:USR1", Trigger::Signal(TriggerSignal::Usr1)),
            ("signal:HUP", Trigger::Signal(TriggerSignal::Hup)),
        ] {
            assert_eq!(Trigger::parse(text), Some(trigger), "{text}");
            assert_eq!(trigger.to_string(), text);
        }
        for (text, seconds) in [("30s", 30), ("5m", 300), ("1h", 3600), ("8760h", 31_536_000)] {
            let expected = Some(Trigger::Every(Duration::from_secs(seconds)));
            assert_eq!(Trigger::parse(&format!("every:{text}")), expected, "{text}");
        }
        assert_eq!(Trigger::parse(" signal:SIGHUP "), Some(Trigger::Signal(TriggerSignal::Hup)));
    }

    #[test]
    fn what_is_no_trigger_is_refused() {
        for text in [
            "",
            "exit:",
            "exit:1",
            "Exit",
            "major",
            "major:",
            "major:0",
            "major:-1",
            "major:+1",
            "major:18446744073709551616",
            "every",
            "every:",
            "every:30",
            "every:s",
            "every:99ms",
            "every:0s",
            "every:8761h",
            "every:99999999999999999999h",
            "every:18446744073709551615h",
            "every:1.5s",
            "every:30 s",
            "every:１s",
            "signal",
            "signal:",
            "signal:KILL",
            "signal:usr2",
            "signal:12",
            "never",
        ] {
            assert_eq!(Trigger::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_list_has_at_least_one_entry_and_no_empty_one() {
        assert_eq!(
            Trigger::parse_list("exit, major:3"),
            Some(vec![Trigger::Exit, Trigger::Major(3)])
        );
        for list in ["", ",", "exit,", "exit,,major:3", "exit;major:3"] {
            assert_eq!(Trigger::parse_list(list), None, "{list:?}");
        }
    }
}
