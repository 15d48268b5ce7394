//! OCaml's symbols: `camlStdlib__List__map_523` → `Stdlib.List.map`.
//!
//! `caml`, the compilation unit, a separator, the identifier, `_` and a stamp.
//! The separator is `__` up to 5.0 and `.` from 5.1 (`symbol_separator` in
//! `middle_end/compilenv.ml`, 5.3.0; Changes, #11430). Inside a unit's name `__`
//! stands between library and module (`Stdlib__List`, `Dune__exe__Main`) in all
//! versions, and between packs up to 5.0. Other bytes are `$` and two hexadecimal
//! digits (`string_of_symbol` in `asmcomp/x86_proc.ml`, 4.14.1 and 5.3.0).
//!
//! `__` is ambiguous, since identifiers may contain it: everything after the last part
//! that begins with a capital letter is taken as the identifier. Operators are put in
//! parentheses, as in the runtime's own names: `Stdlib.(@)`.

/// The readable form; `None` if it is no such name.
pub(super) fn readable(name: &str) -> Option<String> {
    let rest = name.strip_prefix("caml")?;
    // The functions of the runtime, such as caml_alloc, begin with a small letter.
    if !rest.starts_with(|first: char| first.is_ascii_uppercase()) {
        return None;
    }
    let rest = without_stamp(rest);
    let (modules, identifier) = match rest.rsplit_once('.') {
        Some((unit, identifier)) => (unit.replace("__", "."), identifier),
        None => by_underscores(rest),
    };
    let modules = unescape(&modules)?;
    let identifier = unescape(identifier)?;
    let first = identifier.chars().next();
    Some(match first {
        None => modules,
        Some(first) if first.is_alphanumeric() || first == '_' => format!("{modules}.{identifier}"),
        Some(_) => format!("{modules}.({identifier})"),
    })
}

/// Removes the `_` and digits at the end of a name.
fn without_stamp(name: &str) -> &str {
    let bare = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
    match bare.strip_suffix('_') {
        // A name that would be empty without its stamp keeps it.
        Some(before) if bare.len() < name.len() && !before.ends_with(['_', '.']) => before,
        _ => name,
    }
}

/// The modules, and the identifier, which may be empty.
fn by_underscores(name: &str) -> (String, &str) {
    let is_module = |part: &str| part.starts_with(|first: char| first.is_ascii_uppercase());
    let mut start = 0;
    let mut modules_end = name.len();
    let mut identifier = "";
    for part in name.split("__") {
        let end = start + part.len();
        if is_module(part) {
            modules_end = end;
            identifier = name.get(end + 2..).unwrap_or_default();
        }
        start = end + 2;
    }
    (name.get(..modules_end).unwrap_or_default().replace("__", "."), identifier)
}

/// Replaces `$` and two hexadecimal digits by the byte; `None` if the result is not
/// UTF-8.
fn unescape(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let (byte, after) = escaped(rest).unwrap_or((first, after));
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

fn escaped(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, after) = bytes.strip_prefix(b"$")?.split_first_chunk::<2>()?;
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some((digit(digits[0])? << 4 | digit(digits[1])?, after))
}

#[cfg(test)]
mod tests {
    use super::readable;

    fn is(name: &str, wanted: &str) {
        assert_eq!(readable(name).as_deref(), Some(wanted), "{name}");
    }

    #[test]
    fn names_up_to_5_0() {
        is("camlStdlib__List__map_523", "Stdlib.List.map");
        is("camlFoo__bar_12", "Foo.bar");
        is("camlFoo__fun_1234", "Foo.fun");
        is("camlFoo__entry", "Foo.entry");
        is("camlFoo__code_begin", "Foo.code_begin");
        is("camlFoo__map_2_523", "Foo.map_2");
        is("camlFoo___hidden_3", "Foo._hidden");
        is("camlFoo__my__long__name_3", "Foo.my__long__name");
        is("camlDune__exe__Main__loop_7", "Dune.exe.Main.loop");
        is("camlStdlib__Map__Make_1234", "Stdlib.Map.Make");
        is("camlCamlinternalFormat__fun_9", "CamlinternalFormat.fun");
        is("camlFoo__bar'_12", "Foo.bar'");
    }

    #[test]
    fn names_from_5_1_on() {
        is("camlStdlib__List.map_523", "Stdlib.List.map");
        is("camlFoo.my__name_3", "Foo.my__name");
        is("camlFoo.fun_1234", "Foo.fun");
        is("camlFoo.entry", "Foo.entry");
        is("camlDune__exe__Main.loop_7", "Dune.exe.Main.loop");
        is("camlPack.Sub.f_1", "Pack.Sub.f");
    }

    #[test]
    fn escaped_bytes() {
        is("camlStdlib__$40_197", "Stdlib.(@)");
        is("camlStdlib.$5e$5e_12", "Stdlib.(^^)");
        is("camlStdlib__Bytes__$2b$2b_127", "Stdlib.Bytes.(++)");
        is("camlCamlinternalFormat__k$27_3451", "CamlinternalFormat.k'");
        is("camlFoo__odd$", "Foo.odd$");
        is("camlFoo__odd$4", "Foo.odd$4");
        is("camlFoo__odd$zz_1", "Foo.odd$zz");
        assert_eq!(readable("camlFoo__$ff_1"), None);
    }

    #[test]
    fn other_names_are_not_recognised() {
        for name in ["caml_alloc", "caml", "camlot", "main", "camel__Foo", "_camlFoo"] {
            assert_eq!(readable(name), None, "{name}");
        }
    }
}
