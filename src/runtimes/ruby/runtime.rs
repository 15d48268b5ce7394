//! Ruby as a [`Runtime`].

use heaptap_settings::RUBY as RELEASES;

use super::{detect, sessions, start};
use crate::runtimes::attach::{Attachment, Lookup, Refusal, Runtime};

/// Ruby 3.1.
pub(in crate::runtimes) static RUBY: Ruby = Ruby;

/// Ruby, for [`crate::runtimes::attach`].
pub(in crate::runtimes) struct Ruby;

impl Runtime for Ruby {
    fn name(&self) -> &'static str {
        RELEASES.name
    }

    fn detect(&self, lookup: Lookup<'_>) -> Result<bool, Refusal> {
        detect::is_ruby(lookup)
    }

    fn wait_for_heap(&self, attach: fn()) -> Result<bool, Refusal> {
        start::wait(attach).map(|()| true)
    }

    fn attach(&self) -> Result<Option<Attachment>, Refusal> {
        sessions::attachment().map(Some)
    }
}
