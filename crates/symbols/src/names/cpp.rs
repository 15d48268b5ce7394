//! C++ names (the Itanium ABI): `_ZN3foo3barEi` → `foo::bar`.
//!
//! Without parameters and return type: the file and line beside a name distinguish
//! overloads, and signatures of templates are longer than the names.

use cpp_demangle::{BorrowedSymbol, DemangleOptions};

use super::Bounded;

/// The readable form; `None` if it is no such name.
pub(super) fn readable(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let (symbol, tail) = BorrowedSymbol::with_tail(name.as_bytes()).ok()?;
    // A copy that the compiler made is shown as the function: .cold, .constprop.0.
    if tail.first().is_some_and(|&first| first != b'.') {
        return None;
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let mut text = Bounded::default();
    let whole = symbol.structured_demangle(&mut text, &options);
    text.finish(whole).map(|text| without_qualifiers(&text).to_string())
}

/// Removes the qualifiers of a member function, which remain where its parameters were.
fn without_qualifiers(name: &str) -> &str {
    let by_reference = name.trim_end_matches('&').strip_suffix(' ');
    let name = by_reference.unwrap_or(name);
    name.strip_suffix(" const").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn names_of_the_standard_library() {
        for (name, wanted) in [
            ("_Znwm", "operator new"),
            ("_ZdlPvm", "operator delete"),
            ("_ZSt20__throw_length_errorPKc", "std::__throw_length_error"),
            ("_ZNSt6thread4joinEv", "std::thread::join"),
            ("_ZNSs6appendEPKc", "std::string::append"),
            (
                "_ZNKRSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv",
                "std::__cxx11::basic_stringbuf<char, std::char_traits<char>, std::allocator<char> >::str",
            ),
            ("_ZNKSt9bad_alloc4whatEv", "std::bad_alloc::what"),
            ("_ZN3zoo6KeeperD0Ev", "zoo::Keeper::~Keeper"),
            ("_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()"),
            ("_ZN3zoo6Keeper4feedERKi.cold", "zoo::Keeper::feed"),
            ("_ZN1AadEv", "A::operator&"),
            ("_ZN1AaaEv", "A::operator&&"),
        ] {
            assert_eq!(readable(name).as_deref(), Some(wanted), "{name}");
        }
    }

    #[test]
    fn what_is_not_cpp_is_left_alone() {
        for name in ["main", "_Z", "_Zqqq", "_start", "Z3foov", "_Z3foov$odd", ""] {
            assert_eq!(readable(name), None, "{name}");
        }
    }
}
