//! Why a session could not be started.

use crate::tracer::failure::Failure;
use crate::tracer::message::say;

/// A failure, and what a person is told about it.
#[derive(Debug)]
pub(crate) struct StartError {
    pub(crate) failure: Failure,
    /// `None` if the caller of the function that failed knows enough.
    message: Option<String>,
}

impl StartError {
    pub(crate) fn new(failure: Failure, message: String) -> StartError {
        StartError { failure, message: Some(message) }
    }

    /// Prints the message on standard error.
    pub(crate) fn report(self) -> Failure {
        if let Some(message) = &self.message {
            say(format_args!("{message}"));
        }
        self.failure
    }

    /// For a client that has asked for the session.
    pub(crate) fn into_message(self) -> String {
        let Self { failure, message } = self;
        message.unwrap_or_else(|| match failure {
            Failure::Memory => "there is not enough memory for a trace".to_owned(),
            Failure::Already => "a trace of this program is being taken already".to_owned(),
            failure => format!("no trace could be started ({failure:?}); please report this"),
        })
    }
}

impl From<Failure> for StartError {
    fn from(failure: Failure) -> StartError {
        StartError { failure, message: None }
    }
}
