//! Which OCaml a program holds, by the symbols of its runtime.

use std::ffi::CStr;

use crate::runtimes::attach::refusal::Refusal;
use crate::runtimes::attach::symbols::lookup;

/// Runtimes whose profilers are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// 4.12 to 4.14.
    Four,
    /// 5.3 and later.
    Five,
}

/// Which runtime is in this program, by what it has; `None` if there is none.
pub(crate) fn line() -> Result<Option<Line>, Refusal> {
    let has = |name: &CStr| lookup(name).is_some();
    if !has(c"caml_alloc_shr") {
        return Ok(None);
    }
    if has(c"Caml_state") && has(c"caml_memprof_main_ctx") {
        return Ok(Some(Line::Four));
    }
    if has(c"caml_memprof_set_trigger") {
        return Ok(Some(Line::Five));
    }
    Err(Refusal::Version(if has(c"caml_domain_spawn") {
        "OCaml 5.0 to 5.2, which cannot sample: use OCaml 4.14, 5.3 or 5.4"
    } else if has(c"caml_memprof_track_young") {
        "OCaml 4.10 or 4.11: use 4.12 to 4.14, 5.3 or 5.4"
    } else {
        "older than OCaml 4.12: use 4.12 to 4.14, 5.3 or 5.4"
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_ocaml_has_no_runtime() {
        assert_eq!(line(), Ok(None));
    }
}
