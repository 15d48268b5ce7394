//! What is known of an environment variable.

use std::ffi::{OsStr, OsString};

use crate::recorder::Recorder;
use crate::rotation::Rotation;
use crate::trigger::Trigger;
use crate::value::{Invalid, Syntax};

/// Who reads a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The library in every traced process: `heaptap_tracer_start_from_env`, and
    /// where it attaches itself to a runtime.
    Library,
    /// The library, only where it attaches itself to a runtime.
    Attached,
    /// The program `heaptap`.
    Tool,
}

/// Whether the children of a program that the library attached itself to see a
/// variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inheritance {
    /// Only if they are to be traced too ([`FOLLOW`](crate::FOLLOW)): otherwise the
    /// library removes it from the environment.
    WithFollow,
    /// Like any other variable.
    Always,
}

/// The option of `heaptap run` that sets a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOption {
    /// One letter, without its dash.
    pub short: Option<char>,
    /// Without its dashes.
    pub long: &'static str,
    /// What stands for the value in its help; `None` for an option without one.
    pub value_name: Option<&'static str>,
    /// The value if the option is not given. `None`: the variable is not set.
    pub default: Option<&'static str>,
    /// For an option that unsets a variable which `heaptap run` sets otherwise: what it
    /// does, as a sentence without its full stop.
    pub turns_off: Option<&'static str>,
}

impl RunOption {
    /// One without a value.
    pub(crate) const fn flag(long: &'static str) -> RunOption {
        RunOption { short: None, long, value_name: None, default: None, turns_off: None }
    }

    pub(crate) const fn with_value(long: &'static str, value_name: &'static str) -> RunOption {
        RunOption { value_name: Some(value_name), ..RunOption::flag(long) }
    }

    /// One that does `what`: see [`RunOption::turns_off`].
    pub(crate) const fn turning_off(long: &'static str, what: &'static str) -> RunOption {
        RunOption { turns_off: Some(what), ..RunOption::flag(long) }
    }

    /// As it is typed: `-r, --rate RATE`.
    pub fn usage(&self) -> String {
        let short = self.short.map(|letter| format!("-{letter}, ")).unwrap_or_default();
        let value = self.value_name.map(|name| format!(" {name}")).unwrap_or_default();
        format!("{short}--{}{value}", self.long)
    }
}

/// An environment variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// The name under which another tool knows it. [`Variable::name`] wins if both
    /// are set.
    pub alias: Option<&'static str>,
    /// The values it accepts.
    pub syntax: Syntax,
    /// What holds if it is not set or empty.
    pub default: &'static str,
    /// One sentence without its full stop.
    pub meaning: &'static str,
    /// Who reads it.
    pub reader: Reader,
    /// Whether children see it.
    pub children: Inheritance,
    /// What sets it on the command line.
    pub option: Option<RunOption>,
}

/// Finds the value of a variable by its name.
pub trait Lookup: Fn(&str) -> Option<OsString> {}

impl<T: Fn(&str) -> Option<OsString>> Lookup for T {}

impl Variable {
    /// Its names, the one that wins first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        [Some(self.name), self.alias].into_iter().flatten()
    }

    /// The value that `lookup` has for the variable, and the name under which it
    /// was found. An empty value counts as none.
    pub fn find(&self, lookup: impl Lookup) -> Option<(&'static str, OsString)> {
        self.names().find_map(|name| {
            let value = lookup(name).filter(|value| !value.is_empty())?;
            Some((name, value))
        })
    }

    /// The number that `lookup` has for the variable, if any.
    pub fn find_number(&self, lookup: impl Lookup) -> Result<Option<f64>, Invalid> {
        self.find_parsed(lookup, Syntax::number)
    }

    /// The whole number that `lookup` has for the variable, if any.
    pub fn find_integer(&self, lookup: impl Lookup) -> Result<Option<u64>, Invalid> {
        self.find_parsed(lookup, Syntax::integer)
    }

    /// The triggers that `lookup` has for the variable; none if it is not set.
    pub fn find_triggers(&self, lookup: impl Lookup) -> Result<Vec<Trigger>, Invalid> {
        Ok(self.find_parsed(lookup, Syntax::triggers)?.unwrap_or_default())
    }

    /// The rotation that `lookup` has for the variable, if any.
    pub fn find_rotation(&self, lookup: impl Lookup) -> Result<Option<Rotation>, Invalid> {
        self.find_parsed(lookup, Syntax::rotation)
    }

    /// The budget that `lookup` has for the variable, if any: the share.
    pub fn find_budget(&self, lookup: impl Lookup) -> Result<Option<f64>, Invalid> {
        self.find_parsed(lookup, Syntax::budget)
    }

    /// The recorder that `lookup` has for the variable, if any.
    pub fn find_recorder(&self, lookup: impl Lookup) -> Result<Option<Recorder>, Invalid> {
        self.find_parsed(lookup, Syntax::recorder)
    }

    /// The names that `lookup` has for the variable; none if it is not set.
    pub fn find_names(&self, lookup: impl Lookup) -> Result<Vec<OsString>, Invalid> {
        Ok(self.find_parsed(lookup, Syntax::names)?.unwrap_or_default())
    }

    fn find_parsed<T>(
        &self,
        lookup: impl Lookup,
        parse: impl Fn(&Syntax, &OsStr) -> Option<T>,
    ) -> Result<Option<T>, Invalid> {
        let Some((name, value)) = self.find(lookup) else { return Ok(None) };
        match parse(&self.syntax, &value) {
            Some(parsed) => Ok(Some(parsed)),
            None => Err(self.invalid(name, &value)),
        }
    }

    /// Whether `lookup` has the variable's [`Syntax::Word`], or `1` for a
    /// [`Syntax::Flag`].
    pub fn is_on(&self, lookup: impl Lookup) -> Result<bool, Invalid> {
        Ok(self.find_parsed(lookup, Syntax::is_on)?.unwrap_or(false))
    }

    /// An error if `lookup` has a value for the variable that is not accepted.
    pub fn check(&self, lookup: impl Lookup) -> Result<(), Invalid> {
        let parse = |syntax: &Syntax, value: &OsStr| syntax.accepts(value).then_some(());
        self.find_parsed(lookup, parse).map(|_| ())
    }

    /// The number in `value`, which is not from the environment but from the option
    /// of the same meaning.
    pub fn number(&self, value: &str) -> Result<f64, Invalid> {
        let value = OsStr::new(value);
        self.syntax.number(value).ok_or_else(|| self.invalid(self.name, value))
    }

    /// As [`Variable::number`], for a whole number.
    pub fn integer(&self, value: &str) -> Result<u64, Invalid> {
        let value = OsStr::new(value);
        self.syntax.integer(value).ok_or_else(|| self.invalid(self.name, value))
    }

    fn invalid(&self, name: &'static str, value: &OsStr) -> Invalid {
        Invalid { name, value: value.to_string_lossy().into_owned(), expected: self.syntax }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{FILE, FOLLOW, FRAMES, LISTEN, ONLY, RATE, SEED, SNAPSHOT, UNWINDER};

    fn environment(
        pairs: &'static [(&'static str, &'static str)],
    ) -> impl Fn(&str) -> Option<OsString> {
        move |name| {
            let found = pairs.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        }
    }

    #[test]
    fn the_name_wins_over_the_alias_unless_it_is_empty() {
        let both = environment(&[("MEMTRACE", "b"), ("HEAPTAP", "a")]);
        assert_eq!(FILE.find(both), Some(("HEAPTAP", "a".into())));
        let empty = environment(&[("MEMTRACE", "b"), ("HEAPTAP", "")]);
        assert_eq!(FILE.find(empty), Some(("MEMTRACE", "b".into())));
        assert_eq!(FILE.find(environment(&[("MEMTRACE", "")])), None);
    }

    #[test]
    fn an_error_names_the_variable_the_value_and_the_range() {
        let wrong = RATE.find_number(environment(&[("MEMTRACE_RATE", "often")])).unwrap_err();
        assert_eq!(wrong.to_string(), "MEMTRACE_RATE=often is not a number from 1e-7 to 1");
        let wrong = FRAMES.find_integer(environment(&[("HEAPTAP_FRAMES", "0")])).unwrap_err();
        assert_eq!(wrong.to_string(), "HEAPTAP_FRAMES=0 is not a whole number from 1 to 262144");
        assert_eq!(
            RATE.number("2").unwrap_err().to_string(),
            "HEAPTAP_RATE=2 is not a number from 1e-7 to 1"
        );
    }

    #[test]
    fn only_its_own_word_turns_a_variable_on() {
        assert_eq!(FOLLOW.is_on(environment(&[("HEAPTAP_FOLLOW", "1")])), Ok(true));
        assert_eq!(FOLLOW.is_on(environment(&[("HEAPTAP_FOLLOW", "0")])), Ok(false));
        assert_eq!(FOLLOW.is_on(environment(&[])), Ok(false));
        assert_eq!(UNWINDER.is_on(environment(&[("HEAPTAP_UNWINDER", "runtime")])), Ok(true));
        assert_eq!(UNWINDER.is_on(environment(&[("HEAPTAP_UNWINDER", "")])), Ok(false));
        let wrong = UNWINDER.is_on(environment(&[("HEAPTAP_UNWINDER", "zzz")])).unwrap_err();
        assert_eq!(wrong.to_string(), "HEAPTAP_UNWINDER=zzz is not `runtime`");
        let wrong = FOLLOW.is_on(environment(&[("HEAPTAP_FOLLOW", "yes")])).unwrap_err();
        assert_eq!(wrong.to_string(), "HEAPTAP_FOLLOW=yes is not `1` or `0`");
    }

    #[test]
    fn every_variable_refuses_what_it_does_not_accept() {
        let zzz = |_: &str| Some(OsString::from("zzz"));
        for variable in [RATE, FRAMES, SEED, FOLLOW, UNWINDER, LISTEN, SNAPSHOT] {
            assert_eq!(variable.check(zzz).unwrap_err().name, variable.name);
            assert_eq!(variable.check(|_| None), Ok(()));
            assert_eq!(variable.check(|_| Some(OsString::new())), Ok(()));
        }
        assert_eq!(FILE.check(zzz), Ok(()));
        for (variable, value) in [(RATE, "1"), (FRAMES, "7"), (SEED, "0"), (FOLLOW, "0")] {
            assert_eq!(variable.check(|_| Some(value.into())), Ok(()));
        }
    }

    #[test]
    fn triggers_are_a_list() {
        let two = environment(&[("HEAPTAP_SNAPSHOT", "exit,major:3")]);
        assert_eq!(SNAPSHOT.find_triggers(two), Ok(vec![Trigger::Exit, Trigger::Major(3)]));
        assert_eq!(SNAPSHOT.find_triggers(environment(&[])), Ok(Vec::new()));
        let wrong = environment(&[("HEAPTAP_SNAPSHOT", "exit,often")]);
        let wrong = SNAPSHOT.find_triggers(wrong).unwrap_err().to_string();
        assert!(wrong.starts_with("HEAPTAP_SNAPSHOT=exit,often is not a comma-sep"), "{wrong}");
        assert!(wrong.contains("`every:TIME`"), "{wrong}");
    }

    #[test]
    fn names_are_a_list_without_empty_ones() {
        let two = environment(&[("HEAPTAP_ONLY", "a b,c")]);
        assert_eq!(ONLY.find_names(two), Ok(vec!["a b".into(), "c".into()]));
        assert_eq!(ONLY.find_names(environment(&[])), Ok(Vec::new()));
        let wrong = ONLY.find_names(environment(&[("HEAPTAP_ONLY", "a,,c")])).unwrap_err();
        let text = "HEAPTAP_ONLY=a,,c is not names of programs, separated by commas";
        assert_eq!(wrong.to_string(), text);
    }

    #[test]
    fn usage_shows_all_spellings() {
        assert_eq!(RATE.option.unwrap().usage(), "-r, --rate RATE");
        assert_eq!(FOLLOW.option.unwrap().usage(), "--follow");
    }
}
