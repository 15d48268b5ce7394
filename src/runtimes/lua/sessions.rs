//! How a session of Lua begins and ends.
//!
//! It begins before the program's first state. A state belongs to the session that was there when
//! it was made.

use std::sync::Arc;

use super::hooks;
use crate::runtimes::attach::{Refusal, SessionHooks};
use crate::tracer::{Failure, Session};

pub(super) struct LuaSessions;

impl SessionHooks for LuaSessions {
    fn refusal(&self) -> Option<Refusal> {
        None
    }

    fn prepare(&self, session: &Arc<Session>) -> Result<(), Failure> {
        hooks::set_session(Some(Arc::clone(session)));
        Ok(())
    }

    fn begin(&self) {}

    /// States keep our allocator, which passes everything on.
    fn end(&self) {}

    fn release(&self) {
        hooks::set_session(None);
    }
}
