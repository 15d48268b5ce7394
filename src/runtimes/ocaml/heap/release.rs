//! The release of OCaml in full, such as 4.14.1.
//!
//! No variable of the runtime in native code holds it. The standard library does: `Sys.ocaml_version`
//! is a field of the module's block, and the only one that is a string of that form.

use super::words::is_pointer;
use crate::runtimes::attach::symbols::lookup;
use crate::runtimes::ocaml::Releases;
use crate::runtimes::ocaml::bytecode::GlobalUnits;
use crate::runtimes::ocaml::values::{Header, STRING};
use crate::sys::process_memory::read_word;
use crate::tracer::WORD;

/// More fields than the module `Sys` has.
const MOST_FIELDS: usize = 256;
/// More words than a release needs.
const MOST_WORDS: usize = 8;

/// The release of native code; `None` in a program without `Sys`. On any thread: the reads cannot
/// fault, and what they find is checked.
pub(crate) fn of_native() -> Option<String> {
    release_in(lookup(c"camlStdlib__Sys")?)
}

/// The same of bytecode. `global_data` is the address of `caml_global_data`.
pub(crate) fn of_bytecode(global_data: usize, units: Option<&GlobalUnits>) -> Option<String> {
    let unit = units?.units.iter().find(|unit| unit.name == b"Stdlib.Sys")?;
    let table = read_word(global_data).filter(|&table| is_pointer(table))?;
    let module = read_word(table.checked_add(unit.slot * WORD)?);
    release_in(module.filter(|&module| is_pointer(module))?)
}

/// Why a heap must not be walked whose runtime is laid out as these releases, if the program
/// states that it is of another.
pub(crate) fn refusal(laid_out_as: Releases, stated: Option<String>) -> Option<&'static str> {
    const OTHER: &str = "the program states a release of OCaml whose heap heaptap does not know";
    stated.is_some_and(|release| !laid_out_as.contain(&release)).then_some(OTHER)
}

fn release_in(module: usize) -> Option<String> {
    let fields = header(module)?.size().min(MOST_FIELDS);
    (0..fields).find_map(|index| {
        let value = read_word(module + index * WORD).filter(|&value| is_pointer(value))?;
        string(value).filter(|text| is_release(text))
    })
}

/// The header in front of a block.
fn header(block: usize) -> Option<Header> {
    read_word(block.checked_sub(WORD)?).map(Header)
}

/// A short string. Its last byte is the distance to its end.
fn string(block: usize) -> Option<String> {
    let header = header(block)?;
    if header.tag() != STRING || header.size() > MOST_WORDS {
        return None;
    }
    let mut bytes = Vec::new();
    for index in 0..header.size() {
        bytes.extend_from_slice(&read_word(block + index * WORD)?.to_ne_bytes());
    }
    let padding = usize::from(*bytes.last()?);
    bytes.truncate(bytes.len().checked_sub(padding + 1)?);
    String::from_utf8(bytes).ok()
}

/// Whether it is of the form 4.14.1, or 5.3.0+dev1 or 5.3.0~rc1.
fn is_release(text: &str) -> bool {
    let numbers = text.split(['+', '~']).next().unwrap_or_default();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.split('.').count() == 3 && numbers.split('.').all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::ocaml::bytecode::Unit;
    use crate::runtimes::ocaml::version::MajorVersion;

    /// A block of a string, with its header in front.
    fn block(text: &str) -> Vec<usize> {
        let size = text.len() / WORD + 1;
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(size * WORD, 0);
        bytes[size * WORD - 1] = (size * WORD - 1 - text.len()) as u8;
        let words = bytes.chunks(WORD).map(|word| usize::from_ne_bytes(word.try_into().unwrap()));
        std::iter::once(size << 10 | usize::from(STRING)).chain(words).collect()
    }

    #[test]
    fn the_release_is_found_among_the_fields_of_a_module() {
        let (name, release) = (block("/usr/bin/program"), block("4.14.1"));
        let mut module = vec![4 << 10, 1, name[1..].as_ptr() as usize, 8, 0];
        let found =
            |module: &[usize]| release_in(std::hint::black_box(module)[1..].as_ptr() as usize);
        assert_eq!(found(&module), None);
        module[4] = release[1..].as_ptr() as usize;
        assert_eq!(found(&module).as_deref(), Some("4.14.1"));
        assert_eq!(release_in(0), None);
        let table = [2 << 10, 1, module[1..].as_ptr() as usize];
        let global_data = table[1..].as_ptr() as usize;
        let unit = Unit { slot: 1, name: b"Stdlib.Sys".into() };
        let units = GlobalUnits { slots: 2, units: vec![unit] };
        let variable = std::hint::black_box(&raw const global_data) as usize;
        std::hint::black_box((&table, &module));
        assert_eq!(of_bytecode(variable, Some(&units)).as_deref(), Some("4.14.1"));
        assert_eq!(of_bytecode(variable, None), None);
    }

    #[test]
    fn a_heap_of_another_release_than_the_runtime_looks_like_is_not_walked() {
        let four = Releases::new(MajorVersion::Four, 13, 14);
        let is_refused = |stated: Option<&str>| refusal(four, stated.map(String::from)).is_some();
        assert!(!is_refused(Some("4.14.1")) && !is_refused(None));
        assert!(is_refused(Some("4.15.0")) && is_refused(Some("5.13.0")));
    }

    #[test]
    fn releases_have_three_numbers() {
        assert!(["4.13.1", "5.3.0+dev1", "5.4.0~rc1", "4.14.0"].into_iter().all(is_release));
        assert!(
            ["", "4.13", "4.13.", "Unix", "1.2.3.4", "a.b.c"]
                .into_iter()
                .all(|text| !is_release(text))
        );
    }
}
