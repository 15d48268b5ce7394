//! Where the sites of rows, and the lines of files, occur on the stacks of a trace.

use std::rc::Rc;

use heaptap_report::rows::By;
use heaptap_report::{Archive, FileLines, StackSites};

use crate::kept::Kept;

/// The most tables of sites, and of the lines of files, that are kept.
const KEPT: usize = 1;

/// What was found of traces by their numbers. It depends on no filter, so it is made once.
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

    /// Where the sites of rows occur.
    pub(crate) fn sites(&mut self, trace: usize, archive: &Archive, by: By) -> Rc<StackSites> {
        let make = || Rc::new(StackSites::new(&archive.aggregate, &archive.locations, by));
        self.rows.find_or_add((trace, by), make, KEPT)
    }

    /// The same of the lines of a file.
    pub(crate) fn lines(&mut self, trace: usize, archive: &Archive, file: &str) -> Rc<FileLines> {
        let make = || Rc::new(FileLines::new(&archive.aggregate, &archive.locations, file));
        self.lines.find_or_add((trace, file.to_owned()), make, KEPT)
    }
}
