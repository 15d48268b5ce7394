//! What attaching to OCaml 4 and to OCaml 5 have in common.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use super::version::MajorVersion;
use super::{bytecode, frames, names};
use crate::runtimes::attach::{Attachment, Replacement};
use crate::tracer::{Failure, Options, Session};

/// An attachment that adds the frame tables before `start`, and watches for plugins and
/// bytecode that are loaded later.
pub(super) fn attachment(
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
            frames::add_all(session, version);
            start(session)
        }),
        attached: || {
            frames::watch_plugins();
            bytecode::watch_loading();
        },
    }
}

/// The runtime's settings, for a trace of a runtime whose parameters cannot be read:
/// the environment variables that OCaml reads them from (`runtime/startup_aux.c`, 4.14.1 and 5.3.0).
fn runtime_params() -> Vec<u8> {
    let params = ["OCAMLRUNPARAM", "CAMLRUNPARAM"].into_iter().find_map(std::env::var_os);
    params.map(OsString::into_vec).unwrap_or_default()
}
