//! Why a session cannot do something, or has ended.

macro_rules! failures {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// One variant for each reason. The C ABI has a status for each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Failure {
            $($(#[$doc])* $name,)*
        }

        impl Failure {
            const ALL: &[Failure] = &[$(Failure::$name),*];
        }
    };
}

failures! {
    /// The rate is not between 1e-7 and 1.
    Rate,
    /// Another option is out of range.
    Option,
    /// The file cannot be created or written.
    File,
    /// There is not enough memory.
    Memory,
    /// The writer thread cannot be started.
    Thread,
    /// Another session runs in this process.
    Already,
    /// The session was stopped, or has ended after a failure.
    Off,
    /// More mutators than the options allow, or than the format can number.
    Mutators,
    /// The frame table is malformed.
    Frames,
    /// The environment does not ask for a trace.
    NotAsked,
    /// The call is not allowed at this point.
    Order,
    /// An internal error.
    Panic,
    /// A sampled block was not recorded.
    Lost,
}

impl Failure {
    /// A number for a shared word in which 0 means no failure. It is not the status
    /// of the C ABI.
    pub(crate) fn number(self) -> i32 {
        self as i32 + 1
    }

    /// The failure with this [`Failure::number`].
    pub(crate) fn from_number(number: i32) -> Option<Failure> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        Self::ALL.get(index).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_a_number_of_its_own() {
        for &failure in Failure::ALL {
            assert_eq!(Failure::from_number(failure.number()), Some(failure));
        }
        assert_eq!(Failure::from_number(0), None);
        assert_eq!(Failure::from_number(-1), None);
        assert_eq!(Failure::from_number(Failure::ALL.len() as i32 + 1), None);
    }
}
