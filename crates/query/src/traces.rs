//! The open traces, and the aggregates of what was asked of them.

use std::rc::Rc;
use std::sync::Arc;

use heaptap_report::figures::{TableView, TraceFigures};
use heaptap_report::rows::{By, Grouping};
use heaptap_report::{
    Aggregate, Archive, CallShape, Depth, FileLines, Metric, Options, SelectedPaths, SelectedRows,
    StackSites,
};

use crate::block_rows::Rows;
use crate::kept::Kept;
use crate::on_stacks::OnStacks;
use crate::request::{Filter, TraceRequest};
use crate::table_rows::AllRows;

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
    /// Whether the reading will not do: it has lost callers.
    from_table: bool,
}

/// Open archives.
#[derive(Default)]
pub(crate) struct Traces {
    /// By number. `None` if one was to be replaced, and what came in its place was not an archive.
    open: Vec<Option<OpenTrace>>,
    aggregates: Kept<Key, Found>,
    /// The shapes of call trees: the latest of each trace.
    shapes: Kept<ShapeKey, CallShape>,
    /// The rows of paths and blocks.
    rows: Kept<(usize, Grouping), Rc<Rows>>,
    /// What the filters select of a trace.
    selected: Kept<(usize, Filter), Selected>,
    on_stacks: OnStacks,
    /// The rows of the latest table: it is sorted and searched time and again.
    pub(crate) table: Kept<TraceRequest, Rc<AllRows>>,
}

/// What a filter selects.
#[derive(Clone)]
struct Selected {
    paths: Rc<SelectedPaths>,
    rows: Rc<SelectedRows>,
}

/// The most shapes that are kept: a comparison needs two.
const SHAPES: usize = 2;

/// What a shape was made for.
#[derive(Clone, Copy, PartialEq)]
struct ShapeKey {
    trace: usize,
    grouping: Grouping,
    fold: bool,
}

struct OpenTrace {
    archive: Arc<Archive>,
    /// With which it was read.
    filter: Filter,
}

/// An aggregate that was found.
#[derive(Clone)]
pub(crate) struct Found {
    /// `None`: that of the reading, which is in the archive.
    aggregate: Option<Rc<Aggregate>>,
    /// Whether it is what a reading of the trace would give.
    pub(crate) exact: bool,
}

impl Found {
    /// That of the reading.
    pub(crate) const WHOLE: Found = Found { aggregate: None, exact: true };

    /// Whether it is that of the reading.
    pub(crate) fn is_reading(&self) -> bool {
        self.aggregate.is_none()
    }

    /// The aggregate itself.
    pub(crate) fn aggregate<'a>(&'a self, archive: &'a Archive) -> &'a Aggregate {
        self.aggregate.as_deref().unwrap_or(&archive.aggregate)
    }
}

impl Traces {
    /// Adds an archive, and returns its number.
    pub(crate) fn add(&mut self, archive: Archive) -> usize {
        self.add_reading(Arc::new(archive), Filter::default())
    }

    /// Adds the archive of a reading with this filter, and returns its number.
    pub(crate) fn add_reading(&mut self, archive: Arc<Archive>, filter: Filter) -> usize {
        self.open.push(Some(OpenTrace { archive, filter }));
        self.open.len() - 1
    }

    /// Puts what `read` returns in the place of an archive. That is dropped first, with all that was made of it:
    /// memory holds one of the two at a time.
    pub(crate) fn replace(
        &mut self,
        trace: usize,
        read: impl FnOnce() -> Result<Archive, String>,
    ) -> Result<(), String> {
        if trace >= self.open.len() {
            return Err(unknown(trace));
        }
        self.aggregates.retain(|key| key.trace != trace);
        self.shapes.retain(|key| key.trace != trace);
        self.rows.retain(|(of, _)| *of != trace);
        self.selected.retain(|(of, _)| *of != trace);
        self.table.retain(|of| of.trace != trace);
        self.on_stacks.forget(trace);
        self.open[trace] = None;
        self.open[trace] =
            Some(OpenTrace { archive: Arc::new(read()?), filter: Filter::default() });
        Ok(())
    }

    fn open(&self, trace: usize) -> Result<&OpenTrace, String> {
        let open = self.open.get(trace).and_then(Option::as_ref);
        open.ok_or_else(|| unknown(trace))
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
        let key = of.key(false);
        let is_read = self.is_read_with_filter(of)
            && (key.at.is_none() || key.at == archive.aggregate.at())
            && key.old_before.is_none();
        if is_read && key.depth == Depth::Whole {
            return Ok(Found::WHOLE);
        }
        self.find_or_make(of, key, is_read)
    }

    /// The same from the table of blocks, although the reading has it.
    pub(crate) fn find_in_table(&mut self, of: &TraceRequest) -> Result<Found, String> {
        self.find_or_make(of, of.key(true), false)
    }

    fn find_or_make(
        &mut self,
        of: &TraceRequest,
        key: Key,
        is_read: bool,
    ) -> Result<Found, String> {
        if let Some(found) = self.aggregates.find(&key) {
            return Ok(found);
        }
        let found = self.make(of, &key, is_read)?;
        self.aggregates.add(key, found.clone(), KEPT);
        let kept = self.aggregates.all_mut();
        let paths =
            |(_, found): &(Key, Found)| found.aggregate.as_ref().map_or(0, |it| it.path_count());
        while kept.len() > 2 && kept.iter().map(paths).sum::<usize>() > KEPT_PATHS {
            kept.remove(0);
        }
        Ok(found)
    }

    fn make(&mut self, of: &TraceRequest, key: &Key, is_read: bool) -> Result<Found, String> {
        let &Key { at, old_before, depth, .. } = key;
        let archive = self.archive(of.trace)?;
        if is_read && let Some(regrouped) = archive.aggregate.regrouped(depth, &archive.locations) {
            return Ok(Found { aggregate: Some(Rc::new(regrouped)), exact: true });
        }
        refuse_without_callers(of, archive)?;
        let selected = self.selected_rows(of)?;
        let Archive { aggregate: whole, locations, blocks, .. } = self.archive(of.trace)?;
        let options = Options { depth, at, ..Options::default() };
        // The latest time of all stands for any collection.
        let old_before = old_before.unwrap_or(u64::MAX);
        let made = blocks.aggregate_survivors_of(old_before, &selected, whole, locations, &options);
        Ok(Found { aggregate: Some(Rc::new(made)), exact: blocks.thinning() == 0 })
    }

    /// The rows of the table of blocks that the filter of a request accepts.
    pub(crate) fn selected_rows(&mut self, of: &TraceRequest) -> Result<Rc<SelectedRows>, String> {
        let key = (of.trace, of.filter.clone());
        if let Some(kept) = self.selected.find(&key) {
            return Ok(kept.rows);
        }
        let selection = of.filter.selection()?;
        let Archive { aggregate, locations, blocks, .. } = self.archive(of.trace)?;
        // A brush changes the time only, so that no pattern is matched again.
        let has_paths = |((trace, filter), _): &&((usize, Filter), Selected)| {
            *trace == of.trace && filter.has_patterns_of(&of.filter)
        };
        let paths = match self.selected.iter().find(has_paths) {
            Some((_, kept)) => Rc::clone(&kept.paths),
            None => Rc::new(SelectedPaths::new(aggregate, locations, &selection)),
        };
        let rows = Rc::new(blocks.select(aggregate, &paths, &selection));
        self.selected.add(key, Selected { paths, rows: Rc::clone(&rows) }, KEPT);
        Ok(rows)
    }

    /// The rows to which the paths and blocks of a trace belong.
    pub(crate) fn rows(&mut self, trace: usize, grouping: Grouping) -> Result<Rc<Rows>, String> {
        if let Some(rows) = self.rows.find(&(trace, grouping)) {
            return Ok(rows);
        }
        let rows = Rc::new(Rows::new(self.archive(trace)?, grouping));
        self.rows.add((trace, grouping), Rc::clone(&rows), KEPT_ROWS);
        Ok(rows)
    }

    /// The shape of a trace's call tree, which every selection from the trace shares.
    pub(crate) fn shape(
        &mut self,
        trace: usize,
        grouping: Grouping,
        fold: bool,
    ) -> Result<CallShape, String> {
        let key = ShapeKey { trace, grouping, fold };
        if let Some(shape) = self.shapes.find(&key) {
            return Ok(shape);
        }
        // The old one goes first, so that memory holds one.
        self.shapes.retain(|kept| kept.trace != trace);
        let archive = self.archive(trace)?;
        let shape = archive.aggregate.call_shape(&archive.locations, grouping, fold);
        self.shapes.add(key, shape.clone(), SHAPES);
        Ok(shape)
    }

    /// Where the sites of rows occur on the stacks of a trace.
    pub(crate) fn stack_sites(&mut self, trace: usize, by: By) -> Result<Rc<StackSites>, String> {
        let archive = Arc::clone(&self.open(trace)?.archive);
        Ok(self.on_stacks.sites(trace, &archive, by))
    }

    /// The same of the lines of a file.
    pub(crate) fn file_lines(&mut self, trace: usize, file: &str) -> Result<Rc<FileLines>, String> {
        let archive = Arc::clone(&self.open(trace)?.archive);
        Ok(self.on_stacks.lines(trace, &archive, file))
    }

    /// A trace with the aggregate that was found.
    pub(crate) fn figures<'a>(
        &'a self,
        of: &TraceRequest,
        found: &'a Found,
    ) -> Result<TraceFigures<'a>, String> {
        let archive = self.archive(of.trace)?;
        let aggregate = found.aggregate(archive);
        Ok(TraceFigures { aggregate, selected: !of.filter.is_all(), ..whole_figures(archive) })
    }
}

fn unknown(trace: usize) -> String {
    format!("there is no trace {trace}")
}

/// Fails if the answer would be too small, by how much nobody knows: light call paths have lost
/// their callers and labels, by which the request selects or groups.
fn refuse_without_callers(of: &TraceRequest, archive: &Archive) -> Result<(), String> {
    let needs_callers = of.filter.looks_at_frames() || of.by == By::Label;
    if !needs_callers || !archive.aggregate.table_lacks_callers() {
        return Ok(());
    }
    Err("this trace has so many call paths that the callers of the rare ones are not here, so figures by \
         function, file or label of a caller would be too small; heaptap report gives them, and so does \
         heaptap serve, which reads the trace again"
        .to_owned())
}

/// A trace with the aggregate of its reading.
pub(crate) fn whole_figures(archive: &Archive) -> TraceFigures<'_> {
    TraceFigures {
        name: &archive.name,
        info: &archive.info,
        cut_short: archive.cut_short.as_deref(),
        incomplete: archive.incomplete.as_deref(),
        aggregate: &archive.aggregate,
        locations: &archive.locations,
        selected: false,
    }
}

impl TraceRequest {
    fn key(&self, from_table: bool) -> Key {
        let survived = self.metric == Metric::Survived;
        Key {
            trace: self.trace,
            filter: self.filter.clone(),
            at: self.at.map(|at| at as u64).filter(|_| self.metric == Metric::At),
            old_before: self.old_before.map(|time| time as u64).filter(|_| survived),
            depth: self.by.depth(Depth::Whole),
            from_table,
        }
    }

    /// What the request's table shows.
    pub(crate) fn view(&self) -> TableView {
        let at = self.at.map(|at| at as u64);
        TableView { by: self.by, site: self.sites, metric: self.metric, at }
    }
}
