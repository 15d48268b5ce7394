//! Which OCaml a program holds, by the symbols of its runtime.

use std::ffi::CStr;

use super::version::MajorVersion;
use crate::runtimes::attach::refusal::Refusal;
use crate::runtimes::attach::symbols::lookup;

/// The version of the runtime in this program, which holds one.
pub(super) fn version() -> Result<MajorVersion, Refusal> {
    let has = |name: &CStr| lookup(name).is_some();
    if has(c"Caml_state") && has(c"caml_memprof_main_ctx") {
        return Ok(MajorVersion::Four);
    }
    if has(c"caml_memprof_set_trigger") {
        return Ok(MajorVersion::Five);
    }
    Err(Refusal::Version(if has(c"caml_domain_spawn") {
        "OCaml 5.0 to 5.2, which cannot sample: use OCaml 4.14, 5.3 or 5.4"
    } else if has(c"caml_memprof_track_young") {
        "OCaml 4.10 or 4.11: use 4.12 to 4.14, 5.3 or 5.4"
    } else {
        "older than OCaml 4.12: use 4.12 to 4.14, 5.3 or 5.4"
    }))
}
