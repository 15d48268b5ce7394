//! OCaml as a [`Runtime`]: what both major versions have in common.

use std::ffi::CStr;
use std::path::PathBuf;

use heaptap_settings::OCAML;

use super::version::MajorVersion;
use super::{bytecode, detect};
use crate::probes::Cell;
use crate::runtimes::attach::{Attachment, Lookup, Refusal, Runtime};
use crate::tracer::Failure;

/// One major version of OCaml, for [`crate::runtimes::attach`].
pub(in crate::runtimes) struct Ocaml {
    pub(super) version: MajorVersion,
    /// Proves that the runtime is as known, and returns how to trace it.
    pub(super) attachment: fn() -> Result<Attachment, Refusal>,
    /// See [`Runtime::is_running`].
    pub(super) is_running: fn() -> bool,
    /// See [`Runtime::prepare_snapshots`].
    pub(super) prepare_snapshots: fn() -> Result<(), Refusal>,
    /// See [`Runtime::hook_polls`].
    pub(super) hook_polls: fn() -> Result<(), Refusal>,
    /// See [`Runtime::set_label`].
    pub(super) set_label: fn(u32) -> u32,
    /// See [`Runtime::tag`].
    pub(super) tag: fn(&Cell, usize, bool) -> Result<(), Failure>,
}

impl Runtime for Ocaml {
    fn name(&self) -> &'static str {
        OCAML.name
    }

    fn detect(&self, lookup: Lookup<'_>) -> Result<bool, Refusal> {
        Ok(detect::version(lookup)? == Some(self.version))
    }

    fn startup_variable(&self) -> Option<&'static CStr> {
        Some(detect::STARTUP_VARIABLE)
    }

    fn is_running(&self) -> bool {
        (self.is_running)()
    }

    fn interpreted(&self) -> Option<PathBuf> {
        bytecode::interpreted()
    }

    fn attach(&self) -> Result<Option<Attachment>, Refusal> {
        if detect::is_traced_already() {
            return Ok(None);
        }
        (self.attachment)().map(Some)
    }

    fn prepare_snapshots(&self) -> Result<(), Refusal> {
        (self.prepare_snapshots)()
    }

    fn hook_polls(&self) -> Result<(), Refusal> {
        (self.hook_polls)()
    }

    fn set_label(&self, label: u32) -> u32 {
        (self.set_label)(label)
    }

    fn tag(&self, probe: &Cell, block: usize, young: bool) -> Result<(), Failure> {
        (self.tag)(probe, block, young)
    }
}
