//! Names of functions as people know them.
//!
//! OCaml's compiler names a module of a library after its file, `Stdlib__Map`, where
//! the source says `Stdlib.Map`. Names that come from symbols have dots already, so
//! that one function would have two names.

use std::borrow::Cow;

/// `Stdlib.Map.Make.bal` of OCaml's `Stdlib__Map.Make.bal`; any other name as it is.
pub(crate) fn shown(definition: &str) -> Cow<'_, str> {
    let end = definition.find('.').unwrap_or(definition.len());
    let (unit, rest) = definition.split_at(end);
    if !unit.starts_with(|c: char| c.is_ascii_uppercase()) || !unit.contains("__") {
        return Cow::Borrowed(definition);
    }
    let parts = unit.split("__").filter(|part| !part.is_empty());
    // Compilers before 4.08 did not capitalise them.
    let capital = |part: &str| {
        let mut chars = part.chars();
        chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect::<String>()
    };
    let parts: Vec<String> = parts.map(capital).collect();
    Cow::Owned(parts.join(".") + rest)
}

/// `Stdlib.List` of OCaml's `Stdlib__List.map`, `a::b` of Rust's or C++'s
/// `a::b::c`; of a C function, its file.
pub(crate) fn module_of(definition: &str, file: &str) -> String {
    let plain = definition.split(['<', '(']).next().unwrap_or(definition);
    if let Some((module, _)) = plain.rsplit_once("::") {
        return module.to_owned();
    }
    let plain = shown(plain);
    let is_module = |part: &&str| part.starts_with(|c: char| c.is_ascii_uppercase());
    let modules: Vec<&str> = plain.split('.').take_while(is_module).collect();
    if modules.is_empty() { file.to_owned() } else { modules.join(".") }
}

#[cfg(test)]
mod tests {
    use super::{module_of, shown};

    #[test]
    fn names_are_those_of_the_source() {
        assert_eq!(shown("Stdlib__Map.Make.bal"), "Stdlib.Map.Make.bal");
        assert_eq!(shown("Stdlib__set.Make.bal"), "Stdlib.Set.Make.bal");
        assert_eq!(shown("Dune__exe__Main.a__b"), "Dune.Exe.Main.a__b");
        assert_eq!(shown("Lib__.f"), "Lib.f");
        assert_eq!(shown("Lib__été.f"), "Lib.Été.f");
        for name in ["Stdlib.Map.add", "my__function", "", ".", "Été__x.f", "__libc_start_main"] {
            assert_eq!(shown(name), name);
        }
    }

    #[test]
    fn modules_are_those_of_the_language() {
        assert_eq!(module_of("Stdlib__List.map", "list.ml"), "Stdlib.List");
        // The same function, named by its symbol.
        assert_eq!(module_of("Stdlib.List.map", ""), "Stdlib.List");
        assert_eq!(module_of("Stdlib__Map.Make.bal", "map.ml"), "Stdlib.Map.Make");
        assert_eq!(module_of("Typecore.type_expect.(fun)", "typecore.ml"), "Typecore");
        assert_eq!(module_of("Dune__exe__Main.entry", "main.ml"), "Dune.Exe.Main");
        assert_eq!(module_of("alloc::vec::Vec<T>::push", "vec.rs"), "alloc::vec");
        assert_eq!(module_of("std::map::insert(int)", "map.h"), "std::map");
        assert_eq!(module_of("caml_alloc_small", "runtime/alloc.c"), "runtime/alloc.c");
    }
}
