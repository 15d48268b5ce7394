//! The totals of sites with all that they call: of what they are counted, and why there are none
//! where that is so.

use std::rc::Rc;

use heaptap_report::rows::By;
use heaptap_report::{Aggregate, Archive, FileLines, StackSites};

use crate::request::TraceRequest;
use crate::traces::{Found, Kept, Traces};

/// Why a table has no totals.
const NO_TOTALS: &str = "this trace has so many call paths that the callers of the rare ones are not here, \
                         so totals with all that is called would be too small; heaptap report --filter NAME \
                         gives that of one function";

/// The most tables of sites, and of the lines of files, that are kept.
const KEPT: usize = 1;

/// Where sites occur on the stacks of a trace. It depends on no filter, so it is made once.
#[derive(Default)]
pub(crate) struct OnStacks {
    rows: Kept<(usize, By), Rc<StackSites>>,
    lines: Kept<(usize, String), Rc<FileLines>>,
}

impl OnStacks {
    /// A trace has grown.
    pub(crate) fn forget(&mut self, trace: usize) {
        self.rows.retain(|(of, _)| *of != trace);
        self.lines.retain(|(of, _)| *of != trace);
    }
}

/// The aggregate of which totals are counted.
pub(crate) enum Counted {
    /// That of the request.
    Same,
    /// One from the table of blocks, which has the callers that the reading lost.
    Table(Found),
}

impl Counted {
    /// Of which aggregate totals of a request can be counted, or why of none. `found`: that of the
    /// request.
    pub(crate) fn of(
        traces: &mut Traces,
        of: &TraceRequest,
        found: &Found,
    ) -> Result<Result<Counted, &'static str>, String> {
        let whole = &traces.archive(of.trace)?.aggregate;
        if whole.missing_from_paths() == 0 {
            return Ok(Ok(Counted::Same));
        }
        if whole.table_lacks_callers() {
            return Ok(Err(NO_TOTALS));
        }
        if !found.is_reading() {
            return Ok(Ok(Counted::Same));
        }
        Ok(Ok(Counted::Table(traces.find_in_table(of)?)))
    }

    /// The aggregate, which may be the `same` as that of the request.
    pub(crate) fn aggregate<'a>(
        &'a self,
        archive: &'a Archive,
        same: &'a Aggregate,
    ) -> &'a Aggregate {
        match self {
            Counted::Same => same,
            Counted::Table(found) => found.aggregate(archive),
        }
    }
}

impl Traces {
    /// Where the sites of rows occur on the stacks of a trace.
    pub(crate) fn stack_sites(&mut self, trace: usize, by: By) -> Result<Rc<StackSites>, String> {
        if let Some(kept) = self.on_stacks.rows.find(&(trace, by)) {
            return Ok(kept);
        }
        let archive = self.archive(trace)?;
        let made = Rc::new(StackSites::new(&archive.aggregate, &archive.locations, by));
        self.on_stacks.rows.add((trace, by), Rc::clone(&made), KEPT);
        Ok(made)
    }

    /// The same of the lines of a file.
    pub(crate) fn file_lines(&mut self, trace: usize, file: &str) -> Result<Rc<FileLines>, String> {
        let key = (trace, file.to_owned());
        if let Some(kept) = self.on_stacks.lines.find(&key) {
            return Ok(kept);
        }
        let archive = self.archive(trace)?;
        let made = Rc::new(FileLines::new(&archive.aggregate, &archive.locations, file));
        self.on_stacks.lines.add(key, Rc::clone(&made), KEPT);
        Ok(made)
    }
}
