//! The file's ids of a lane's blocks.
//!
//! A lane numbers its blocks without gaps. A file's ids run without gaps for a
//! stretch and then jump, since each domain takes its ids in blocks from a
//! counter that all share; so a lane needs one entry for each stretch.

/// Ids of one lane's blocks in one file.
pub(crate) struct Numbers {
    /// The block to be written next.
    next: u64,
    /// First number and first id of each stretch, in ascending order of both.
    stretches: Vec<(u64, u64)>,
}

/// What a file knows of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It has this id.
    Id(u64),
    /// It was allocated before the file began.
    Earlier,
    /// Its allocation was not written yet.
    NotYet,
}

impl Numbers {
    /// Of a lane whose next block has this number.
    pub(crate) fn from(next: u64) -> Numbers {
        Numbers { next, stretches: Vec::new() }
    }

    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The next block was written with this id.
    pub(crate) fn add(&mut self, id: u64) {
        let goes_on = self
            .stretches
            .last()
            .is_some_and(|&(number, first)| id.checked_sub(first) == Some(self.next - number));
        if !goes_on {
            self.stretches.push((self.next, id));
        }
        self.next += 1;
    }

    pub(crate) fn find(&self, number: u64) -> Known {
        if number >= self.next {
            return Known::NotYet;
        }
        // Most blocks are young, and most lanes have one stretch.
        if let Some(&(first, id)) = self.stretches.last()
            && first <= number
        {
            return Known::Id(id + (number - first));
        }
        let behind = self.stretches.partition_point(|&(first, _)| first <= number);
        match behind.checked_sub(1).and_then(|at| self.stretches.get(at)) {
            Some(&(first, id)) => Known::Id(id + (number - first)),
            None => Known::Earlier,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_jump_and_numbers_do_not() {
        let mut numbers = Numbers::from(5);
        for id in [10, 11, 12, 30, 31, 20_000] {
            numbers.add(id);
        }
        let known: Vec<_> = (4..12).map(|number| numbers.find(number)).collect();
        let ids = [10, 11, 12, 30, 31, 20_000].map(Known::Id);
        assert_eq!(known[0], Known::Earlier);
        assert_eq!(known[1..7], ids);
        assert_eq!(known[7], Known::NotYet);
        assert_eq!(numbers.stretches.len(), 3);
    }
}
