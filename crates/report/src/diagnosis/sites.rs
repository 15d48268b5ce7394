//! Where what a holder gained was allocated: a line of the program's own code, the library function that it calls there,
//! and its callers.

use heaptap_trace::{Code, LocationTable};
use serde::Serialize;

use crate::aggregate::Frame;
use crate::figures::Size;
use crate::library_runs::library_parts;
use crate::own_code::SiteFrame;
use crate::rows::{By, Grouping, Site, Sites};

/// The call sites of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StackSites {
    /// The innermost of the program's own code; the innermost of all if there is none.
    pub own: Site,
    /// The library function that is called there, if one is.
    pub via: Option<Site>,
    /// The callers, the nearest first.
    pub callers: Vec<Site>,
}

impl StackSites {
    /// The most callers that are kept.
    const MOST_CALLERS: usize = 4;

    /// Of a backtrace, the outermost frame first.
    pub fn of(frames: &[Code], table: &LocationTable) -> StackSites {
        let names = Sites::new(table, Grouping { by: By::Location, site: SiteFrame::Innermost });
        let mut parts: Vec<(Site, bool)> = Vec::new();
        let mut own = None;
        for code in frames.iter().rev() {
            let frame = Frame::Code(*code);
            let libraries = library_parts(frame, table);
            for (at, site) in names.inlined(frame).into_iter().enumerate() {
                let is_library = libraries.get(at).copied().unwrap_or(true);
                if own.is_none() && !is_library {
                    own = Some(parts.len());
                }
                parts.push((site, is_library));
            }
            if own.is_some_and(|own| parts.len() > own + Self::MOST_CALLERS) {
                break;
            }
        }
        let at = own.unwrap_or(0);
        let site = |at: usize| parts.get(at).map(|(site, _)| site.clone());
        StackSites {
            own: site(at).unwrap_or_else(|| Site::named("(no backtrace)")),
            // What own code calls, not what that calls in turn.
            via: at.checked_sub(1).and_then(site),
            callers: (at + 1..=at + Self::MOST_CALLERS).filter_map(site).collect(),
        }
    }
}

/// A place that allocated blocks which a holder gained. The field names are those of the JSON.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct GainedSite {
    pub site: Site,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub via: Option<Site>,
    pub called_from: Vec<Site>,
    /// What of it the holder had last.
    pub size: Size,
    /// The part that it did not have before.
    pub gained_bytes: f64,
    pub oldest_us: u64,
    /// Its part of what the holder gained.
    pub share: f64,
    /// The lines of its source, if it was found; the site's is among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub source: Option<SourceLines>,
}

/// Lines of a source file.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "SourceExcerpt"))]
pub struct SourceLines {
    /// The number of the first of them.
    pub first: u32,
    pub lines: Vec<String>,
}

/// Where a holder's blocks were allocated.
#[derive(Clone, Debug, Default)]
pub struct HolderGain {
    pub holder: String,
    /// Most growth first.
    pub sites: Vec<GainedSite>,
    /// What the holder has last of each of equal stretches of the trace, in samples, the oldest first.
    pub births: Vec<u64>,
}

impl HolderGain {
    /// The part of what it has last that was born when this share of the trace had passed, or later; `None` if there are
    /// too few samples.
    pub(super) fn share_born_after(&self, share: f64) -> Option<f64> {
        const FEWEST: u64 = 6;
        let all: u64 = self.births.iter().sum();
        // A stretch in which it was is not counted.
        let first = (share * self.births.len() as f64).ceil();
        let younger: u64 = self.births.iter().skip(first as usize).sum();
        (all >= FEWEST && share.is_finite()).then(|| younger as f64 / all as f64)
    }

    /// Whether it has kept as much of each stretch: nothing that it gained was lost. `None` if there are too few samples.
    pub(super) fn keeps_all(&self) -> Option<bool> {
        const FEWEST: u64 = 48;
        // What the first and the last stretch have may be of the program's start, or young garbage.
        let births = self.births.get(1..)?.split_last()?.1;
        let all: u64 = births.iter().sum();
        let mean = all as f64 / births.len().max(1) as f64;
        (all >= FEWEST).then(|| births.iter().all(|part| *part as f64 >= mean * 0.5))
    }
}
