//! The rows of a table to which the paths and blocks of an archive belong.

use std::collections::HashMap;

use heaptap_report::rows::{By, Grouping, Site, Sites};
use heaptap_report::{Archive, Frame, SelectedBlock};
use heaptap_trace::Source;

/// Numbers the rows of a trace. It depends on no filter, so it is made once.
pub(crate) struct Rows {
    grouping: Grouping,
    /// The sites by number.
    pub(crate) sites: Vec<Site>,
    numbers: HashMap<Site, u32>,
    /// The number of each path of the whole trace; empty for rows that are no frames.
    of_paths: Vec<u32>,
    of_domains: HashMap<u16, u32>,
    of_sources: HashMap<Source, u32>,
}

impl Rows {
    pub(crate) fn new(archive: &Archive, grouping: Grouping) -> Self {
        let mut rows = Rows {
            grouping,
            sites: Vec::new(),
            numbers: HashMap::new(),
            of_paths: Vec::new(),
            of_domains: HashMap::new(),
            of_sources: HashMap::new(),
        };
        let names = Sites::new(&archive.locations, grouping);
        match grouping.by {
            By::Domain | By::Source => rows.number_classes(archive, &names),
            _ => rows.number_paths(archive, &names),
        }
        rows
    }

    fn number_classes(&mut self, archive: &Archive, names: &Sites<'_>) {
        let whole = &archive.aggregate;
        for block in archive.blocks.selected(whole, &archive.blocks.all(whole)) {
            if self.grouping.by == By::Domain && !self.of_domains.contains_key(&block.domain) {
                let number = self.add(names.of(Frame::Domain(block.domain)));
                self.of_domains.insert(block.domain, number);
            } else if self.grouping.by == By::Source {
                self.number_source(block.source, names);
                if block.promotion.is_some() {
                    self.number_source(Source::Major, names);
                }
            }
        }
    }

    fn number_source(&mut self, source: Source, names: &Sites<'_>) {
        if !self.of_sources.contains_key(&source) {
            let number = self.add(names.of(Frame::Source(source)));
            self.of_sources.insert(source, number);
        }
    }

    fn number_paths(&mut self, archive: &Archive, names: &Sites<'_>) {
        let frames = match self.grouping.by {
            By::Label => archive.aggregate.labels(&archive.locations),
            By::Kind => archive.aggregate.kinds(),
            _ => archive.aggregate.site_frames(&archive.locations, self.grouping.site),
        };
        let mut of_frames: HashMap<Frame, u32> = HashMap::new();
        let number = |frame| *of_frames.entry(frame).or_insert_with(|| self.add(names.of(frame)));
        self.of_paths = frames.into_iter().map(number).collect();
    }

    fn add(&mut self, site: Site) -> u32 {
        let sites = &mut self.sites;
        *self.numbers.entry(site).or_insert_with_key(|site| {
            sites.push(site.clone());
            sites.len() as u32 - 1
        })
    }

    /// The number of a block's row.
    pub(crate) fn of_block(&self, block: &SelectedBlock) -> u32 {
        let number = match self.grouping.by {
            By::Domain => self.of_domains.get(&block.domain),
            By::Source => self.of_sources.get(&block.source),
            _ => self.of_paths.get(block.path as usize),
        };
        // Every block has a row.
        number.copied().unwrap_or(0)
    }

    /// The number of the row to which a block moves when it is promoted, if that is another one:
    /// rows that are sources say where a block is.
    pub(crate) fn of_promoted(&self, block: &SelectedBlock) -> Option<u32> {
        let may_move = self.grouping.by == By::Source && block.source == Source::Minor;
        self.of_sources.get(&Source::Major).copied().filter(|_| may_move)
    }

    /// The number of a path's row, if rows are frames or labels.
    pub(crate) fn of_path(&self, path: u32) -> Option<u32> {
        self.of_paths.get(path as usize).copied()
    }

    /// The number of a site.
    pub(crate) fn of_site(&self, site: &Site) -> Option<u32> {
        self.numbers.get(site).copied()
    }
}

/// The paths and blocks of one row.
#[derive(Clone, Copy)]
pub(crate) struct Inside<'a> {
    rows: &'a Rows,
    number: Option<u32>,
}

impl<'a> Inside<'a> {
    pub(crate) fn new(rows: &'a Rows, site: &Site) -> Self {
        Inside { rows, number: rows.of_site(site) }
    }

    pub(crate) fn has_path(&self, path: u32) -> bool {
        self.number.is_some() && self.rows.of_path(path) == self.number
    }
}
