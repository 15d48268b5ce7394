//! Live sizes over time and survivors, from the table: what a search for leaks needs.
//!
//! The table has the ends of all blocks, so no events need to be replayed.

use super::selected::SelectedRows;
use super::{BlockRow, BlockTable, EndKind, NEVER};
use crate::aggregate::{Aggregate, Survivor};
use crate::growth::{Growth, series_of};
use crate::own_code::SiteFrame;
use heaptap_trace::{LocationTable, Source};

/// What is alive of the selected blocks, over time and at the end, by the frame that is
/// their site.
pub struct LiveHistory {
    /// Which frame that is.
    pub(crate) site: SiteFrame,
    pub(crate) growth: Growth,
    pub(crate) survivors: Vec<Survivor>,
}

impl BlockTable {
    /// The history of the selected rows. `whole` is the aggregate of the reading that
    /// made the table.
    pub fn history(
        &self,
        whole: &Aggregate,
        locations: &LocationTable,
        site: SiteFrame,
        selected: &SelectedRows,
    ) -> LiveHistory {
        let nodes = whole.site_nodes(locations, site);
        let mut growth = Growth::for_duration(whole.end);
        let (width, points) = (growth.width(), growth.points_until(whole.end));
        let series = whole.frames.codes().len() + 1;
        // Changes of the live samples of each series between points; then their sums. The
        // last point is for what happens after all others.
        let mut live = vec![vec![0_i64; series]; points + 1];
        let mut survivors = Vec::new();
        let rows = self.rows.iter().enumerate().filter(|&(at, _)| selected.contains(at));
        for (_, row) in rows {
            let series = series_of(whole.paths.frame(nodes.of(whole.paths.node(row.path))));
            let sampled = self.sampled(row);
            let weight = sampled.count;
            // An event comes after the points up to its time.
            let point =
                |time: u64| usize::try_from(time / width).map_or(points, |at| at.min(points));
            live[point(row.birth)][series as usize] += weight as i64;
            if row.death != NEVER {
                live[point(row.death)][series as usize] -= weight as i64;
            }
            if row.death == NEVER || row.ended {
                survivors.push(Survivor {
                    birth: row.birth,
                    before: 0,
                    dead: None,
                    series,
                    sampled,
                });
            }
        }
        self.sweep(selected, &mut growth);
        live.truncate(points);
        let mut sums = vec![0_i64; series];
        for changes in live {
            sums.iter_mut().zip(changes).for_each(|(sum, change)| *sum += change);
            growth.push(sums.iter().map(|&sum| sum.max(0) as u64));
        }
        LiveHistory { site, growth, survivors }
    }

    /// Records the collections of selected rows that were old.
    fn sweep(&self, selected: &SelectedRows, growth: &mut Growth) {
        let (mut born, mut progress) = (0, 0_u64);
        for end in self.ends.iter().filter(|end| end.kind == EndKind::Collected) {
            for at in born..end.births as usize {
                if selected.contains(at) {
                    progress = progress.saturating_add(self.sampled(&self.rows[at]).count);
                }
            }
            born = end.births as usize;
            let row = &self.rows[end.row as usize];
            if selected.contains(end.row as usize) && is_old(row) {
                growth.old_died(row.death, progress);
            }
        }
    }
}

fn is_old(row: &BlockRow) -> bool {
    row.source != Source::Minor || row.promotion != NEVER
}
