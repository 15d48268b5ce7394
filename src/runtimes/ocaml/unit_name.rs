//! Names of compilation units.

/// As a unit is named in sources: `Stdlib.Map` for `Stdlib__Map`.
pub(super) fn readable(name: &[u8]) -> Vec<u8> {
    let mut readable = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&first, after)) = rest.split_first() {
        match rest.strip_prefix(b"__") {
            Some(after) if !readable.is_empty() && !after.is_empty() => {
                readable.push(b'.');
                rest = after;
            }
            _ => {
                readable.push(first);
                rest = after;
            }
        }
    }
    readable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_separated_by_dots() {
        let name = |name: &str| String::from_utf8(readable(name.as_bytes())).unwrap();
        assert_eq!(name("Stdlib__Map"), "Stdlib.Map");
        assert_eq!(name("Dune__exe__Main"), "Dune.exe.Main");
        assert_eq!(
            (name("Main"), name("__x"), name("x__")),
            ("Main".into(), "__x".into(), "x__".into())
        );
    }
}
