//! Tables: the counts of all paths, grouped by what allocates.

use hashbrown::HashMap;
use heaptap_trace::{LocationTable, NameId, NamedLocation};

use crate::aggregate::{Aggregate, Frame, Metric};
use crate::counts::Counts;

/// What a row of a table stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// The function that allocates.
    #[default]
    Function,
    /// The place in it.
    Location,
    /// Its file.
    File,
    /// Its module: what its name or, failing that, its file says.
    Module,
    /// The label under which it was allocated. Needs [`crate::Depth::Label`].
    Label,
    /// The domain. Needs [`crate::Depth::Domain`].
    Domain,
}

/// What a row is about. Two rows of a table have different ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// Function or module; empty for a file.
    pub name: String,
    /// File; empty for a module.
    pub file: String,
    /// Line and characters; zeros but for a location.
    pub line: u32,
    /// First and last character.
    pub chars: (u32, u32),
}

impl Site {
    fn named(name: &str) -> Site {
        Site { name: name.to_owned(), file: String::new(), line: 0, chars: (0, 0) }
    }
}

/// A row with its sums.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it is about.
    pub site: Site,
    /// Its sums.
    pub counts: Counts,
}

/// A site before its names are looked up.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Frame(Frame),
    Place(NamedLocation),
    Function(NameId, NameId),
    File(NameId),
}

/// Names the sites of frames.
pub struct Sites<'a> {
    table: &'a LocationTable,
    by: By,
}

impl<'a> Sites<'a> {
    /// With the locations of the trace.
    pub fn new(table: &'a LocationTable, by: By) -> Self {
        Sites { table, by }
    }

    /// The site of a frame: that of the innermost function, if calls were
    /// inlined.
    pub fn of(&self, frame: Frame) -> Site {
        self.named(self.key(frame))
    }

    /// All functions of a frame, the innermost first.
    pub fn inlined(&self, frame: Frame) -> Vec<Site> {
        let locations = match frame {
            Frame::Code(code) => self.table.get(code).unwrap_or(&[]),
            Frame::Light | Frame::Nowhere | Frame::Domain(_) => &[],
        };
        if locations.is_empty() {
            return vec![self.named(Key::Frame(frame))];
        }
        locations.iter().rev().map(|location| self.named(self.place(location))).collect()
    }

    fn key(&self, frame: Frame) -> Key {
        let Frame::Code(code) = frame else { return Key::Frame(frame) };
        match self.table.get(code).and_then(<[NamedLocation]>::last) {
            Some(location) => self.place(location),
            None => Key::Frame(frame),
        }
    }

    fn place(&self, location: &NamedLocation) -> Key {
        match self.by {
            By::Location => Key::Place(*location),
            By::Function | By::Module | By::Label | By::Domain => {
                Key::Function(location.definition, location.file)
            }
            By::File => Key::File(location.file),
        }
    }

    fn named(&self, key: Key) -> Site {
        let text = |id: NameId| String::from_utf8_lossy(self.table.name(id)).into_owned();
        match key {
            Key::Frame(Frame::Nowhere) if self.by == By::Label => Site::named("(no label)"),
            Key::Frame(Frame::Nowhere) => Site::named("(no backtrace)"),
            Key::Frame(Frame::Domain(number)) => Site::named(&format!("domain {number}")),
            Key::Frame(Frame::Light) => Site::named("(light call paths)"),
            Key::Frame(Frame::Code(code)) if self.by == By::Location => {
                Site::named(&format!("(unknown {code:#x})"))
            }
            Key::Frame(Frame::Code(_)) => Site::named("(unknown)"),
            Key::Place(location) => Site {
                name: text(location.definition),
                file: text(location.file),
                line: location.line,
                chars: (u32::from(location.start_char), u32::from(location.end_char)),
            },
            Key::Function(definition, file) if self.by == By::Module => {
                Site::named(&module_of(&text(definition), &text(file)))
            }
            Key::Function(definition, _) if self.by == By::Label => Site::named(&text(definition)),
            Key::Function(definition, file) => {
                Site { file: text(file), ..Site::named(&text(definition)) }
            }
            Key::File(file) => Site { file: text(file), ..Site::named("") },
        }
    }
}

impl Aggregate {
    /// The table by what allocates, the largest first.
    pub fn rows(&self, table: &LocationTable, by: By, metric: Metric) -> Vec<Row> {
        let sites = Sites::new(table, by);
        let mut sums: HashMap<Key, Counts> = HashMap::new();
        for (path, counts) in self.paths() {
            sums.entry(sites.key(path.innermost())).or_default().add(counts);
        }
        // Different numbers may have the same name: functions of one module, and
        // frames without a location.
        let mut rows: HashMap<Site, Counts> = HashMap::with_capacity(sums.len());
        for (key, counts) in sums {
            rows.entry(sites.named(key)).or_default().add(&counts);
        }
        let mut rows: Vec<Row> =
            rows.into_iter().map(|(site, counts)| Row { site, counts }).collect();
        rows.sort_by(|one, other| {
            let samples = |row: &Row| metric.samples(&row.counts);
            samples(other).cmp(&samples(one)).then_with(|| one.site.cmp(&other.site))
        });
        rows
    }
}

/// `Stdlib.List` of OCaml's `Stdlib__List.map`, `a::b` of Rust's or C++'s
/// `a::b::c`; of a C function, its file.
fn module_of(definition: &str, file: &str) -> String {
    let plain = definition.split(['<', '(']).next().unwrap_or(definition);
    if let Some((module, _)) = plain.rsplit_once("::") {
        return module.to_owned();
    }
    let first = plain.split('.').next().unwrap_or(plain);
    if first.starts_with(|c: char| c.is_ascii_uppercase()) {
        return first.replace("__", ".").trim_end_matches('.').to_owned();
    }
    file.to_owned()
}

#[cfg(test)]
mod tests {
    use super::module_of;

    #[test]
    fn modules_are_those_of_the_language() {
        assert_eq!(module_of("Stdlib__List.map", "list.ml"), "Stdlib.List");
        assert_eq!(module_of("Typecore.type_expect.(fun)", "typecore.ml"), "Typecore");
        assert_eq!(module_of("Dune__exe__Main.entry", "main.ml"), "Dune.exe.Main");
        assert_eq!(module_of("alloc::vec::Vec<T>::push", "vec.rs"), "alloc::vec");
        assert_eq!(module_of("std::map::insert(int)", "map.h"), "std::map");
        assert_eq!(module_of("caml_alloc_small", "runtime/alloc.c"), "runtime/alloc.c");
    }
}
