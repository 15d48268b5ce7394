//! The rows of a table to which the blocks of an archive belong.

use std::collections::HashMap;

use heaptap_report::rows::{By, Site, Sites};
use heaptap_report::{Archive, Frame, SelectedBlock, is_label};

use crate::request::Within;

/// Numbers the rows of blocks.
pub(crate) struct Rows<'a> {
    archive: &'a Archive,
    names: Sites<'a>,
    by: By,
    /// The sites by number.
    pub(crate) sites: Vec<Site>,
    numbers: HashMap<Site, usize>,
    /// The numbers of frames that were met, and of paths.
    of_frames: HashMap<Frame, usize>,
    of_paths: Vec<Option<usize>>,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(archive: &'a Archive, by: By) -> Self {
        Rows {
            archive,
            names: Sites::new(&archive.locations, by),
            by,
            sites: Vec::new(),
            numbers: HashMap::new(),
            of_frames: HashMap::new(),
            of_paths: vec![None; archive.aggregate.path_count()],
        }
    }

    /// The number of a block's row.
    pub(crate) fn number(&mut self, block: &SelectedBlock) -> usize {
        match self.by {
            By::Domain => return self.number_of(Frame::Domain(block.domain)),
            By::Source => return self.number_of(Frame::Source(block.source)),
            _ => {}
        }
        if let Some(number) = self.of_paths[block.path as usize] {
            return number;
        }
        let path = self.archive.aggregate.path(block.path);
        let is_label = |frame: &Frame| match frame {
            Frame::Code(code) => {
                self.archive.locations.resolve(*code).any(|location| is_label(&location))
            }
            _ => false,
        };
        let frame = match self.by {
            By::Label => path.frames().last().filter(is_label).unwrap_or(Frame::Nowhere),
            _ => path.innermost(),
        };
        let number = self.number_of(frame);
        self.of_paths[block.path as usize] = Some(number);
        number
    }

    fn number_of(&mut self, frame: Frame) -> usize {
        if let Some(&number) = self.of_frames.get(&frame) {
            return number;
        }
        let site = self.names.of(frame);
        let sites = &mut self.sites;
        let number = *self.numbers.entry(site).or_insert_with_key(|site| {
            sites.push(site.clone());
            sites.len() - 1
        });
        self.of_frames.insert(frame, number);
        number
    }
}

/// The paths whose innermost site is a given one.
pub(crate) struct Inside(Vec<bool>);

impl Inside {
    pub(crate) fn new(archive: &Archive, within: &Within) -> Inside {
        Inside::of(archive, within.by, &within.site.site())
    }

    pub(crate) fn of(archive: &Archive, by: By, site: &Site) -> Inside {
        let sites = Sites::new(&archive.locations, by);
        let mut of_frames: HashMap<Frame, bool> = HashMap::new();
        let is_inside =
            |frame: Frame| *of_frames.entry(frame).or_insert_with(|| sites.of(frame) == *site);
        Inside(archive.aggregate.paths().map(|(path, _)| path.innermost()).map(is_inside).collect())
    }

    pub(crate) fn contains(&self, path: u32) -> bool {
        self.0.get(path as usize).copied().unwrap_or(false)
    }
}
