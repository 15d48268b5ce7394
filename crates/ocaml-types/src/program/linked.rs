//! The units of a program, with the digests by which their files are known again.
//!
//! A native program has a list of them for `Dynlink`, `caml_globals_map` (`asmcomp/asmlink.ml`,
//! 4.12 to 5.4): names, digests of interfaces and of `.cmx` files. It is in the data of every
//! program, stripped or not. Bytecode has the digests of the interfaces, in its section `CRCS`.

use std::collections::BTreeMap;

use super::marshal::{Marshalled, Value, length};

/// The digest of a file, which is MD5.
pub(crate) type Digest = [u8; 16];

/// A unit that a program was linked with, or that one of these imports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkedUnit {
    /// Of its `.cmi`.
    pub(crate) interface: Option<Digest>,
    /// Of its `.cmx`, if it is linked.
    pub(crate) implementation: Option<Digest>,
}

/// Units by name, such as `Stdlib__Map`.
#[derive(Debug, Default)]
pub(crate) struct LinkedUnits(BTreeMap<String, LinkedUnit>);

const MAGIC: &[u8] = b"\x84\x95\xa6\xbe";

impl LinkedUnits {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&LinkedUnit> {
        self.0.get(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// From the data of a native program.
    pub(super) fn in_data(bytes: &[u8]) -> LinkedUnits {
        let mut from = 0;
        while let Some(found) = find(bytes, MAGIC, from) {
            from = found + MAGIC.len();
            let Some(value) = bytes.get(found..).and_then(Marshalled::read) else { continue };
            if let Some(units) = LinkedUnits::of_map(&value).filter(|units| !units.is_empty()) {
                return units;
            }
        }
        LinkedUnits::default()
    }

    /// A list of names, two digests and names of symbols.
    fn of_map(value: &Marshalled<'_>) -> Option<LinkedUnits> {
        let mut units = BTreeMap::new();
        for unit in value.list(value.root())? {
            let Value::Block(0, fields) = unit else { return None };
            let &[name, interface, implementation, _] = fields.as_slice() else { return None };
            let unit = LinkedUnit {
                interface: digest(value, interface)?,
                implementation: digest(value, implementation)?,
            };
            units.insert(unit_name(value.get(name))?, unit);
        }
        Some(LinkedUnits(units))
    }

    /// From the section `CRCS` of bytecode: a list of names and digests.
    pub(super) fn of_bytecode(bytes: &[u8]) -> LinkedUnits {
        let units = Marshalled::read(bytes).and_then(|value| interfaces(&value));
        let unit = |(name, interface)| (name, LinkedUnit { interface, implementation: None });
        LinkedUnits(units.unwrap_or_default().into_iter().map(unit).collect())
    }
}

/// A list of names and digests, as interfaces and bytecode have it.
pub(crate) fn interfaces(value: &Marshalled<'_>) -> Option<Vec<(String, Option<Digest>)>> {
    let pair = |pair: &Value<'_>| {
        let Value::Block(0, fields) = pair else { return None };
        let &[name, interface] = fields.as_slice() else { return None };
        Some((unit_name(value.get(name))?, digest(value, interface)?))
    };
    value.list(value.root())?.into_iter().map(pair).collect()
}

/// `None` if it is no digest, `Some(None)` if there is none.
fn digest(value: &Marshalled<'_>, index: usize) -> Option<Option<Digest>> {
    match value.get(index) {
        Value::Number(0) => Some(None),
        Value::Block(0, fields) => {
            let &[only] = fields.as_slice() else { return None };
            let Value::Text(text) = value.get(only) else { return None };
            Some(Some((*text).try_into().ok()?))
        }
        _ => None,
    }
}

/// Names of units are names of modules, with a dot in those of packed ones.
fn unit_name(value: &Value<'_>) -> Option<String> {
    let Value::Text(text) = value else { return None };
    let name = std::str::from_utf8(text).ok()?;
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '\'' | '.');
    (!name.is_empty() && name.len() < 1024 && name.chars().all(is_name)).then(|| name.to_owned())
}

/// Where these bytes are, from a place on.
pub(super) fn find(bytes: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    memchr::memmem::find(bytes.get(from..)?, wanted).map(|found| found + from)
}

/// The digest of an interface, from the beginning of its file: a magic number of 12 bytes, the
/// interface, and a list of digests, the first of which is its own (`file_formats/cmi_format.ml`).
pub(crate) fn own_digest(list: &[u8]) -> Option<(String, Digest)> {
    let value = Marshalled::read(list)?;
    let (name, digest) = interfaces(&value)?.into_iter().next()?;
    Some((name, digest?))
}

/// Where the list of digests begins in a file of the compiler that begins so.
pub(crate) fn digests_at(start: &[u8]) -> Option<u64> {
    let (header, data) = length(start.get(12..)?)?;
    data.checked_add(12 + header as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(data: &[u8]) -> Vec<u8> {
        let mut bytes = b"data before it\x84\x95\xa6\xbe".to_vec();
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend([0; 12]);
        bytes.extend(data);
        bytes.extend(b"\0data behind it");
        bytes
    }

    #[test]
    fn the_units_of_native_programs_are_found() {
        // Two units: one that is linked, and one that is only imported; `[]` is 0x40.
        let data = b"\xa0\xc0\x21A\x90\x300123456789abcdef\x90\x300123456789ABCDEF\x40\
                     \xa0\xc0\x24B__c\x40\x40\x40\x40";
        let units = LinkedUnits::in_data(&map(data));
        let linked = LinkedUnit {
            interface: Some(*b"0123456789abcdef"),
            implementation: Some(*b"0123456789ABCDEF"),
        };
        assert_eq!(units.get("A"), Some(&linked));
        assert_eq!(units.get("B__c"), Some(&LinkedUnit::default()));
        assert_eq!(units.names().collect::<Vec<_>>(), ["A", "B__c"]);
    }

    #[test]
    fn other_lists_are_not_taken() {
        for data in [
            &b"\x40"[..],
            b"\xa0\xc0\x23../\x40\x40\x40\x40",
            b"\xa0\xc0\x21A\x90\x23abc\x40\x40\x40",
            b"\xa0\xa0\x21A\x40\x40",
        ] {
            assert!(LinkedUnits::in_data(&map(data)).is_empty(), "{data:?}");
        }
    }
}
