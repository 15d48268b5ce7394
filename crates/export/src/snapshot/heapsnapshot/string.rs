//! The numbers of strings in the table of strings.

/// The strings that every file has.
pub(super) const STRINGS: [&str; 6] = ["", "(GC roots)", "slot", "data", "outside the heap", "key"];

pub(super) const EMPTY: u64 = 0;
pub(super) const GC_ROOTS: u64 = 1;
/// Of a pointer from a suspended stack.
pub(super) const SLOT: u64 = 2;
/// Of an ephemeron.
pub(super) const DATA: u64 = 3;
pub(super) const OUTSIDE: u64 = 4;
/// Of an ephemeron.
pub(super) const KEY: u64 = 5;
/// The first name of a source.
pub(super) const NAMES: u64 = STRINGS.len() as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_have_their_numbers() {
        let named = [
            (EMPTY, ""),
            (GC_ROOTS, "(GC roots)"),
            (SLOT, "slot"),
            (DATA, "data"),
            (OUTSIDE, "outside the heap"),
            (KEY, "key"),
        ];
        for (index, text) in named {
            assert_eq!(STRINGS[index as usize], text);
        }
    }
}
