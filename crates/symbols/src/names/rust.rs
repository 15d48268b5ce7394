//! Rust names, both manglings, without the hash that ends them:
//! `_ZN4core3fmt5write17h0123456789abcdefE` and `_RNvNtC4core3fmt5write` →
//! `core::fmt::write`.

use std::fmt::Write;

use super::Bounded;

/// The readable form; `None` if it is no such name.
pub(super) fn readable(name: &str) -> Option<String> {
    if !name.starts_with("_R") && !name.starts_with("_ZN") {
        return None;
    }
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut text = Bounded::default();
    let whole = write!(text, "{demangled:#}");
    text.finish(whole)
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn legacy_names() {
        for (name, wanted) in [
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            (
                "_ZN4core3ptr62drop_in_place$LT$program..Zoo$LT$alloc..string..String$GT$$GT$17h3db1cb9cd8e2f55cE",
                "core::ptr::drop_in_place<program::Zoo<alloc::string::String>>",
            ),
            (
                "_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17hc0259c15f6b49ec0E",
                "std::rt::lang_start::{{closure}}",
            ),
        ] {
            assert_eq!(readable(name).as_deref(), Some(wanted), "{name}");
        }
    }

    #[test]
    fn v0_names() {
        for (name, wanted) in [
            ("_RNvNtCs1234_4core3fmt5write", "core::fmt::write"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("_RNCNvCsgStHSCytQ6I_7mycrate4main0B3_", "mycrate::main::{closure#0}"),
            ("_RNvCscSYwAIFpW9W_7program4fill", "program::fill"),
            (
                "_RNvMCscSYwAIFpW9W_7programINtB2_3ZooNtNtCslNYArtu3iFV_5alloc6string6StringE5twiceB2_",
                "<program::Zoo<alloc::string::String>>::twice",
            ),
            ("_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>"),
        ] {
            assert_eq!(readable(name).as_deref(), Some(wanted), "{name}");
        }
    }

    #[test]
    fn cpp_names_are_not_taken_for_rust() {
        for name in ["_ZN3foo3barEv", "_ZNSt6thread4joinEv", "_R", "_RX", "main"] {
            assert_eq!(readable(name), None, "{name}");
        }
    }
}
