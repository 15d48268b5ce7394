//! Whether the sidecar of a part of a series is sound.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use heaptap_codec::seeded::Seeded;
use heaptap_report::figures::units::count;
use heaptap_trace::{End, SeriesDefect, SeriesReader, SeriesRecord};

use crate::exit_status::Failure;
use crate::io::series_files::{is_part, series_sidecar};
use crate::text::escape;

/// What was found in a sidecar.
pub(crate) struct SidecarCheck {
    part: Option<u64>,
    base: Option<u64>,
    ends: u64,
    defect: Option<(u64, SeriesDefect)>,
    /// Blocks that come twice, end twice, or end without having been listed.
    offences: u64,
}

/// Checks the sidecar of a trace; `None` if it has none.
pub(crate) fn check_sidecar(trace: &Path) -> Result<Option<SidecarCheck>, Failure> {
    if !is_part(trace) {
        return Ok(None);
    }
    let sidecar = series_sidecar(trace);
    let failed = |error| Failure::Trouble(format!("{}: {error}", escape::path(&sidecar)));
    let file = File::open(&sidecar).map_err(failed)?;
    let mut reader = SeriesReader::new(BufReader::new(file)).map_err(failed)?;
    let mut check = SidecarCheck {
        part: reader.head().map(|head| head.part),
        base: None,
        ends: 0,
        defect: None,
        offences: 0,
    };
    // Whether each block that is alive was promoted.
    let mut alive: HashMap<u64, bool, Seeded> = HashMap::default();
    while let Some(record) = reader.next_record().map_err(failed)? {
        match record {
            SeriesRecord::Block(block) => {
                let known = alive.insert(block.id, block.promotion.is_some());
                check.offences += u64::from(known.is_some());
            }
            SeriesRecord::BaseComplete => check.base = Some(alive.len() as u64),
            // A range that long is not of blocks that are listed.
            SeriesRecord::Ends(ends) if check.base.is_some() && ends.count > alive.len() as u64 => {
                check.offences += 1;
            }
            SeriesRecord::Ends(ends) if check.base.is_some() => {
                check.ends += ends.count;
                for id in ends.first..ends.first.saturating_add(ends.count) {
                    let is_sound = match ends.end {
                        End::Collect => alive.remove(&id).is_some(),
                        End::Promote => {
                            alive.get_mut(&id).is_some_and(|it| !std::mem::replace(it, true))
                        }
                    };
                    check.offences += u64::from(!is_sound);
                }
            }
            _ => {}
        }
    }
    check.defect = reader.defect().map(|defect| (reader.offset(), defect));
    Ok(Some(check))
}

impl SidecarCheck {
    /// `strict`: it does not end inside a chunk.
    pub(crate) fn is_sound(&self, strict: bool) -> bool {
        let defect = self.defect.map(|(_, defect)| defect);
        let is_whole = defect.is_none() || defect == Some(SeriesDefect::Cut) && !strict;
        self.part.is_some() && is_whole && self.offences == 0
    }

    pub(crate) fn line(&self) -> String {
        let part = match self.part {
            Some(part) => format!("part {} of a series", part + 1),
            None => "a part of a series, of which the sidecar does not say which".to_owned(),
        };
        let base = match self.base {
            Some(blocks) => format!("{} alive at its begin", count(blocks, "block", "blocks")),
            None => "what was alive at its begin is not listed".to_owned(),
        };
        let mut line = format!("{part}; {base}, {} later", count(self.ends, "end", "ends"));
        if let Some((offset, defect)) = self.defect {
            line.push_str(&format!("; byte {offset} of the sidecar: {defect}"));
        }
        if self.offences > 0 {
            let offences = count(self.offences, "block", "blocks");
            line.push_str(&format!("; {offences} listed or ended twice, or never listed"));
        }
        line
    }
}
