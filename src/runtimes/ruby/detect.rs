//! Which Ruby a program holds, by its symbols.

use std::ffi::{CStr, c_char};

use heaptap_settings::RUBY;

use crate::runtimes::attach::{Lookup, Refusal};

/// The release whose layout is known.
const KNOWN: &CStr = c"3.1.2";

/// Whether these symbols are those of Ruby. A refusal if it is another release.
pub(super) fn is_ruby(lookup: Lookup<'_>) -> Result<bool, Refusal> {
    let has = |name: &CStr| lookup(name).is_some();
    if !(has(c"ruby_current_vm_ptr") && has(c"ruby_setup") && has(c"ruby_description")) {
        return Ok(false);
    }
    let Some(version) = lookup(c"ruby_version") else { return Ok(false) };
    // SAFETY: `const char ruby_version[]` (`version.c`), of every CRuby, which is never unloaded.
    let version = unsafe { CStr::from_ptr(version as *const c_char) };
    if version == KNOWN {
        return Ok(true);
    }
    let found = version.to_str().unwrap_or("of an unknown version");
    Err(Refusal::Version { found, supported: RUBY.releases })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_version(version: &'static CStr) -> Result<bool, Refusal> {
        is_ruby(&|name| match name.to_bytes() {
            b"ruby_version" => Some(version.as_ptr() as usize),
            b"ruby_current_vm_ptr" | b"ruby_setup" | b"ruby_description" => Some(1),
            _ => None,
        })
    }

    #[test]
    fn one_release_is_known() {
        assert_eq!(with_version(c"3.1.2"), Ok(true));
        let refusal = with_version(c"3.3.0").unwrap_err();
        assert_eq!(refusal.to_string(), "its runtime is 3.3.0: use 3.1.2");
    }

    #[test]
    fn other_programs_have_no_ruby() {
        assert_eq!(is_ruby(&|_| None), Ok(false));
        assert_eq!(is_ruby(&|name| (name == c"ruby_version").then_some(1)), Ok(false));
    }
}
