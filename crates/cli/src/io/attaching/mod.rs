//! Attaching to a program that was not started for it, for the verbs that do.
//!
//! - `listening`: has the program take commands: loads the library into it, unless it is there.
//! - `place`: where the trace goes, also in a container.
//! - `interruption`: Ctrl-C; `words`: messages.

pub(crate) mod interruption;
pub(crate) mod listening;
pub(crate) mod place;
pub(crate) mod words;

use std::time::Duration;

/// A trace that is given a time ends by itself so much later: then nobody has ended it.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
