//! The traced program's debug information: what its codes stand for.

use std::collections::HashMap;
use std::fmt;

use heaptap_trace::{Code, Locate, Location, LocationList};

/// A location that owns its names.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: Vec<u8>,
    pub(crate) line: u32,
    pub(crate) start_char: u32,
    pub(crate) end_char: u32,
    pub(crate) definition: Vec<u8>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { file, line, start_char, end_char, definition } = self;
        let (file, definition) = (file.escape_ascii(), definition.escape_ascii());
        write!(f, "{definition} in {file}:{line}:{start_char}-{end_char}")
    }
}

impl Place {
    pub(crate) fn location(&self) -> Location<'_> {
        Location {
            file: &self.file,
            line: self.line,
            start_char: self.start_char,
            end_char: self.end_char,
            definition: &self.definition,
        }
    }

    pub(crate) fn of(location: &Location<'_>) -> Place {
        Place {
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
pub(crate) struct Book {
    pub(crate) places: HashMap<Code, Vec<Place>>,
    /// Codes that are not in `places` lie in one of so many files.
    pub(crate) files: u64,
}

impl Book {
    pub(crate) fn places(&self, code: Code) -> Vec<Place> {
        match self.places.get(&code) {
            Some(places) => places.clone(),
            None if self.files == 0 => Vec::new(),
            None => vec![Place {
                file: format!("file{}.ml", code % self.files).into_bytes(),
                line: (code % 5000) as u32,
                start_char: (code % 80) as u32,
                end_char: (code % 90) as u32,
                definition: format!("f{}", code % (3 * self.files)).into_bytes(),
            }],
        }
    }

    /// The same as a trace can tell it.
    pub(crate) fn told(&self, code: Code) -> Vec<Place> {
        let cut = |name: &[u8]| name.split(|&byte| byte == 0).next().unwrap().to_vec();
        let places: Vec<Place> = self
            .places(code)
            .iter()
            .map(|place| Place {
                file: cut(&place.file),
                line: place.line.min(0xf_ffff),
                start_char: place.start_char.min(0xff),
                end_char: place.end_char.min(0x3ff),
                definition: cut(&place.definition),
            })
            .collect();
        let size: usize =
            places.iter().map(|place| 6 + place.file.len() + 1 + place.definition.len() + 1).sum();
        if places.len() > 255 || 8 + 1 + size > 4096 {
            return vec![Place::of(&Location::UNKNOWN)];
        }
        places
    }
}

impl Locate for &Book {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        for place in self.places(code) {
            list.add(place.location());
        }
    }
}
