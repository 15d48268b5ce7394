//! Allocations and collections of each path in each slice of time.
//!
//! There are at most [`SLICES`] slices of equal length. When the trace outgrows
//! them, they are joined in pairs. The flow of a path in a slice is the change of
//! its counts, taken when the slice is over, so that events cost nothing extra.

use crate::counts::Counts;
use crate::paths::PathMoves;
use crate::rates::SUM_BITS;

/// The most slices that are over.
pub(crate) const SLICES: usize = 64;

/// The unit of flows in a trace with several rates is coarser than that of counts by so many bits:
/// what all paths have in all slices then fits a flow with two bits to spare.
const COARSE: u32 = SUM_BITS as u32 - 30;

/// Samples allocated and collected in a slice; of a trace with several rates, what they stand for in units
/// of [`Aggregate::flow_bytes`](crate::Aggregate::flow_bytes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Allocated.
    pub came: u32,
    /// Collected, or gone with the process whose trace ended.
    pub went: u32,
}

impl Flow {
    pub(crate) fn add(&mut self, other: Flow) {
        self.came = self.came.saturating_add(other.came);
        self.went = self.went.saturating_add(other.went);
    }
}

/// Samples that a path had allocated and lost when the last slice ended.
#[derive(Clone, Copy, Default)]
struct Sum {
    came: u64,
    went: u64,
}

impl Sum {
    fn of(counts: &Counts) -> Sum {
        Sum { came: counts.allocated, went: counts.died.saturating_add(counts.ended) }
    }

    /// In units of 2^`shift`. What is rounded off in one slice is in the next.
    fn since(self, before: Sum, shift: u32) -> Flow {
        let step = |now: u64, before: u64| {
            u32::try_from((now >> shift).saturating_sub(before >> shift)).unwrap_or(u32::MAX)
        };
        Flow { came: step(self.came, before.came), went: step(self.went, before.went) }
    }
}

/// The slices, from the start of the trace on.
#[derive(Default)]
pub(crate) struct Flows {
    width: u64,
    shift: u32,
    /// The flows by path. A path beyond the end did not exist yet.
    slices: Vec<Vec<Flow>>,
    /// The first half of the slice that is not over, if it was a slice by itself.
    begun: Vec<Flow>,
    sums: Vec<Sum>,
    /// The slice that is not over, as of the last [`Flows::settle`].
    open: Option<Vec<Flow>>,
}

impl Flows {
    pub(crate) fn new(are_mixed: bool) -> Self {
        Flows { width: 1024, shift: if are_mixed { COARSE } else { 0 }, ..Flows::default() }
    }

    /// What one of a flow counts.
    pub(crate) fn unit(&self) -> u64 {
        1 << self.shift
    }

    /// Whether a slice ends before the first event at `time`.
    pub(crate) fn is_due(&self, time: u64) -> bool {
        time / self.width > self.slices.len() as u64
    }

    /// Ends all slices up to `time`.
    pub(crate) fn take(&mut self, time: u64, counts: &[Counts]) {
        while time / self.width > SLICES as u64 {
            self.width *= 2;
            let mut slices = std::mem::take(&mut self.slices).into_iter();
            while let Some(first) = slices.next() {
                match slices.next() {
                    Some(second) => self.slices.push(joined(first, second)),
                    None => self.begun = joined(first, std::mem::take(&mut self.begun)),
                }
            }
        }
        let due = (time / self.width) as usize;
        if due > self.slices.len() {
            self.end_slice(counts);
            self.slices.resize(due, Vec::new());
        }
    }

    /// Makes a slice of what happened since the last one ended.
    fn end_slice(&mut self, counts: &[Counts]) {
        let flows = self.since_last_slice(counts);
        self.slices.push(joined(flows, std::mem::take(&mut self.begun)));
        self.sums.clear();
        self.sums.extend(counts.iter().map(Sum::of));
    }

    fn since_last_slice(&self, counts: &[Counts]) -> Vec<Flow> {
        let before = self.sums.iter().copied().chain(std::iter::repeat(Sum::default()));
        counts
            .iter()
            .zip(before)
            .map(|(counts, before)| Sum::of(counts).since(before, self.shift))
            .collect()
    }

    /// Brings the slice that is not over up to date.
    pub(crate) fn settle(&mut self, counts: &[Counts]) {
        self.open = Some(joined(self.since_last_slice(counts), self.begun.clone()));
    }

    /// Renumbers paths.
    pub(crate) fn move_paths(&mut self, moves: &PathMoves) {
        let PathMoves { to: moved, count } = moves;
        for slice in self.slices.iter_mut().chain([&mut self.begun]) {
            let mut new = vec![Flow::default(); *count];
            for (&flow, &to) in slice.iter().zip(moved) {
                new[to as usize].add(flow);
            }
            *slice = new;
        }
        let mut sums = vec![Sum::default(); *count];
        for (&sum, &to) in self.sums.iter().zip(moved) {
            sums[to as usize].came += sum.came;
            sums[to as usize].went += sum.went;
        }
        self.sums = sums;
        self.open = None;
    }

    /// Microseconds in a slice.
    pub(crate) fn width(&self) -> u64 {
        self.width
    }

    pub(crate) fn len(&self) -> usize {
        self.slices.len() + usize::from(self.open.is_some())
    }

    /// The flows of a path in each slice.
    pub(crate) fn of(&self, path: u32) -> impl Iterator<Item = Flow> {
        let slices = self.slices.iter().chain(&self.open);
        slices.map(move |slice| slice.get(path as usize).copied().unwrap_or_default())
    }
}

fn joined(one: Vec<Flow>, other: Vec<Flow>) -> Vec<Flow> {
    let (mut long, short) = if one.len() < other.len() { (other, one) } else { (one, other) };
    for (into, flow) in long.iter_mut().zip(short) {
        into.add(flow);
    }
    long
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_came_and_went_is_in_its_slice() {
        let mut flows = Flows::new(false);
        let mut counts = [Counts::default(); 2];
        // One path allocates all the time, with a pause; the other is collected at the end.
        let times: Vec<u64> =
            (0..4000_u64).filter(|step| !(1000..2000).contains(step)).map(|s| s * 977).collect();
        for &time in &times {
            if flows.is_due(time) {
                flows.take(time, &counts);
            }
            counts[0].allocated += 1;
            counts[1].died += u64::from(time > 3_000_000);
        }
        flows.settle(&counts);
        assert!(flows.len() > SLICES / 2 && flows.len() <= SLICES + 1, "{}", flows.len());
        for (slice, flow) in flows.of(0).enumerate() {
            let from = slice as u64 * flows.width();
            let within = times.iter().filter(|&&t| (from..from + flows.width()).contains(&t));
            assert_eq!(flow, Flow { came: within.count() as u32, went: 0 }, "slice {slice}");
        }
        let went: u64 = flows.of(1).map(|flow| u64::from(flow.went)).sum();
        assert_eq!(went, counts[1].died);
        flows.move_paths(&PathMoves { to: vec![0, 0], count: 1 });
        flows.settle(&[Counts {
            allocated: counts[0].allocated,
            died: counts[1].died,
            ..counts[0]
        }]);
        let all: u64 = flows.of(0).map(|flow| u64::from(flow.came + flow.went)).sum();
        assert_eq!(all, counts[0].allocated + counts[1].died);
    }
}
