//! One table of locations for several traces.
//!
//! A code means something else in every process. In a merge, frames with the same
//! locations have the same code. Codes without locations stay as they are: nothing is
//! known of them but their number. Kinds of blocks are those of one name.

use std::collections::HashMap;

use heaptap_codec::seeded::Seeded;

use crate::model::{
    Code, KIND_FILE, LocationTable, NamedLocation, code_of_kind, kind_name_code, kind_of,
    merged_code, without_kind,
};

/// The codes of a merge.
#[derive(Default)]
pub(crate) struct MergedLocations {
    table: LocationTable,
    /// The code of each list of locations, behind which is the name of its kind, if it has one.
    codes: HashMap<Box<[NamedLocation]>, Code, Seeded>,
    /// The names of kinds, by number - 1.
    kinds: Vec<NamedLocation>,
    list: Vec<NamedLocation>,
}

impl MergedLocations {
    pub(crate) fn table(&self) -> &LocationTable {
        &self.table
    }

    /// The code in the merge for a code of a trace with this table.
    pub(crate) fn code(&mut self, code: Code, table: &LocationTable) -> Code {
        let name = kind_of(code).and_then(|kind| self.kind_name(kind, table));
        let kind = name.map_or(0, |name| self.kind(name));
        let Some(locations) = table.get(code).filter(|locations| !locations.is_empty()) else {
            return code_of_kind(without_kind(code), kind).unwrap_or(code);
        };
        self.list.clear();
        for location in locations {
            let file = self.table.intern(table.name(location.file));
            let definition = self.table.intern(table.name(location.definition));
            self.list.push(NamedLocation { file, definition, ..*location });
        }
        self.list.extend(name);
        if let Some(&known) = self.codes.get(self.list.as_slice()) {
            return known;
        }
        let new = merged_code(self.codes.len() as u64, kind);
        self.codes.insert(self.list.as_slice().into(), new);
        self.list.truncate(locations.len());
        self.table.define(new, &self.list);
        new
    }

    /// The name of a kind, as a location of the merge.
    fn kind_name(&mut self, kind: u8, table: &LocationTable) -> Option<NamedLocation> {
        let name = table.get(kind_name_code(kind))?.first()?;
        let file = self.table.intern(KIND_FILE);
        let definition = self.table.intern(table.name(name.definition));
        Some(NamedLocation { file, definition, ..*name })
    }

    /// The number of the kind with this name; 0, for not known, if there are too many.
    fn kind(&mut self, name: NamedLocation) -> u8 {
        if let Some(known) = self.kinds.iter().position(|&known| known == name) {
            return known as u8 + 1;
        }
        let Ok(kind) = u8::try_from(self.kinds.len() + 1) else { return 0 };
        self.kinds.push(name);
        self.table.define(kind_name_code(kind), &[name]);
        kind
    }
}
