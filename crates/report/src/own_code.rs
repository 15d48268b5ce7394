//! Which frames are a program's own code, and which are library code: the standard library,
//! runtimes, and what was vendored or installed.

mod rule;

use heaptap_trace::{Code, LocationTable};
use serde::{Deserialize, Serialize};

pub(crate) use rule::is_library;

/// Which frame of a stack is its site: the one that tables and cards name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum SiteFrame {
    /// The innermost frame, which allocates.
    #[default]
    Innermost,
    /// The innermost frame of the program's own code; the innermost of all if there is none.
    Own,
}

/// Every choice of sites.
pub const ALL_SITE_FRAMES: [SiteFrame; 2] = [SiteFrame::Own, SiteFrame::Innermost];

impl SiteFrame {
    /// Its name in options, JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            SiteFrame::Innermost => "innermost",
            SiteFrame::Own => "own",
        }
    }
}

/// Whether any function of a frame is own code.
pub(crate) fn is_own_code(code: Code, table: &LocationTable) -> bool {
    table.resolve(code).any(|location| !is_library(&location))
}
