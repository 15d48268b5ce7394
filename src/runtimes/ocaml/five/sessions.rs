//! How a session of OCaml 5 begins and ends.

use std::sync::Arc;

use super::layout::KnownRelease;
use super::symbols::Runtime;
use super::{domain, fiber_stacks};
use crate::runtimes::ocaml::MajorVersion;
use crate::runtimes::ocaml::attachment::VersionHooks;
use crate::runtimes::ocaml::timing::Report;
use crate::tracer::{Failure, Session};

/// What sessions need of the runtime in this program.
pub(super) struct FiveSessions {
    pub(super) runtime: Runtime,
    pub(super) known: &'static KnownRelease,
}

impl VersionHooks for FiveSessions {
    const VERSION: MajorVersion = MajorVersion::Five;
    const REPORT_SLICE: Report = domain::report_slice;

    fn is_in_use(&self) -> bool {
        false
    }

    fn prepare(&self, session: &Arc<Session>) -> Result<(), Failure> {
        if session.options.time_line {
            fiber_stacks::watch(self.runtime.is_native);
        }
        domain::start(self.runtime, self.known, session);
        Ok(())
    }

    fn begin(&self) {}

    fn end(&self) {}

    fn release(&self) {}

    fn allocated_words(&self) -> Option<u64> {
        None
    }
}
