//! OCaml: everything that is known about its runtimes. Programs for amd64 are traced
//! unmodified.
//!
//! OCaml links its executables so that the runtime's functions can be found in
//! them by name, stripped or not. The runtime contains a statistical profiler
//! (`runtime/memprof.c`), whose functions are called wherever something is allocated,
//! moved or freed. Before `main` the first bytes of each of them are replaced by a jump
//! to a hook. All of them or none: they share state that hooks do not keep.
//!
//! - `version`: releases and major versions; `detect`: which one a program holds.
//! - `four`: OCaml 4.12 to 4.14, whose threads share one heap; `five`: OCaml 5.3
//!   and later, whose domains each have a young heap. Both have a table of hooks
//!   (`symbols`) and of layouts by release (`layout`).
//! - `attachment`: what both have in common.
//! - `frame_table`: the format of frame tables; `crossings`: how a walk gets past
//!   callbacks and fibers; `descriptors`: the runtime's own index of frames;
//!   `borrowed_tables`: tables that are found through it; `frames`: adds the tables of
//!   the program, and of plugins that it loads; `names`: of code without debug
//!   information.
//! - `values`: headers and lengths; `variable`: variables of the runtime; `bytecode`: what addresses in bytecode mean,
//!   also in code that is loaded later.

mod attachment;
mod borrowed_tables;
mod bytecode;
mod crossings;
mod descriptors;
mod detect;
mod five;
mod four;
pub(crate) mod frame_table;
mod frames;
mod names;
mod values;
mod variable;
pub(crate) mod version;

use std::ffi::CStr;

use crate::runtimes::attach::refusal::Refusal;
use crate::runtimes::attach::runtime::Lookup;
use crate::runtimes::attach::{Attachment, Runtime, patch, symbols};
use version::MajorVersion;

/// OCaml, for [`crate::runtimes::attach`].
pub(super) struct Ocaml;

impl Runtime for Ocaml {
    fn name(&self) -> &'static str {
        "OCaml"
    }

    fn detect(&self, lookup: Lookup<'_>) -> bool {
        lookup(c"caml_alloc_shr").is_some()
    }

    /// Read by `caml_parse_ocamlrunparam` (`runtime/startup_aux.c`, 4.14.1 and
    /// 5.3.0), the first thing that a runtime does.
    fn startup_variable(&self) -> Option<&'static CStr> {
        Some(c"OCAMLRUNPARAM")
    }

    fn attach(&self) -> Result<Option<Attachment>, Refusal> {
        if symbols::lookup(c"caml_memprof_start").is_some_and(patch::is_replaced) {
            return Ok(None);
        }
        match detect::version()? {
            MajorVersion::Four => four::attach(),
            MajorVersion::Five => five::attach(),
        }
        .map(Some)
    }

    fn set_label(&self, label: u32) -> u32 {
        match attachment::version() {
            Some(MajorVersion::Four) => four::set_label(label),
            Some(MajorVersion::Five) => five::set_label(label),
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_ocaml_has_no_runtime() {
        assert!(!Ocaml.detect(&symbols::lookup));
        assert!(Ocaml.detect(&|name| (name == c"caml_alloc_shr").then_some(1)));
    }
}
