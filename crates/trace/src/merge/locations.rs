//! One table of locations for several traces.
//!
//! A code means something else in every process. In a merge, frames with the same
//! locations have the same code. Codes without locations stay as they are: nothing is
//! known of them but their number.

use std::collections::HashMap;

use heaptap_codec::seeded::Seeded;

use crate::model::{Code, LocationTable, NamedLocation};

/// The first code for a list of locations. It does not fit 63 bits, so that no trace
/// has it.
const FIRST: Code = 1 << 62;

/// The codes of a merge.
#[derive(Default)]
pub(crate) struct MergedLocations {
    table: LocationTable,
    /// The code of each list of locations.
    codes: HashMap<Box<[NamedLocation]>, Code, Seeded>,
    list: Vec<NamedLocation>,
}

impl MergedLocations {
    pub(crate) fn table(&self) -> &LocationTable {
        &self.table
    }

    /// The code in the merge for a code of a trace with this table.
    pub(crate) fn code(&mut self, code: Code, table: &LocationTable) -> Code {
        let Some(locations) = table.get(code).filter(|locations| !locations.is_empty()) else {
            return code;
        };
        self.list.clear();
        for location in locations {
            let file = self.table.intern(table.name(location.file));
            let definition = self.table.intern(table.name(location.definition));
            self.list.push(NamedLocation { file, definition, ..*location });
        }
        if let Some(&known) = self.codes.get(self.list.as_slice()) {
            return known;
        }
        let new = FIRST + self.codes.len() as u64;
        self.table.define(new, &self.list);
        self.codes.insert(self.list.as_slice().into(), new);
        new
    }
}
