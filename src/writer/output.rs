//! Where the packets of a trace go.
//!
//! [`open`] is the only place that knows which kinds of output there are. A new
//! kind (a socket, a packed file) is a file with a type that implements
//! [`TraceOutput`], and a line there.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Write};

use heaptap_trace::Completion;

use crate::sys::file::{self, FileError};
use crate::sys::name_pattern::{NameError, ProcessFacts, expand};
use crate::sys::output::Output;

/// An output of the writer thread.
///
/// Each call of [`Write::write`] gets one packet, and takes all of it or none:
/// what has been written is always a valid trace. An output needs no trailer,
/// since a process may end without closing it; see [`TraceOutput::set_completion`].
pub(crate) trait TraceOutput: Write + Send {
    /// Its name in messages: for a file, its absolute path.
    fn name(&self) -> &OsStr;

    /// Sets whether the trace is complete, if bytes that were written can be changed.
    /// Needs no space on the disk. A failure is ignored: the trace then says less than
    /// is known.
    fn set_completion(&mut self, completion: Completion);

    /// Whether it is a file, which can have a sidecar.
    fn is_file(&self) -> bool {
        false
    }

    /// Whether somebody has truncated it since it began. What is written to it is then dropped.
    fn was_truncated(&mut self) -> bool {
        false
    }

    /// Empties an output that was truncated.
    fn restart(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TraceOutput for Box<dyn TraceOutput> {
    fn name(&self) -> &OsStr {
        (**self).name()
    }

    fn set_completion(&mut self, completion: Completion) {
        (**self).set_completion(completion);
    }

    fn is_file(&self) -> bool {
        (**self).is_file()
    }

    fn was_truncated(&mut self) -> bool {
        (**self).was_truncated()
    }

    fn restart(&mut self) -> io::Result<()> {
        (**self).restart()
    }
}

impl TraceOutput for Output {
    fn name(&self) -> &OsStr {
        self.path().as_os_str()
    }

    fn set_completion(&mut self, completion: Completion) {
        self.overwrite(Completion::OFFSET, &completion.bytes());
    }

    fn is_file(&self) -> bool {
        self.is_regular()
    }

    fn was_truncated(&mut self) -> bool {
        Output::was_truncated(self)
    }

    fn restart(&mut self) -> io::Result<()> {
        Output::restart(self)
    }
}

/// Why there is no output. Its text names the output.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// The pattern cannot be expanded.
    Name(OsString, NameError),
    File(FileError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Name(pattern, error) => {
                write!(f, "cannot trace into {}: {error}", pattern.display())
            }
            OpenError::File(error) => write!(f, "{error}; not tracing"),
        }
    }
}

/// Opens the output that the user named: a file, whose name may contain `%p`,
/// `%e` and `%t`.
pub(crate) fn open(pattern: &OsStr) -> Result<Box<dyn TraceOutput>, OpenError> {
    let path = expand(pattern, ProcessFacts::gather)
        .map_err(|error| OpenError::Name(pattern.to_owned(), error))?;
    let output = file::create(&path).map_err(OpenError::File)?;
    if output.is_regular() {
        // What an earlier run has left there would be taken for this one's.
        file::remove_series_sidecar(output.path());
    }
    Ok(Box::new(output))
}
