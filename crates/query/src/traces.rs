//! The open traces, and the aggregates of what was asked of them.

use std::rc::Rc;
use std::sync::Arc;

use heaptap_report::figures::{TableView, TraceFigures};
use heaptap_report::rows::By;
use heaptap_report::{
    Aggregate, Archive, CallShape, Depth, Metric, Options, SelectedPaths, SelectedRows,
};

use crate::block_rows::Rows;
use crate::request::{Filter, TraceRequest};

/// The most aggregates that are kept for the next requests: a view asks for several
/// things of one selection.
const KEPT: usize = 6;

/// The most call paths of them together, unless the last two alone have more.
const KEPT_PATHS: usize = 1 << 18;

/// The most tables of rows that are kept.
const KEPT_ROWS: usize = 3;

/// What an aggregate was made for.
#[derive(Clone, PartialEq)]
struct Key {
    trace: usize,
    filter: Filter,
    at: Option<u64>,
    old_before: Option<u64>,
    depth: Depth,
}

/// Open archives.
#[derive(Default)]
pub(crate) struct Traces {
    open: Vec<OpenTrace>,
    /// The latest is the last.
    kept: Vec<(Key, MadeOf, Rc<Aggregate>)>,
    /// The shapes of call trees: the latest of each trace, for up to [`SHAPES`] traces.
    shapes: Vec<(ShapeKey, CallShape)>,
    /// The rows of paths and blocks; the latest is the last.
    rows: Vec<(usize, By, Rc<Rows>)>,
    /// What the latest filters select; the latest is the last.
    selected: Vec<Selected>,
}

/// What a filter selects.
struct Selected {
    trace: usize,
    filter: Filter,
    paths: Rc<SelectedPaths>,
    rows: Rc<SelectedRows>,
}

/// The most shapes that are kept: a comparison needs two.
const SHAPES: usize = 2;

/// What a shape was made for.
#[derive(Clone, Copy, PartialEq)]
struct ShapeKey {
    trace: usize,
    by: By,
    fold: bool,
}

struct OpenTrace {
    archive: Arc<Archive>,
    /// With which it was read.
    filter: Filter,
}

/// An aggregate that was found.
pub(crate) enum Found {
    /// That of the reading, which is in the archive.
    Whole,
    /// The same by label, domain or source.
    Regrouped(Rc<Aggregate>),
    /// One that the table of blocks gave.
    Selected(Rc<Aggregate>),
}

/// What an aggregate that is kept was made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MadeOf {
    Reading,
    Blocks,
}

impl Traces {
    /// Adds an archive, and returns its number.
    pub(crate) fn add(&mut self, archive: Archive) -> usize {
        self.add_reading(Arc::new(archive), Filter::default())
    }

    /// Adds the archive of a reading with this filter, and returns its number.
    pub(crate) fn add_reading(&mut self, archive: Arc<Archive>, filter: Filter) -> usize {
        self.open.push(OpenTrace { archive, filter });
        self.open.len() - 1
    }

    /// Puts an archive in the place of another, and forgets what was made of that.
    pub(crate) fn replace(&mut self, trace: usize, archive: Archive) -> Result<(), String> {
        self.open(trace)?;
        self.kept.retain(|(key, ..)| key.trace != trace);
        self.shapes.retain(|(key, _)| key.trace != trace);
        self.rows.retain(|&(of, ..)| of != trace);
        self.selected.retain(|selected| selected.trace != trace);
        self.open[trace] = OpenTrace { archive: Arc::new(archive), filter: Filter::default() };
        Ok(())
    }

    fn open(&self, trace: usize) -> Result<&OpenTrace, String> {
        self.open.get(trace).ok_or_else(|| format!("there is no trace {trace}"))
    }

    pub(crate) fn archive(&self, trace: usize) -> Result<&Archive, String> {
        self.open(trace).map(|open| &*open.archive)
    }

    /// Whether the trace was read with the filter of the request.
    pub(crate) fn is_read_with_filter(&self, of: &TraceRequest) -> bool {
        self.open(of.trace).is_ok_and(|open| open.filter == of.filter)
    }

    /// The aggregate that a request is about.
    pub(crate) fn find(&mut self, of: &TraceRequest) -> Result<Found, String> {
        let archive = self.archive(of.trace)?;
        let depth = depth(of.by);
        let at = of.at.map(|at| at as u64).filter(|_| of.metric == Metric::At);
        let survived = of.metric == Metric::Survived;
        let old_before = of.old_before.map(|time| time as u64).filter(|_| survived);
        let is_read = self.is_read_with_filter(of)
            && (at.is_none() || at == archive.aggregate.at())
            && old_before.is_none();
        if is_read && depth == Depth::Whole {
            return Ok(Found::Whole);
        }
        let key = Key { trace: of.trace, filter: of.filter.clone(), at, old_before, depth };
        let (made_of, aggregate) = match self.kept.iter().position(|(kept, ..)| *kept == key) {
            Some(place) => {
                let (_, made_of, aggregate) = self.kept.remove(place);
                (made_of, aggregate)
            }
            None => {
                let (made_of, aggregate) = self.make(of, &key, is_read)?;
                (made_of, Rc::new(aggregate))
            }
        };
        self.kept.push((key, made_of, Rc::clone(&aggregate)));
        self.forget_oldest();
        Ok(match made_of {
            MadeOf::Reading => Found::Regrouped(aggregate),
            MadeOf::Blocks => Found::Selected(aggregate),
        })
    }

    fn make(
        &mut self,
        of: &TraceRequest,
        key: &Key,
        is_read: bool,
    ) -> Result<(MadeOf, Aggregate), String> {
        let &Key { at, old_before, depth, .. } = key;
        let archive = self.archive(of.trace)?;
        if is_read && let Some(regrouped) = archive.aggregate.regrouped(depth, &archive.locations) {
            return Ok((MadeOf::Reading, regrouped));
        }
        let selected = self.selected_rows(of)?;
        let Archive { aggregate, locations, blocks, .. } = self.archive(of.trace)?;
        let options = Options { depth, at, ..Options::default() };
        // The latest time of all stands for any collection.
        let old_before = old_before.unwrap_or(u64::MAX);
        let made =
            blocks.aggregate_survivors_of(old_before, &selected, aggregate, locations, &options);
        Ok((MadeOf::Blocks, made))
    }

    fn forget_oldest(&mut self) {
        let paths = |kept: &[(Key, MadeOf, Rc<Aggregate>)]| -> usize {
            kept.iter().map(|(.., aggregate)| aggregate.path_count()).sum()
        };
        while self.kept.len() > KEPT || (self.kept.len() > 2 && paths(&self.kept) > KEPT_PATHS) {
            self.kept.remove(0);
        }
    }

    /// The rows of the table of blocks that the filter of a request accepts.
    pub(crate) fn selected_rows(&mut self, of: &TraceRequest) -> Result<Rc<SelectedRows>, String> {
        let is_same = |kept: &Selected| kept.trace == of.trace && kept.filter == of.filter;
        if let Some(place) = self.selected.iter().position(is_same) {
            let found = self.selected.remove(place);
            let rows = Rc::clone(&found.rows);
            self.selected.push(found);
            return Ok(rows);
        }
        let selection = of.filter.selection()?;
        let Archive { aggregate, locations, blocks, .. } = self.archive(of.trace)?;
        // A brush changes the time only, so that no pattern is matched again.
        let has_paths =
            |kept: &&Selected| kept.trace == of.trace && kept.filter.has_patterns_of(&of.filter);
        let paths = match self.selected.iter().find(has_paths) {
            Some(kept) => Rc::clone(&kept.paths),
            None => Rc::new(SelectedPaths::new(aggregate, locations, &selection)),
        };
        let rows = Rc::new(blocks.select(aggregate, &paths, &selection));
        if self.selected.len() == KEPT {
            self.selected.remove(0);
        }
        let (trace, filter) = (of.trace, of.filter.clone());
        self.selected.push(Selected { trace, filter, paths, rows: Rc::clone(&rows) });
        Ok(rows)
    }

    /// The rows to which the paths and blocks of a trace belong.
    pub(crate) fn rows(&mut self, trace: usize, by: By) -> Result<Rc<Rows>, String> {
        let is_same = |(of, kept, _): &(usize, By, Rc<Rows>)| (*of, *kept) == (trace, by);
        if let Some((.., rows)) = self.rows.iter().find(|kept| is_same(kept)) {
            return Ok(Rc::clone(rows));
        }
        let rows = Rc::new(Rows::new(self.archive(trace)?, by));
        if self.rows.len() == KEPT_ROWS {
            self.rows.remove(0);
        }
        self.rows.push((trace, by, Rc::clone(&rows)));
        Ok(rows)
    }

    /// The shape of a trace's call tree, which every selection from the trace shares.
    pub(crate) fn shape(&mut self, trace: usize, by: By, fold: bool) -> Result<CallShape, String> {
        let key = ShapeKey { trace, by, fold };
        if let Some((_, shape)) = self.shapes.iter().find(|(kept, _)| *kept == key) {
            return Ok(shape.clone());
        }
        // The old one goes first, so that memory holds one.
        self.shapes.retain(|(kept, _)| kept.trace != trace);
        if self.shapes.len() == SHAPES {
            self.shapes.remove(0);
        }
        let archive = self.archive(trace)?;
        let shape = archive.aggregate.call_shape(&archive.locations, by, fold);
        self.shapes.push((key, shape.clone()));
        Ok(shape)
    }

    /// A trace with the aggregate that was found.
    pub(crate) fn figures<'a>(
        &'a self,
        of: &TraceRequest,
        found: &'a Found,
    ) -> Result<TraceFigures<'a>, String> {
        let archive = self.archive(of.trace)?;
        Ok(TraceFigures {
            name: &archive.name,
            info: &archive.info,
            cut_short: archive.cut_short.as_deref(),
            aggregate: match found {
                Found::Whole => &archive.aggregate,
                Found::Regrouped(aggregate) | Found::Selected(aggregate) => aggregate,
            },
            locations: &archive.locations,
            selected: !of.filter.is_all(),
        })
    }

    /// Whether what was found is what a reading of the trace would give.
    pub(crate) fn is_exact(&self, of: &TraceRequest, found: &Found) -> bool {
        let Found::Selected(_) = found else { return true };
        // Light call paths have lost their callers and labels.
        let needs_callers = of.filter.looks_at_frames() || of.by == By::Label;
        self.archive(of.trace).is_ok_and(|archive| {
            archive.blocks.thinning() == 0
                && !(needs_callers && archive.aggregate.missing_from_paths() > 0)
        })
    }
}

impl TraceRequest {
    /// What the request's table shows.
    pub(crate) fn view(&self) -> TableView {
        let at = self.at.map(|at| at as u64);
        TableView { by: self.by, metric: self.metric, at }
    }
}

/// How much of each stack the rows need.
fn depth(by: By) -> Depth {
    match by {
        By::Function | By::Location | By::File | By::Module => Depth::Whole,
        By::Label => Depth::Label,
        By::Domain => Depth::Domain,
        By::Source => Depth::Source,
    }
}
