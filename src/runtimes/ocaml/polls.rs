//! Polls for pending actions, which native code has in loops and functions since 4.13.
//!
//! An allocation moves the young pointer by whole words, and calls the runtime if it is
//! then *below* the young limit. A poll calls the runtime if the pointer is *at* the limit,
//! too (`Ipoll`, `asmcomp/amd64/emit.mlp`). If the next sample is on the next word, as it
//! always is at rate 1, the limit is where the pointer is: a loop that does not allocate
//! would call the runtime each time around, and be 40 times as slow.

/// A trigger of samples that finds the same allocations as `trigger`, but no polls.
/// `start` is the lowest address of the young heap, where there are no more samples.
pub(super) fn below_polls(trigger: usize, start: usize) -> usize {
    trigger.saturating_sub(1).max(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracer::WORD;

    #[test]
    fn it_finds_the_same_allocations_and_no_polls() {
        let (start, trigger) = (0x1000, 0x2000);
        let lowered = below_polls(trigger, start);
        for pointer in (trigger - 64..trigger + 64).step_by(WORD) {
            assert_eq!(pointer < lowered, pointer < trigger, "an allocation down to {pointer:#x}");
            assert_eq!(pointer <= lowered, pointer < trigger, "a poll at {pointer:#x}");
        }
        assert_eq!(below_polls(start, start), start);
    }
}
