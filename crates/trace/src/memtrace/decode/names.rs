//! A domain's recent file and definition names, as the decoder follows them.

use heaptap_codec::Cursor;

use crate::memtrace::defect::Defect;
use crate::memtrace::mtf::MoveToFront;
use crate::memtrace::rules::MTF_LEN;
use crate::model::table::LocationTable;
use crate::model::{NameId, NamedLocation};

struct RecentFile {
    name: NameId,
    definitions: MoveToFront<NameId>,
}

/// The move-to-front tables of one domain.
pub(crate) struct RecentNames {
    files: MoveToFront<RecentFile>,
}

impl RecentNames {
    pub(crate) fn new() -> Self {
        RecentNames { files: MoveToFront::new() }
    }

    /// Reads one location. The error says what is wrong; `EventOverrun` when
    /// the bytes end.
    pub(crate) fn location(
        &mut self,
        input: &mut Cursor<'_>,
        table: &mut LocationTable,
    ) -> Result<NamedLocation, Defect> {
        let packed = packed_location(input).ok_or(Defect::EventOverrun)?;
        let file_code = (packed >> 38) as usize & MTF_LEN;
        let definition_code = (packed >> 43) as usize & MTF_LEN;
        let file = self.file(file_code, input, table)?;
        let definition = recent_definition(file, definition_code, input, table)?;
        Ok(NamedLocation {
            file: file.name,
            definition,
            line: packed as u32 & 0xf_ffff,
            start_char: (packed >> 20) as u16 & 0xff,
            end_char: (packed >> 28) as u16 & 0x3ff,
        })
    }

    fn file(
        &mut self,
        code: usize,
        input: &mut Cursor<'_>,
        table: &mut LocationTable,
    ) -> Result<&mut RecentFile, Defect> {
        let known = self.files.len();
        if code < MTF_LEN {
            return self.files.touch(code).ok_or(Defect::NameCode { code: code as u8, known });
        }
        let name = table.intern(input.until_nul().ok_or(Defect::EventOverrun)?);
        // Version 1 writers gave a new file the definitions of the entry that
        // fell out; later ones start empty and so never refer to those.
        let entry = self.files.push(|evicted| RecentFile {
            name,
            definitions: evicted.map_or_else(MoveToFront::new, |file| file.definitions),
        });
        entry.ok_or(Defect::EventOverrun)
    }

    /// After a loss nothing is known of the tables: every entry stands for a
    /// lost name until a new one pushes it out.
    pub(crate) fn lose(&mut self, table: &mut LocationTable) {
        let lost = table.lost_name();
        self.files.clear();
        for _ in 0..MTF_LEN {
            let mut definitions = MoveToFront::new();
            for _ in 0..MTF_LEN {
                definitions.push(|_| lost);
            }
            self.files.push(|_| RecentFile { name: lost, definitions });
        }
    }
}

fn recent_definition(
    file: &mut RecentFile,
    code: usize,
    input: &mut Cursor<'_>,
    table: &mut LocationTable,
) -> Result<NameId, Defect> {
    let known = file.definitions.len();
    let entry = if code < MTF_LEN {
        file.definitions.touch(code)
    } else {
        let name = table.intern(input.until_nul().ok_or(Defect::EventOverrun)?);
        file.definitions.push(|_| name)
    };
    entry.copied().ok_or(Defect::NameCode { code: code as u8, known })
}

/// The 48 bits that start a location.
fn packed_location(input: &mut Cursor<'_>) -> Option<u64> {
    let low = input.u32()?;
    let high = input.u16()?;
    Some(u64::from(high) << 32 | u64::from(low))
}
