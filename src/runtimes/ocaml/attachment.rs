//! What attaching to OCaml 4 and to OCaml 5 have in common.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::timing::{self, Report};
use super::version::MajorVersion;
use super::{bytecode, frames, names};
use crate::runtimes::attach::image::LoadedImage;
use crate::runtimes::attach::{Attachment, Refusal, Replacement, SessionHooks, symbols};
use crate::tracer::{Failure, Options, Session};

/// What one major version does when a session begins and ends. See [`SessionHooks`].
pub(super) trait VersionHooks: Send + Sync {
    const VERSION: MajorVersion;
    /// Reports an edge of a slice of the collector to the mutator that it is about.
    const REPORT_SLICE: Report;

    /// Whether the program takes a profile of its own.
    fn is_in_use(&self) -> bool;
    fn prepare(&self, session: &Arc<Session>) -> Result<(), Failure>;
    fn begin(&self);
    fn end(&self);
    fn release(&self);
    fn allocated_words(&self) -> Option<u64>;
}

/// Sessions of OCaml.
struct OcamlSessions<V> {
    of_version: V,
    /// The session that was prepared, until it is released.
    session: Mutex<Option<Arc<Session>>>,
}

/// An attachment whose sessions know the frame tables of the program, and notice plugins and
/// bytecode that are loaded later.
pub(super) fn attachment<V: VersionHooks + 'static>(
    options: Options,
    replacements: Vec<Replacement>,
    of_version: V,
) -> Attachment {
    frames::prepare(V::VERSION);
    let (runtime_params, name) = (runtime_params(), names::namer());
    Attachment {
        options: Options {
            header_words: 1,
            runtime_params,
            name,
            is_runtime: Some(is_runtime),
            ..options
        },
        replacements,
        hooks: Box::new(OcamlSessions { of_version, session: Mutex::new(None) }),
    }
}

/// Whether an address is one of the code that has the runtime: the program or a library.
fn is_runtime(address: usize) -> bool {
    let image = |address| LoadedImage::of(address).map(|image| image.path().to_owned());
    symbols::lookup(c"caml_alloc_shr").is_some_and(|known| image(known) == image(address))
}

impl<V> OcamlSessions<V> {
    fn session(&self) -> MutexGuard<'_, Option<Arc<Session>>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V: VersionHooks> SessionHooks for OcamlSessions<V> {
    fn watch(&self) {
        frames::watch_plugins();
        bytecode::watch_loading();
    }

    fn refusal(&self) -> Option<Refusal> {
        self.of_version.is_in_use().then_some(Refusal::InUse)
    }

    fn prepare(&self, session: &Arc<Session>) -> Result<(), Failure> {
        frames::add_all(session, V::VERSION);
        *self.session() = Some(Arc::clone(session));
        self.of_version.prepare(session)
    }

    fn begin(&self) {
        if let Some(session) = &*self.session() {
            frames::begin(session, V::VERSION);
            self.of_version.begin();
            if session.options.time_line {
                timing::set_hooks(V::REPORT_SLICE);
            }
        }
    }

    fn end(&self) {
        timing::remove_hooks();
        self.of_version.end();
        frames::end();
    }

    fn release(&self) {
        self.of_version.release();
        *self.session() = None;
    }

    fn allocated_words(&self) -> Option<u64> {
        self.of_version.allocated_words()
    }
}

/// The runtime's settings, for a trace of a runtime whose parameters cannot be read:
/// the environment variables that OCaml reads them from (`runtime/startup_aux.c`, 4.14.1 and 5.3.0).
fn runtime_params() -> Vec<u8> {
    let params = ["OCAMLRUNPARAM", "CAMLRUNPARAM"].into_iter().find_map(std::env::var_os);
    params.map(OsString::into_vec).unwrap_or_default()
}
