//! Predicts the frame of a call from the frame of its caller: most functions call few others.

/// How many of the latest callees of each caller are remembered. It bounds the time of a step.
const REMEMBERED: usize = 32;

/// The latest callees of each frame. Whoever writes and whoever reads make the same calls in the
/// same order, so both remember the same.
#[derive(Default)]
pub(super) struct Callees {
    /// By the number of the caller; the latest callee first.
    latest: Vec<Vec<u32>>,
}

impl Callees {
    /// How many other callees this caller had since it last called this one, if that is remembered.
    /// It is the latest now.
    pub(super) fn rank(&mut self, caller: u32, callee: u32) -> Option<usize> {
        let latest = self.latest(caller);
        let found = latest.iter().position(|&frame| frame == callee);
        match found {
            Some(rank) => latest[..=rank].rotate_right(1),
            None => remember(latest, callee),
        }
        found
    }

    /// The callee of this rank.
    pub(super) fn at_rank(&mut self, caller: u32, rank: usize) -> Option<u32> {
        let latest = self.latest(caller);
        let callee = *latest.get(rank)?;
        latest[..=rank].rotate_right(1);
        Some(callee)
    }

    /// A callee that is not remembered is called.
    pub(super) fn add(&mut self, caller: u32, callee: u32) {
        remember(self.latest(caller), callee);
    }

    fn latest(&mut self, caller: u32) -> &mut Vec<u32> {
        let caller = caller as usize;
        if caller >= self.latest.len() {
            self.latest.resize_with(caller + 1, Vec::new);
        }
        &mut self.latest[caller]
    }
}

fn remember(latest: &mut Vec<u32>, callee: u32) {
    latest.truncate(REMEMBERED - 1);
    latest.insert(0, callee);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thinning::scramble;

    #[test]
    fn who_reads_finds_what_was_written() {
        let (mut writer, mut reader) = (Callees::default(), Callees::default());
        let mut ranks = 0;
        for call in 0..20_000_u64 {
            let caller = (scramble(call) % 5) as u32;
            let callee = (scramble(call ^ 77) % [3, 30, 40, 1, 1000][caller as usize]) as u32;
            match writer.rank(caller, callee) {
                Some(rank) => {
                    assert!(rank < REMEMBERED);
                    assert_eq!(reader.at_rank(caller, rank), Some(callee));
                    ranks += 1;
                }
                None => reader.add(caller, callee),
            }
            assert!(reader.at_rank(caller, REMEMBERED).is_none());
        }
        assert!((10_000..19_000).contains(&ranks), "{ranks}");
    }
}
