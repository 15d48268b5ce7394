//! The nodes of sites that allocated recently, where a path is one frame.
//!
//! The number of a frame and its node are looked up in two tables. Programs allocate
//! again and again at the same sites, so a small direct-mapped cache, which fits the
//! second-level cache of a processor, answers most of these questions.

use heaptap_trace::Code;

use crate::paths::{Node, ROOT};

/// Entries: 2^BITS of 16 bytes.
const BITS: u32 = 12;

/// The node of a code. The root is the node of none: it marks an empty entry.
#[derive(Clone, Copy)]
struct Site {
    code: Code,
    node: Node,
}

const EMPTY: Site = Site { code: 0, node: ROOT };

/// A cache of nodes by the code of their frame.
pub(super) struct RecentSites {
    /// 2^BITS of them.
    entries: Vec<Site>,
}

impl Default for RecentSites {
    fn default() -> Self {
        RecentSites { entries: vec![EMPTY; 1 << BITS] }
    }
}

impl RecentSites {
    /// Forgets all sites, after nodes were renumbered.
    pub(super) fn forget(&mut self) {
        self.entries.fill(EMPTY);
    }

    /// The node of `code`, which `find` looks up if it is not known here.
    #[inline]
    pub(super) fn node(&mut self, code: Code, find: impl FnOnce() -> Node) -> Node {
        let site = &mut self.entries[slot(code)];
        if site.code != code || site.node == ROOT {
            *site = Site { code, node: find() };
        }
        site.node
    }
}

/// Where a site is kept. Any function will do: a collision costs time only.
fn slot(code: Code) -> usize {
    (code.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_looked_up_once_until_it_is_forgotten() {
        let mut sites = RecentSites::default();
        assert_eq!(sites.node(7, || 1), 1);
        assert_eq!(sites.node(7, || unreachable!()), 1);
        assert_eq!(sites.node(8, || 2), 2);
        sites.forget();
        assert_eq!(sites.node(7, || 3), 3);
    }

    #[test]
    fn sites_that_share_an_entry_are_not_confused() {
        let mut sites = RecentSites::default();
        let shared = (2..).find(|&code| slot(code) == slot(1)).unwrap();
        assert_eq!(sites.node(1, || 1), 1);
        assert_eq!(sites.node(shared, || 2), 2);
        assert_eq!(sites.node(1, || 1), 1);
        // Code 0 is no code, and does not match an empty entry.
        assert_eq!(sites.node(0, || 9), 9);
    }
}
