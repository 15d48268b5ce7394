//! What a snapshot says about names: modules, threads, code, customs, tags; and how it was taken.

use std::collections::{BTreeMap, HashMap};

use heaptap_heap::{Item, KindNamespace, MetaKey};

/// A function, and where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeName {
    /// The function; may be empty.
    pub function: Vec<u8>,
    /// The source file; may be empty.
    pub file: Vec<u8>,
    /// The line; 0 if it is unknown.
    pub line: u32,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadFacts {
    /// The domain it runs on.
    pub domain: u32,
    /// Its name; may be empty.
    pub name: Vec<u8>,
}

/// The names in a snapshot. Those that a host or a program chose are hostile text.
#[derive(Debug, Default)]
pub struct HeapFacts {
    meta: BTreeMap<MetaKey, Vec<u8>>,
    modules: HashMap<u32, Vec<u8>>,
    threads: HashMap<u32, ThreadFacts>,
    code: HashMap<u64, CodeName>,
    customs: HashMap<u64, Vec<u8>>,
    kinds: HashMap<(KindNamespace, u32), Vec<u8>>,
    bytes: u64,
}

impl HeapFacts {
    /// The value of a fact about the snapshot.
    pub fn meta(&self, key: MetaKey) -> Option<&[u8]> {
        self.meta.get(&key).map(Vec::as_slice)
    }

    /// The same, of a number.
    pub fn number(&self, key: MetaKey) -> Option<u64> {
        std::str::from_utf8(self.meta(key)?).ok()?.parse().ok()
    }

    /// A module's name.
    pub fn module(&self, id: u32) -> Option<&[u8]> {
        self.modules.get(&id).map(Vec::as_slice)
    }

    /// A thread.
    pub fn thread(&self, id: u32) -> Option<&ThreadFacts> {
        self.threads.get(&id)
    }

    /// What a code address belongs to.
    pub fn code(&self, address: u64) -> Option<&CodeName> {
        self.code.get(&address)
    }

    /// The identifier of the custom blocks with these operations.
    pub fn custom(&self, operations: u64) -> Option<&[u8]> {
        self.customs.get(&operations).map(Vec::as_slice)
    }

    /// The host's name of a tag.
    pub fn tag(&self, tag: u32) -> Option<&[u8]> {
        self.kinds.get(&(KindNamespace::Tag, tag)).map(Vec::as_slice)
    }

    /// The host's name of a kind of roots.
    pub fn host_root(&self, kind: u32) -> Option<&[u8]> {
        self.kinds.get(&(KindNamespace::HostRoot, kind)).map(Vec::as_slice)
    }

    /// About the memory in use.
    pub(super) fn memory(&self) -> u64 {
        self.bytes
    }

    pub(super) fn add(&mut self, item: &Item<'_>) {
        /// Of an entry of a table, beside its text.
        const ENTRY: usize = 96;
        let text = match *item {
            Item::Meta { key, value } => {
                self.meta.insert(key, value.to_vec());
                value.len()
            }
            Item::Module { id, name } => {
                self.modules.insert(id, name.to_vec());
                name.len()
            }
            Item::Thread { id, domain, name } => {
                self.threads.insert(id, ThreadFacts { domain, name: name.to_vec() });
                name.len()
            }
            Item::CustomKind { operations, identifier } => {
                self.customs.insert(operations, identifier.to_vec());
                identifier.len()
            }
            Item::KindName { namespace, kind, name } => {
                self.kinds.insert((namespace, kind), name.to_vec());
                name.len()
            }
            Item::Name(name) => {
                let (function, file) = (name.function.to_vec(), name.file.to_vec());
                self.code.insert(name.address, CodeName { function, file, line: name.line });
                name.function.len() + name.file.len()
            }
            _ => return,
        };
        self.bytes += (text + ENTRY) as u64;
    }
}
