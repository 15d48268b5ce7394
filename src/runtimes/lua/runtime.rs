//! Lua as a [`Runtime`].

use std::sync::Arc;

use heaptap_settings::LUA;

use super::places::Places;
use super::symbols::{Calls, Functions, Lua};
use super::{detect, hooks, proof, sessions};
use crate::runtimes::attach::{Attachment, Lookup, Refusal, Runtime};
use crate::tracer::{Options, Rate, Tracking};

/// Lua 5.4.
pub(in crate::runtimes) struct Lua54;

impl Runtime for Lua54 {
    fn name(&self) -> &'static str {
        LUA.name
    }

    fn detect(&self, lookup: Lookup<'_>) -> Result<bool, Refusal> {
        detect::is_lua(lookup)
    }

    fn attach(&self) -> Result<Option<Attachment>, Refusal> {
        if detect::is_traced_already() {
            return Ok(None);
        }
        let functions = Functions::find()?;
        let calls = Calls::find()?;
        let places = Places::new().ok_or(Refusal::Layout("there is no memory for places"))?;
        // For good: hooks use them, and the writer thread until the process ends.
        let places: &'static Places = Box::leak(Box::new(places));
        let standard_allocator = proof::prove(&calls, &functions, places)?;
        hooks::set_runtime(Lua { get_info: calls.get_info, standard_allocator, places });
        let options = Options {
            tracking: Tracking::Addresses,
            runtime_params: detect::RELEASE.into(),
            locate: Some(Arc::new(|code, list| places.locate(code, list))),
            ..Options::new(Vec::new(), Rate::DEFAULT)
        };
        let replacements = hooks::replacements(&functions);
        Ok(Some(Attachment { options, replacements, hooks: Box::new(sessions::LuaSessions) }))
    }
}
