//! A site as it is shown, in text and in JSON.

use heaptap_report::rows::Site;
use serde::Serialize;

/// What a row is about. The field names are those of the JSON.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Place {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) file: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) line: u32,
    #[serde(skip_serializing_if = "is_nowhere")]
    pub(crate) chars: (u32, u32),
}

fn is_zero(line: &u32) -> bool {
    *line == 0
}

fn is_nowhere(chars: &(u32, u32)) -> bool {
    *chars == (0, 0)
}

impl From<&Site> for Place {
    fn from(site: &Site) -> Place {
        let Site { name, file, line, chars } = site.clone();
        Place { name, file, line, chars }
    }
}

impl Place {
    /// All there is.
    pub(crate) fn total() -> Place {
        Place { name: "total".into(), file: String::new(), line: 0, chars: (0, 0) }
    }

    /// Its name, and what else there is to say.
    pub(crate) fn parts(&self) -> (String, String) {
        let Place { name, file, line, chars: (first, last) } = self;
        match (line, name.as_str()) {
            (0, "") => (file.clone(), String::new()),
            (0, _) => (name.clone(), file.clone()),
            _ => (format!("{file}:{line}:{first}-{last}"), name.clone()),
        }
    }

    /// Both in one.
    pub(crate) fn label(&self) -> String {
        match self.parts() {
            (name, more) if more.is_empty() => name,
            (name, more) => format!("{name} ({more})"),
        }
    }
}
