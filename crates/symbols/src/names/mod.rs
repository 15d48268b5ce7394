//! Demangling.
//!
//! The prefix of a name shows which compiler mangled it. A name that is not recognised
//! is not changed. Names are cut at [`MAX_NAME`] bytes: the demangled form of a short
//! name can have any length, since mangled names refer back to their own parts.

mod cpp;
mod ocaml;
mod rust;

use std::borrow::Cow;
use std::fmt;

/// The longest name that is returned, and the longest that is demangled, in bytes. All
/// locations of one code have 4,096 bytes in a trace.
pub const MAX_NAME: usize = 1024;

/// The readable form of a function's name.
pub fn readable(name: &[u8]) -> Cow<'_, [u8]> {
    // Without the symbol's version, as in memcpy@@GLIBC_2.14.
    let plain = name.split(|&byte| byte == b'@').next().filter(|plain| !plain.is_empty());
    let name = plain.unwrap_or(name);
    let Some(short) = std::str::from_utf8(name).ok().filter(|name| name.len() <= MAX_NAME) else {
        return Cow::Borrowed(name.get(..MAX_NAME).unwrap_or(name));
    };
    let readers = [ocaml::readable, rust::readable, cpp::readable];
    match readers.iter().find_map(|readable| readable(short)) {
        Some(text) => Cow::Owned(text.into_bytes()),
        None => Cow::Borrowed(name),
    }
}

/// A text of at most [`MAX_NAME`] bytes. Writing more is an error, which stops the
/// demangler.
#[derive(Default)]
struct Bounded {
    text: String,
    full: bool,
}

impl Bounded {
    /// The text, if all of it was written or all that fits.
    fn finish(self, whole: fmt::Result) -> Option<String> {
        (whole.is_ok() || self.full).then_some(self.text).filter(|text| !text.is_empty())
    }
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = MAX_NAME - self.text.len();
        if part.len() <= room {
            self.text.push_str(part);
            return Ok(());
        }
        let cut = (0..=room).rev().find(|&at| part.is_char_boundary(at)).unwrap_or(0);
        self.text.push_str(part.get(..cut).unwrap_or_default());
        self.full = true;
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(name: &str) -> String {
        String::from_utf8_lossy(&readable(name.as_bytes())).into_owned()
    }

    #[test]
    fn each_language_is_recognised_by_its_prefix() {
        assert_eq!(shown("camlStdlib__List__map_523"), "Stdlib.List.map");
        assert_eq!(
            shown("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back"
        );
        assert_eq!(shown("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(shown("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        for plain in ["main", "caml_alloc_shr", "caml_apply2", "camlinternal", "memcpy", "_Z", "_R"]
        {
            assert_eq!(shown(plain), plain);
        }
    }

    #[test]
    fn a_version_is_dropped() {
        assert_eq!(shown("memcpy@@GLIBC_2.14"), "memcpy");
        assert_eq!(shown("@odd"), "@odd");
    }

    #[test]
    fn a_name_that_grows_without_end_is_cut() {
        // Every level names the level before twice.
        let mut bomb = String::from("_Z1fI1aIiiE");
        for level in 0..20 {
            let back = if level == 0 {
                "S_".to_string()
            } else {
                format!("S{}_", (b'0' + (level - 1).min(9)) as char)
            };
            bomb.push_str(&format!("1aI{back}{back}E"));
        }
        bomb.push_str("Evv");
        assert!(shown(&bomb).len() <= MAX_NAME);
        let long = "x".repeat(5000);
        assert_eq!(shown(&long).len(), MAX_NAME);
        let long = format!("_Z{}{}v", 1000, "y".repeat(1000));
        assert_eq!(shown(&long), "y".repeat(1000));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

        #[test]
        fn any_bytes_have_a_form_of_bounded_length(name in prop::collection::vec(any::<u8>(), 0..1500)) {
            prop_assert!(readable(&name).len() <= MAX_NAME);
        }

        #[test]
        fn likely_names_do_too(name in "(_Z|_ZN|_R|_RNv|_RI|caml[A-Z]|__Z)[a-zA-Z0-9_.$]{0,120}") {
            prop_assert!(readable(name.as_bytes()).len() <= MAX_NAME);
        }

        #[test]
        fn names_made_of_manglings_parts_do_too(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "N", "S", "S_", "S0_", "S1_", "St", "Sa", "I", "E", "J", "L", "T_", "T0_", "Dp",
                    "DT", "1a", "3foo", "i", "v", "P", "R", "K", "C1", "D0", "pl", "cv", "X", "Ul",
                    "B_", "B0_", "Nv", "Nt", "C", "M", "Y", "T", "F", "D", "p", "s_", "17h", "$LT$",
                    "__", "_12", ".", "$2b", "fun_3", "Tv0_n8_", "GR", "fp_", "sr", "h",
                ]),
                0..60,
            ),
            prefix in prop::sample::select(vec!["_Z", "_R", "camlA", "_ZN"]),
        ) {
            let name = format!("{prefix}{}", parts.concat());
            prop_assert!(readable(name.as_bytes()).len() <= MAX_NAME);
        }
    }
}
