//! OCaml on amd64: programs are traced as they are.
//!
//! OCaml links its executables so that the runtime's functions can be found in
//! them by name, stripped or not. The runtime has a statistical profiler of its
//! own (`runtime/memprof.c`), which is called wherever something is allocated,
//! moved or freed. Before `main` we replace the first bytes of each of its
//! functions by a jump to ours. All of them or none: they share state that ours
//! do not keep.
//!
//! - `four`: OCaml 4.12 to 4.14, whose threads share one heap; `five`: OCaml 5.3
//!   and later, whose domains each have a young heap.
//! - `detect`: which OCaml it is.
//! - `values`: headers and lengths; `bytecode`: what addresses in bytecode mean,
//!   also of code that is loaded later.
//! - `frames`: the frame tables, also those of plugins loaded later;
//!   `descriptors`: the runtime's own index of them; `names`: of code that they
//!   say nothing of.

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
pub(crate) mod version;

use std::ffi::{CStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::sync::{Arc, OnceLock};

use crate::runtimes::attach::patch::{self, Replacement};
use crate::runtimes::attach::refusal::Refusal;
use crate::runtimes::attach::runtime::Lookup;
use crate::runtimes::attach::{Attachment, Runtime, symbols};
use crate::tracer::{Failure, Options, Session};
use detect::Line;
use version::MajorVersion;

/// OCaml, for [`crate::runtimes::attach`].
pub(super) struct Ocaml;

/// The version that is traced, from before its first hook.
static VERSION: OnceLock<MajorVersion> = OnceLock::new();

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
        match detect::line()? {
            Line::Four => four::attach(),
            Line::Five => five::attach(),
        }
        .map(Some)
    }

    fn set_label(&self, label: u32) -> u32 {
        match VERSION.get() {
            Some(MajorVersion::Four) => four::set_label(label),
            Some(MajorVersion::Five) => five::set_label(label),
            None => 0,
        }
    }
}

/// What both versions have in common of an attachment.
fn attachment(
    version: MajorVersion,
    options: Options,
    replacements: Vec<Replacement>,
    start: impl FnOnce(&Arc<Session>) -> Result<(), Failure> + 'static,
) -> Attachment {
    let (runtime_params, name) = (runtime_params(), names::namer());
    Attachment {
        options: Options { header_words: 1, runtime_params, name, ..options },
        replacements,
        prepare: Box::new(move |session| {
            let _ = VERSION.set(version);
            frames::add_all(session, version);
            start(session)
        }),
        attached: || {
            frames::follow_plugins();
            bytecode::follow_loading();
        },
    }
}

/// The runtime's settings, for the trace: the environment variables that OCaml
/// reads them from (`runtime/startup_aux.c`, 4.14.1 and 5.3.0).
fn runtime_params() -> Vec<u8> {
    let params = ["OCAMLRUNPARAM", "CAMLRUNPARAM"].into_iter().find_map(std::env::var_os);
    params.map(OsString::into_vec).unwrap_or_default()
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
