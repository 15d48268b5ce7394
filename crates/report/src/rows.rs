//! Tables: the counts of all paths, grouped by function, location, file, module,
//! label, kind, domain or source.

use hashbrown::HashMap;
use heaptap_trace::{LocationTable, NameId, NamedLocation, Source, kind_name_code, without_kind};

use crate::aggregate::{Aggregate, Frame, Metric};
use crate::counts::Tally;
use crate::depth::Depth;
use crate::library_runs::library_parts;
use crate::names::{module_of, shown};
use crate::own_code::SiteFrame;
pub use crate::site::Site;

/// How the rows of a table are grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// The function that allocates.
    #[default]
    Function,
    /// The location in it.
    Location,
    /// Its file.
    File,
    /// Its module: by its name or, failing that, by its file.
    Module,
    /// The label under which it was allocated. Needs [`crate::Depth::Label`].
    Label,
    /// The domain. Needs [`crate::Depth::Domain`].
    Domain,
    /// The kind of the block, which the runtime gives. Needs [`crate::Depth::Kind`].
    Kind,
    /// Where the block was allocated. Needs [`crate::Depth::Source`].
    Source,
}

impl By {
    /// How much of each stack a table of these rows needs: `of_frames` if they are frames.
    pub fn depth(self, of_frames: Depth) -> Depth {
        match self {
            By::Function | By::Location | By::File | By::Module => of_frames,
            By::Label => Depth::Label,
            By::Domain => Depth::Domain,
            By::Kind => Depth::Kind,
            By::Source => Depth::Source,
        }
    }
}

/// How the rows of a table are grouped, and which frame of a stack they are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    /// What a row is.
    pub by: By,
    /// Where a stack is counted, if rows are frames.
    pub site: SiteFrame,
}

/// Rows are about the frames that allocate.
impl From<By> for Grouping {
    fn from(by: By) -> Grouping {
        Grouping { by, site: SiteFrame::Innermost }
    }
}

impl Grouping {
    /// The least of each stack that a table of these rows needs.
    pub fn depth(self) -> Depth {
        self.by.depth(match self.site {
            SiteFrame::Innermost => Depth::Innermost,
            SiteFrame::Own => Depth::OwnCode,
        })
    }
}

/// A row of a table.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its key.
    pub site: Site,
    /// Its sums.
    pub counts: Tally,
}

/// A site before its names are looked up.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Frame(Frame),
    Location(NamedLocation),
    Function(NameId, NameId),
    File(NameId),
}

/// Finds the sites of frames.
pub struct Sites<'a> {
    table: &'a LocationTable,
    by: By,
    site: SiteFrame,
}

impl<'a> Sites<'a> {
    /// Sites from the locations of a trace.
    pub fn new(table: &'a LocationTable, grouping: impl Into<Grouping>) -> Self {
        let Grouping { by, site } = grouping.into();
        Sites { table, by, site }
    }

    /// The site of a frame: that of the innermost function, or of the innermost that is own
    /// code, if calls were inlined.
    pub fn of(&self, frame: Frame) -> Site {
        self.named(self.key(frame))
    }

    /// All functions of a frame, the innermost first.
    pub fn inlined(&self, frame: Frame) -> Vec<Site> {
        let locations = match frame {
            Frame::Code(code) => self.table.get(code).unwrap_or(&[]),
            Frame::Light
            | Frame::Nowhere
            | Frame::Domain(_)
            | Frame::Kind(_)
            | Frame::Source(_) => &[],
        };
        if locations.is_empty() {
            return vec![self.named(Key::Frame(frame))];
        }
        locations.iter().rev().map(|location| self.named(self.location_key(location))).collect()
    }

    fn key(&self, frame: Frame) -> Key {
        let Frame::Code(code) = frame else { return Key::Frame(frame) };
        let locations = self.table.get(code).unwrap_or(&[]);
        match locations.iter().rev().nth(self.position(frame)) {
            Some(location) => self.location_key(location),
            None => Key::Frame(frame),
        }
    }

    /// Which of [`Sites::inlined`] is the frame's site.
    pub(crate) fn position(&self, frame: Frame) -> usize {
        match self.site {
            SiteFrame::Innermost => 0,
            SiteFrame::Own => {
                let parts = library_parts(frame, self.table);
                parts.iter().position(|&library| !library).unwrap_or(0)
            }
        }
    }

    fn location_key(&self, location: &NamedLocation) -> Key {
        match self.by {
            By::Location => Key::Location(*location),
            By::Function | By::Module | By::Label | By::Domain | By::Kind | By::Source => {
                Key::Function(location.definition, location.file)
            }
            By::File => Key::File(location.file),
        }
    }

    fn named(&self, key: Key) -> Site {
        let text = |id: NameId| String::from_utf8_lossy(self.table.name(id)).into_owned();
        match key {
            Key::Frame(Frame::Nowhere) if self.by == By::Label => Site::named("(no label)"),
            Key::Frame(Frame::Nowhere) if self.by == By::Kind => Site::named("(no kind)"),
            Key::Frame(Frame::Nowhere) => Site::named("(no backtrace)"),
            Key::Frame(Frame::Kind(kind)) => Site::named(&kind_name(kind, self.table)),
            Key::Frame(Frame::Domain(number)) => Site::named(&format!("domain {number}")),
            Key::Frame(Frame::Source(source)) => Site::named(match source {
                Source::Minor => "minor heap",
                Source::Major => "major heap",
                Source::External => "external: outside the heap",
            }),
            Key::Frame(Frame::Light) => Site::named("(light call paths)"),
            Key::Frame(Frame::Code(code)) if self.by == By::Location => {
                Site::named(&format!("(unknown {:#x})", without_kind(code)))
            }
            Key::Frame(Frame::Code(_)) => Site::named("(unknown)"),
            Key::Location(location) => Site {
                name: shown(&text(location.definition)).into_owned(),
                file: text(location.file),
                line: location.line,
                chars: (u32::from(location.start_char), u32::from(location.end_char)),
            },
            Key::Function(definition, file) if self.by == By::Module => {
                Site::named(&module_of(&text(definition), &text(file)))
            }
            Key::Function(definition, _) if self.by == By::Label => Site::named(&text(definition)),
            Key::Function(definition, file) => {
                Site { file: text(file), ..Site::named(&shown(&text(definition))) }
            }
            Key::File(file) => Site { file: text(file), ..Site::named("") },
        }
    }
}

/// The name of a kind of blocks, as the trace has it.
pub fn kind_name(kind: u8, table: &LocationTable) -> String {
    let named = table.resolve(kind_name_code(kind)).next();
    let name = named.map(|location| String::from_utf8_lossy(location.definition).into_owned());
    name.unwrap_or_else(|| format!("kind {kind}"))
}

impl Aggregate {
    /// The rows of the table, the largest first.
    pub fn rows(
        &self,
        table: &LocationTable,
        grouping: impl Into<Grouping>,
        metric: Metric,
    ) -> Vec<Row> {
        let grouping = grouping.into();
        let sites = Sites::new(table, grouping);
        let nodes = self.site_nodes(table, grouping.site);
        // There may be a million paths, but hardly so many frames.
        let mut of_frames: Vec<Option<(Frame, Tally)>> = vec![None; self.frames.codes().len()];
        let mut of_others: HashMap<Frame, Tally> = HashMap::new();
        for (path, counts) in self.counts.iter().enumerate() {
            let node = nodes.of(self.paths.node(path as u32));
            let sum = match of_frames.get_mut(self.paths.frame(node) as usize) {
                Some(sum) => &mut sum.get_or_insert_with(|| (self.frame(node), Tally::default())).1,
                None => of_others.entry(self.frame(node)).or_default(),
            };
            sum.add(&counts);
        }
        let mut sums: HashMap<Key, Tally> = HashMap::new();
        for (frame, counts) in of_frames.into_iter().flatten().chain(of_others) {
            sums.entry(sites.key(frame)).or_default().add(&counts);
        }
        // Different keys may have the same site: functions of one module, and frames
        // without a location.
        let mut rows: HashMap<Site, Tally> = HashMap::with_capacity(sums.len());
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
