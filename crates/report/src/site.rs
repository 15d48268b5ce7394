//! The key of a row: in tables, in text and in JSON.

use serde::{Deserialize, Serialize};

/// The call site of a row, or the file, module, label, domain or source. The field names are those of the JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(default)]
pub struct Site {
    /// Function or module; empty for a file.
    pub name: String,
    /// File; empty for a module.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<String>"))]
    pub file: String,
    /// The line; 0 except for a location.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<u32>"))]
    pub line: u32,
    /// First and last character; zeros except for a location.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<(u32, u32)>"))]
    pub chars: (u32, u32),
}

fn is_default<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

impl Site {
    pub(crate) fn named(name: &str) -> Site {
        Site { name: name.to_owned(), ..Site::default() }
    }

    /// The name, and more about it, which may be empty.
    pub fn parts(&self) -> (String, String) {
        let Site { name, file, line, chars: (first, last) } = self;
        match (line, name.as_str()) {
            (0, "") => (file.clone(), String::new()),
            (0, _) => (name.clone(), file.clone()),
            _ if self.chars == (0, 0) => (format!("{file}:{line}"), name.clone()),
            _ => (format!("{file}:{line}:{first}-{last}"), name.clone()),
        }
    }
}
