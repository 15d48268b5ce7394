//! The lowest common dominator of nodes.
//!
//! Each node has, beside its dominator, a jump to one far above it, such that log(depth) steps lead to any
//! ancestor: E. W. Myers, "An applicative random-access stack", Information Processing Letters 17, 1983.

use super::numbers::Numbers;

/// Ways up in a dominator tree.
pub(super) struct Ancestors<'a> {
    dominator: &'a Numbers,
    depth: Numbers,
    jump: Numbers,
}

impl<'a> Ancestors<'a> {
    /// A node's dominator has a lower position; the first is its own.
    pub(super) fn new(dominator: &'a Numbers) -> Ancestors<'a> {
        let count = dominator.len();
        let (mut depth, mut jump) = (Numbers::new(count, 0), Numbers::new(count, 0));
        for position in 1..count as u32 {
            let above = dominator.get(position);
            let far = jump.get(above);
            // Two jumps of the same length become one.
            let is_even = depth.get(above).wrapping_sub(depth.get(far))
                == depth.get(far).wrapping_sub(depth.get(jump.get(far)));
            depth.set(position, depth.get(above).wrapping_add(1));
            jump.set(position, if is_even { jump.get(far) } else { above });
        }
        Ancestors { dominator, depth, jump }
    }

    /// The lowest node that dominates both, or is one of them and dominates the other.
    pub(super) fn common(&self, one: u32, other: u32) -> u32 {
        let (mut low, mut high) = (one, other);
        if self.depth.get(low) < self.depth.get(high) {
            std::mem::swap(&mut low, &mut high);
        }
        let depth = self.depth.get(high);
        while self.depth.get(low) > depth {
            let far = self.jump.get(low);
            low = if self.depth.get(far) >= depth { far } else { self.dominator.get(low) };
        }
        // Nodes of one depth jump equally far.
        while low != high {
            let (far_low, far_high) = (self.jump.get(low), self.jump.get(high));
            let has_room = far_low != far_high;
            low = if has_room { far_low } else { self.dominator.get(low) };
            high = if has_room { far_high } else { self.dominator.get(high) };
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By walking up, in trees of several forms.
    #[test]
    fn common_dominators_are_those_of_a_walk() {
        let above: [fn(u32) -> u32; 4] = [
            |node| node - 1,
            |node| (node - 1) / 2,
            |node| node.saturating_sub(3 + node % 5),
            |node| if node % 7 == 0 { 0 } else { node - 1 },
        ];
        for above in above {
            let mut dominator = Numbers::new(500, 0);
            (1..500).for_each(|node| dominator.set(node, above(node)));
            let ancestors = Ancestors::new(&dominator);
            for one in (0..500).step_by(7) {
                for other in 0..500 {
                    let (mut low, mut high) = (one, other);
                    while low != high {
                        if low > high { low = above(low) } else { high = above(high) }
                    }
                    assert_eq!(ancestors.common(one, other), low, "{one} and {other}");
                }
            }
        }
    }
}
