//! The same figures with other paths: labels, kinds, domains or sources in place of stacks.

use heaptap_trace::{LocationTable, Source, kind_of};

use crate::aggregate::{Aggregate, Frame};
use crate::counts::Tally;
use crate::depth::Depth;
use crate::paths::{
    NOWHERE, ROOT, domain_frame, is_stand_in, kind_frame, kind_of_frame, source_frame,
};

impl Aggregate {
    /// The aggregate that a reading with this depth would give, from one with whole
    /// stacks. `None` if this one does not have it: domains and sources are counted
    /// only where [`crate::Options::most_blocks`] asks for a table; labels and kinds are lost
    /// with light call paths. Rows by domain and source lack their number of blocks.
    pub fn regrouped(&self, depth: Depth, locations: &LocationTable) -> Option<Aggregate> {
        let mut regrouped = Aggregate {
            end: self.end,
            at: self.at,
            samples: self.samples,
            allocated: self.allocated,
            young: self.young,
            external: self.external,
            promoted: self.promoted,
            live_young: self.live_young,
            live_external: self.live_external,
            level: self.level,
            at_level: self.at_level,
            allocated_level: self.allocated_level,
            cluster: self.cluster,
            peak: self.peak.clone(),
            timeline: self.timeline.clone(),
            lifetimes: self.lifetimes.clone(),
            ..self.without_paths()
        };
        let mut add = |frame: u32, tally: &Tally| {
            let node = regrouped.paths.child(ROOT, frame);
            let path = regrouped.paths.path(node);
            if path as usize == regrouped.counts.len() {
                regrouped.counts.resize(path as usize + 1);
            }
            regrouped.counts.take(path as usize, tally);
        };
        match depth {
            Depth::Innermost | Depth::OwnCode | Depth::Whole => return None,
            Depth::Label if self.missing_from_paths() > 0 => return None,
            Depth::Label => {
                let labels = label_frames(self, locations);
                let tallies = labels.iter().zip(self.counts.iter());
                tallies.for_each(|(&label, tally)| add(label, &tally));
            }
            Depth::Kind if self.missing_from_paths() > 0 => return None,
            Depth::Kind => {
                let tallies = kind_frames(self).into_iter().zip(self.counts.iter());
                tallies.for_each(|(kind, tally)| add(kind, &tally));
            }
            Depth::Domain | Depth::Source if !self.classes.is_kept() => return None,
            Depth::Domain => {
                self.classes
                    .iter()
                    .for_each(|(domain, _, tally)| add(domain_frame(domain), &tally));
            }
            Depth::Source => {
                // The first path, as in a reading.
                add(source_frame(Source::Major), &Tally::default());
                self.classes
                    .iter()
                    .for_each(|(_, source, tally)| add(source_frame(source), &tally));
            }
        }
        Some(regrouped)
    }
}

impl Aggregate {
    /// For each path, the kind of its blocks, or [`Frame::Nowhere`].
    pub fn kinds(&self) -> Vec<Frame> {
        let frame = |number| kind_of_frame(number).map_or(Frame::Nowhere, Frame::Kind);
        kind_frames(self).into_iter().map(frame).collect()
    }

    /// For each path, the frame of its label, or [`Frame::Nowhere`].
    pub fn labels(&self, locations: &LocationTable) -> Vec<Frame> {
        let frame = |number| match number {
            NOWHERE => Frame::Nowhere,
            number => Frame::Code(self.frames.code(number)),
        };
        label_frames(self, locations).into_iter().map(frame).collect()
    }
}

/// For each path, the frame of the kind of its blocks, or [`NOWHERE`].
pub(crate) fn kind_frames(whole: &Aggregate) -> Vec<u32> {
    let kind = |path| match whole.paths.frame(whole.paths.node(path)) {
        frame if is_stand_in(frame) => NOWHERE,
        frame => kind_frame(kind_of(whole.frames.code(frame)).unwrap_or(0)),
    };
    (0..whole.counts.len() as u32).map(kind).collect()
}

/// For each path, the frame of its label, or [`NOWHERE`].
pub(crate) fn label_frames(whole: &Aggregate, locations: &LocationTable) -> Vec<u32> {
    let mut of_nodes: Vec<u32> = vec![NOWHERE; whole.paths.len()];
    for node in 1..whole.paths.len() {
        let (parent, frame) = (whole.paths.parent(node as u32), whole.paths.frame(node as u32));
        of_nodes[node] = match parent {
            ROOT if whole.frames.is_label_of(frame, locations) => frame,
            ROOT => NOWHERE,
            parent => of_nodes[parent as usize],
        };
    }
    let paths = 0..whole.counts.len() as u32;
    paths.map(|path| of_nodes[whole.paths.node(path) as usize]).collect()
}
