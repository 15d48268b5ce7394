//! C++ names (the Itanium ABI): `_ZN3foo3barEi` → `foo::bar`.
//!
//! Without parameters and return type: the file and line next to a name tell
//! overloads apart, and templates' signatures are longer than what they name.

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

use super::Bounded;

/// How deep a name may nest: this runs on a thread whose stack is not ours.
const MAX_DEPTH: u32 = 64;

/// The readable form, or None if it is not such a name.
pub(super) fn readable(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let parse = ParseOptions::default().recursion_limit(MAX_DEPTH);
    let (symbol, _clone_suffix) =
        BorrowedSymbol::with_tail_and_options(name.as_bytes(), &parse).ok()?;
    let options = DemangleOptions::new().no_params().no_return_type().recursion_limit(MAX_DEPTH);
    let mut text = Bounded::default();
    let whole = symbol.structured_demangle(&mut text, &options);
    text.finish(whole)
}
