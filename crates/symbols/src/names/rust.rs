//! Rust names, both manglings, without the hash that ends them:
//! `_ZN4core3fmt5write17h0123456789abcdefE` and `_RNvNtC4core3fmt5write` →
//! `core::fmt::write`.

use std::fmt::Write;

use super::Bounded;

/// The readable form, or None if it is not such a name.
pub(super) fn readable(name: &str) -> Option<String> {
    if !name.starts_with("_R") && !name.starts_with("_ZN") {
        return None;
    }
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut text = Bounded::default();
    let whole = write!(text, "{demangled:#}");
    text.finish(whole)
}
