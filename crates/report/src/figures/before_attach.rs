//! What a program had allocated before its trace began: from a heap snapshot that was taken first
//! (`heaptap attach --snapshot`).
//!
//! A trace that begins while the program runs knows nothing of these blocks. The snapshot has all of them, so that these
//! sizes are exact, at every sampling rate.

use serde::Serialize;

/// What one holder held.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldBefore {
    /// A variable, stack frame or what else holds roots; `(3 others)` for those that are not listed.
    pub holder: String,
    pub bytes: u64,
    /// Of all that was held.
    pub share: f64,
}

/// The heap when the trace began. The field names are those of the JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BeforeAttach {
    /// The snapshot.
    pub file: String,
    /// How long before the start of the trace it was taken, in microseconds.
    pub before_us: u64,
    /// What was held, with headers.
    pub bytes: u64,
    pub blocks: u64,
    /// What was not, and no collection had freed yet.
    pub garbage_bytes: u64,
    /// What blocks of the heap held outside of it.
    pub outside_bytes: u64,
    /// Every block that was held is in one part. The largest part comes first, and those that are not listed come last.
    pub held_by: Vec<HeldBefore>,
}

impl BeforeAttach {
    /// The most holders that are listed.
    pub const MOST_LISTED: usize = 10;

    /// The parts of these holders, of which each has its bytes.
    pub fn parts(mut holders: Vec<(String, u64)>) -> Vec<HeldBefore> {
        holders.sort_by(|(name, bytes), (other, more)| more.cmp(bytes).then(name.cmp(other)));
        let all: u64 = holders.iter().map(|(_, bytes)| bytes).sum();
        let share = |bytes: u64| if all == 0 { 0.0 } else { bytes as f64 / all as f64 };
        let others = holders.split_off(holders.len().min(BeforeAttach::MOST_LISTED));
        let part = |(holder, bytes)| HeldBefore { holder, bytes, share: share(bytes) };
        let mut parts: Vec<HeldBefore> = holders.into_iter().map(part).collect();
        if !others.is_empty() {
            let name = match others.len() {
                1 => "(1 other)".to_owned(),
                number => format!("({number} others)"),
            };
            parts.push(part((name, others.iter().map(|(_, bytes)| bytes).sum())));
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_sorted_and_add_up() {
        let holders = (0..13).map(|number| (format!("v{number}"), number + 1)).collect();
        let parts = BeforeAttach::parts(holders);
        assert_eq!(parts.len(), BeforeAttach::MOST_LISTED + 1);
        assert_eq!((&*parts[0].holder, parts[0].bytes), ("v12", 13));
        assert_eq!((&*parts[10].holder, parts[10].bytes), ("(3 others)", 6));
        assert_eq!(parts.iter().map(|part| part.bytes).sum::<u64>(), 91);
        assert!((parts.iter().map(|part| part.share).sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!(BeforeAttach::parts(Vec::new()), []);
    }
}
