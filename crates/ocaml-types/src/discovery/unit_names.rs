//! Units, their files and what snapshots call them.

/// The module's name in snapshots: `Stdlib.Map` for `Stdlib__Map`.
pub(crate) fn readable(unit: &str) -> String {
    let mut name = String::with_capacity(unit.len());
    let mut rest = unit;
    while let Some(first) = rest.chars().next() {
        match rest.strip_prefix("__").filter(|after| !name.is_empty() && !after.is_empty()) {
            Some(after) => {
                name.push('.');
                rest = after;
            }
            None => {
                name.push(first);
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
            }
        }
    }
    name
}

/// The unit that a file describes, by its name.
pub(crate) fn unit_of_stem(stem: &str) -> String {
    let mut name = stem.to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_names_of_modules() {
        assert_eq!(readable("Stdlib__Map"), "Stdlib.Map");
        assert_eq!(readable("Dune__exe__Main"), "Dune.exe.Main");
        assert_eq!(readable("Lib__"), "Lib__");
        assert_eq!(readable("__private"), "__private");
        assert_eq!(unit_of_stem("dune__exe__Main"), "Dune__exe__Main");
        assert_eq!(unit_of_stem(""), "");
    }
}
