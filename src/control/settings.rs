//! What the environment asks for.

use std::ffi::OsString;
use std::path::PathBuf;

use heaptap_settings::{Invalid, LISTEN, LISTEN_FORKS, SNAPSHOT, SNAPSHOT_FILE, Trigger};

/// What the user chose about commands and snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Whether commands are taken.
    pub(super) listen: bool,
    /// Whether forked children take commands, too.
    pub(super) listen_forks: bool,
    /// When snapshots are taken.
    pub(super) triggers: Vec<Trigger>,
    /// The names of these snapshots; `None` for the default.
    pub(super) pattern: Option<OsString>,
    /// The directory in which the process was when they were read.
    pub(super) directory: PathBuf,
}

impl Settings {
    /// The settings of this process. Read them before the variables are removed from the
    /// environment.
    pub(crate) fn from_environment() -> Result<Settings, Invalid> {
        // SAFETY: `getauxval` reads the process's auxiliary vector and takes any key.
        if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
            // A program with more rights than its user must not take commands from that
            // user, nor write files of the user's choice.
            return Ok(Settings::default());
        }
        let directory = std::env::current_dir().unwrap_or_default();
        Settings::from_lookup(|name| std::env::var_os(name), directory)
    }

    fn from_lookup(
        lookup: impl Fn(&str) -> Option<OsString>,
        directory: PathBuf,
    ) -> Result<Settings, Invalid> {
        Ok(Settings {
            listen: LISTEN.is_on(&lookup)?,
            listen_forks: LISTEN_FORKS.is_on(&lookup)?,
            triggers: SNAPSHOT.find_triggers(&lookup)?,
            pattern: SNAPSHOT_FILE.find(&lookup).map(|(_, pattern)| pattern),
            directory,
        })
    }

    /// Whether the environment has one of the variables, valid or not. Runs in every program that
    /// loads this library.
    pub(crate) fn are_asked_for() -> bool {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        is_set(LISTEN.name) || is_set(SNAPSHOT.name)
    }

    /// Whether snapshots are taken by themselves.
    pub(crate) fn takes_snapshots(&self) -> bool {
        !self.triggers.is_empty()
    }

    /// Whether anything is asked for.
    pub(crate) fn is_active(&self) -> bool {
        self.listen || !self.triggers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Result<Settings, Invalid> {
        let lookup = |name: &str| {
            let found = pairs.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        Settings::from_lookup(lookup, PathBuf::from("/here"))
    }

    #[test]
    fn nothing_is_active_by_itself() {
        assert!(!settings(&[]).unwrap().is_active());
        assert!(!settings(&[("HEAPTAP_LISTEN", "0")]).unwrap().is_active());
        assert!(!settings(&[("HEAPTAP_SNAPSHOT_FILE", "x")]).unwrap().is_active());
        assert!(settings(&[("HEAPTAP_LISTEN", "1")]).unwrap().is_active());
        let triggered = settings(&[("HEAPTAP_SNAPSHOT", "exit,major:2")]).unwrap();
        assert!(triggered.is_active() && !triggered.listen);
        assert_eq!(triggered.triggers, [Trigger::Exit, Trigger::Major(2)]);
    }

    #[test]
    fn a_wrong_value_is_named() {
        for (name, value) in [("HEAPTAP_LISTEN", "yes"), ("HEAPTAP_SNAPSHOT", "every:1x")] {
            assert_eq!(settings(&[(name, value)]).unwrap_err().name, name);
        }
    }
}
