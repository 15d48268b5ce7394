//! A call site, in text and in JSON.

use crate::rows::Site;
use serde::Serialize;

/// The call site of a row, or the file, module, label, domain or source. The field names are those of the JSON.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Site"))]
pub struct CallSite {
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<String>"))]
    pub file: String,
    #[serde(skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<u32>"))]
    pub line: u32,
    #[serde(skip_serializing_if = "is_nowhere")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<(u32, u32)>"))]
    pub chars: (u32, u32),
}

fn is_zero(line: &u32) -> bool {
    *line == 0
}

fn is_nowhere(chars: &(u32, u32)) -> bool {
    *chars == (0, 0)
}

impl From<&Site> for CallSite {
    fn from(site: &Site) -> CallSite {
        let Site { name, file, line, chars } = site.clone();
        CallSite { name, file, line, chars }
    }
}

impl CallSite {
    /// The row of the total.
    pub fn total() -> CallSite {
        CallSite { name: "total".into(), file: String::new(), line: 0, chars: (0, 0) }
    }

    /// The name, and more about it, which may be empty.
    pub fn parts(&self) -> (String, String) {
        let CallSite { name, file, line, chars: (first, last) } = self;
        match (line, name.as_str()) {
            (0, "") => (file.clone(), String::new()),
            (0, _) => (name.clone(), file.clone()),
            _ => (format!("{file}:{line}:{first}-{last}"), name.clone()),
        }
    }
}
