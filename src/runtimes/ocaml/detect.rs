//! Which OCaml a program holds, by the symbols of its runtime.

use std::ffi::CStr;

use heaptap_settings::OCAML;

use super::version::MajorVersion;
use crate::runtimes::attach::{Lookup, Refusal, patch, symbols};

/// Read by `caml_parse_ocamlrunparam` (`runtime/startup_aux.c`, 4.14.1 and 5.3.0),
/// the first thing that a runtime does.
pub(super) const STARTUP_VARIABLE: &CStr = c"OCAMLRUNPARAM";

/// The version of the runtime with these symbols; `None` if they are not OCaml's. A
/// refusal if the version is not supported.
pub(super) fn version(lookup: Lookup<'_>) -> Result<Option<MajorVersion>, Refusal> {
    let has = |name: &CStr| lookup(name).is_some();
    if !has(c"caml_alloc_shr") {
        return Ok(None);
    }
    if has(c"Caml_state") && has(c"caml_memprof_main_ctx") {
        return Ok(Some(MajorVersion::Four));
    }
    if has(c"caml_memprof_set_trigger") {
        return Ok(Some(MajorVersion::Five));
    }
    let found = if has(c"caml_domain_spawn") {
        "OCaml 5.0 to 5.2, which cannot sample"
    } else if has(c"caml_memprof_track_young") {
        "OCaml 4.10 or 4.11"
    } else {
        "older than OCaml 4.12"
    };
    Err(Refusal::Version { found, supported: OCAML.releases })
}

/// Whether another copy of this library traces the runtime in this program.
pub(super) fn is_traced_already() -> bool {
    let is_replaced = |function| {
        // SAFETY: `caml_memprof_start` is a function of the runtime, longer than 16 bytes
        // in every release that has it (`runtime/memprof.c`). Its target, if it begins
        // with a jump, is a relay or code of the same runtime.
        unsafe { patch::is_replaced(function) }
    };
    symbols::lookup(c"caml_memprof_start").is_some_and(is_replaced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::KNOWN;
    use crate::runtimes::attach::runtime::detect;

    const FOUR: [&CStr; 3] = [c"caml_alloc_shr", c"Caml_state", c"caml_memprof_main_ctx"];
    const FIVE: [&CStr; 2] = [c"caml_alloc_shr", c"caml_memprof_set_trigger"];

    fn version_with(symbols: &[&CStr]) -> Result<Option<MajorVersion>, Refusal> {
        version(&|name| symbols.contains(&name).then_some(1))
    }

    /// Why a program with these symbols is refused, as an OCaml.
    fn refused(symbols: &[&CStr]) -> Option<Refusal> {
        let lookup = |name: &CStr| symbols.contains(&name).then_some(1);
        let detected = detect(KNOWN, &lookup).expect("an OCaml");
        assert_eq!(detected.runtime.name(), OCAML.name);
        detected.supported.err()
    }

    #[test]
    fn a_program_without_ocaml_has_no_runtime() {
        assert!(detect(KNOWN, &symbols::lookup).is_none());
        assert_eq!(version(&symbols::lookup), Ok(None));
        assert_eq!(version_with(&[c"Caml_state", c"caml_memprof_set_trigger"]), Ok(None));
    }

    #[test]
    fn each_version_is_detected_by_its_own_runtime() {
        assert_eq!(version_with(&FOUR), Ok(Some(MajorVersion::Four)));
        assert_eq!(version_with(&FIVE), Ok(Some(MajorVersion::Five)));
        for (symbols, runtime) in [(&FOUR[..], 0), (&FIVE[..], 1)] {
            assert_eq!(refused(symbols), None);
            let lookup = |name: &CStr| symbols.contains(&name).then_some(1);
            let found: Vec<_> = KNOWN.iter().map(|known| known.detect(&lookup)).collect();
            assert_eq!(found.iter().position(|found| *found == Ok(true)), Some(runtime));
            assert_eq!(found.iter().filter(|found| **found == Ok(true)).count(), 1);
        }
    }

    #[test]
    fn other_versions_are_refused() {
        let refusal =
            |symbol| refused(&[c"caml_alloc_shr", symbol]).map(|refusal| refusal.to_string());
        for (symbol, found) in [
            (c"caml_domain_spawn", "OCaml 5.0 to 5.2, which cannot sample"),
            (c"caml_memprof_track_young", "OCaml 4.10 or 4.11"),
            (c"caml_alloc_shr", "older than OCaml 4.12"),
        ] {
            let message = format!("its runtime is {found}: use 4.12 to 4.14, 5.3 or 5.4");
            assert_eq!(refusal(symbol), Some(message));
        }
    }
}
