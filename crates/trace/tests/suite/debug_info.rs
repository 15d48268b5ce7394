//! The traced program's debug information: what its codes stand for.

use std::collections::HashMap;
use std::fmt;

use heaptap_trace::{Code, Locate, Location, LocationList};

/// A location that owns its names.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct OwnedLocation {
    pub(crate) file: Vec<u8>,
    pub(crate) line: u32,
    pub(crate) start_char: u32,
    pub(crate) end_char: u32,
    pub(crate) definition: Vec<u8>,
}

impl fmt::Debug for OwnedLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OwnedLocation { file, line, start_char, end_char, definition } = self;
        let (file, definition) = (file.escape_ascii(), definition.escape_ascii());
        write!(f, "{definition} in {file}:{line}:{start_char}-{end_char}")
    }
}

impl OwnedLocation {
    pub(crate) fn location(&self) -> Location<'_> {
        Location {
            file: &self.file,
            line: self.line,
            start_char: self.start_char,
            end_char: self.end_char,
            definition: &self.definition,
        }
    }

    pub(crate) fn of(location: &Location<'_>) -> OwnedLocation {
        OwnedLocation {
            file: location.file.to_vec(),
            line: location.line,
            start_char: location.start_char,
            end_char: location.end_char,
            definition: location.definition.to_vec(),
        }
    }
}

/// The traced program's debug information.
#[derive(Clone, Debug, Default)]
pub(crate) struct DebugInfo {
    pub(crate) locations: HashMap<Code, Vec<OwnedLocation>>,
    /// The number of files that codes not in `locations` are spread over.
    pub(crate) files: u64,
}

impl DebugInfo {
    pub(crate) fn locations(&self, code: Code) -> Vec<OwnedLocation> {
        match self.locations.get(&code) {
            Some(locations) => locations.clone(),
            None if self.files == 0 => Vec::new(),
            None => vec![OwnedLocation {
                file: format!("file{}.ml", code % self.files).into_bytes(),
                line: (code % 5000) as u32,
                start_char: (code % 80) as u32,
                end_char: (code % 90) as u32,
                definition: format!("f{}", code % (3 * self.files)).into_bytes(),
            }],
        }
    }

    /// The same as a trace can hold it: names cut, numbers within their limits.
    pub(crate) fn recorded(&self, code: Code) -> Vec<OwnedLocation> {
        let cut = |name: &[u8]| name.split(|&byte| byte == 0).next().unwrap().to_vec();
        let locations: Vec<OwnedLocation> = self
            .locations(code)
            .iter()
            .map(|location| OwnedLocation {
                file: cut(&location.file),
                line: location.line.min(0xf_ffff),
                start_char: location.start_char.min(0xff),
                end_char: location.end_char.min(0x3ff),
                definition: cut(&location.definition),
            })
            .collect();
        let size: usize = locations
            .iter()
            .map(|location| 6 + location.file.len() + 1 + location.definition.len() + 1)
            .sum();
        if locations.len() > 255 || 8 + 1 + size > 4096 {
            return vec![OwnedLocation::of(&Location::UNKNOWN)];
        }
        locations
    }
}

impl Locate for &DebugInfo {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        for location in self.locations(code) {
            list.add(location.location());
        }
    }
}
