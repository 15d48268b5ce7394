//! What the blocks of a site did from one heap snapshot to a later one, and what their holders did.
//!
//! Both have what was reachable, and no garbage. Blocks that both have do not change, so the error of a growth is
//! that of the blocks which only one of them has. What holders keep is exact, and not of the site alone: a table that
//! shrinks while one site of it grows is no leak.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::estimate::{Estimate, Scale, Z95};
use crate::figures::leak_holders::{HolderSize, HolderSizes};
use crate::figures::size::Size;
use crate::figures::snapshot_holders::{GARBAGE, SnapshotHolders};
use crate::figures::units::{bytes, short_duration};
use crate::leaks::{CERTAIN, goes_on};
use crate::rows::Site;

/// A holder must have grown by this part of what the site has grown by.
const ENOUGH: f64 = 0.5;
/// By how many standard errors a holder's growth must be less than that for it not to be chance.
const CLEARLY: f64 = 2.0;
/// A site that only grows loses no more than this part of what comes.
const FEW: f64 = 0.25;
/// The holders of a site are the greatest ones that together hold this part of it.
const NEARLY_ALL: f64 = 0.9;

/// A sampled block that is reachable in a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct HeldBlock {
    /// Its number in the trace.
    pub id: u64,
    /// When it was allocated, in microseconds since the start of the trace; 0 if that was before.
    pub birth_us: u64,
    pub samples: u64,
}

/// What a snapshot says of the sites of a trace.
pub struct HeldSites {
    /// What holds the blocks of each site.
    pub holders: SnapshotHolders,
    /// What holders keep.
    pub sizes: HolderSizes,
    scale: Scale,
    sites: BTreeMap<Site, Vec<HeldBlock>>,
}

/// What a site and its holders did between two snapshots.
#[derive(Clone, Debug, Serialize)]
pub struct HeldGrowth {
    pub from_us: u64,
    pub to_us: u64,
    /// What was reachable of the site in each.
    pub before: Size,
    pub after: Size,
    /// Negative if it has shrunk.
    pub growth_per_second: Size,
    /// Whether the site has grown for certain.
    pub grows: bool,
    /// What holds it in the later snapshot, and what else held it in the earlier one.
    pub holders: Vec<String>,
    /// What these keep in the two snapshots, of this site and of others.
    pub holders_before_bytes: u64,
    pub holders_after_bytes: u64,
    /// Whether these have grown, by half of the site's growth at least; `None` if the site has not, or if too many hold
    /// it.
    pub holders_grow: Option<bool>,
    /// Whether blocks that came between the two stayed, up to the later one.
    #[serde(skip)]
    pub(crate) is_kept: bool,
}

impl HeldSites {
    /// The evidence of a snapshot. `scale`: that of its samples.
    pub fn new(
        holders: SnapshotHolders,
        sizes: HolderSizes,
        scale: Scale,
        sites: BTreeMap<Site, Vec<HeldBlock>>,
    ) -> HeldSites {
        HeldSites { holders, sizes, scale, sites }
    }

    fn blocks_of(&self, site: &Site) -> &[HeldBlock] {
        self.sites.get(site).map_or(&[], Vec::as_slice)
    }

    /// The holder of most of what is held of a site, with all that it keeps.
    pub fn keeper_of(&self, site: &Site) -> Option<HolderSize> {
        self.main_holders(site).0.first().and_then(|name| self.sizes.of(name)).cloned()
    }

    /// Those that hold nearly all of a site, the greatest first; fewer if there are too many for that.
    fn main_holders(&self, site: &Site) -> (Vec<String>, bool) {
        let mut held = self.holders.of(site).held_by;
        held.retain(|part| part.holder != GARBAGE);
        let all: u64 = held.iter().map(|part| part.sum.samples).sum();
        let (mut sum, mut names) = (0, Vec::new());
        for part in held.into_iter().filter(|part| self.sizes.of(&part.holder).is_some()) {
            if sum as f64 >= NEARLY_ALL * all as f64 {
                break;
            }
            sum += part.sum.samples;
            names.push(part.holder);
        }
        (names, sum as f64 >= NEARLY_ALL * all as f64)
    }

    /// What a site did from this snapshot to a later one.
    pub fn until(&self, later: &HeldSites, site: &Site) -> HeldGrowth {
        let (from_us, to_us) = (self.sizes.taken_us, later.sizes.taken_us);
        let (old, new) = (self.blocks_of(site), later.blocks_of(site));
        let [came, went, squares] = changes((old, &self.scale), (new, &later.scale));
        let (growth, error) = (came - went, squares.sqrt());
        let grows = growth > 0.0 && growth >= CERTAIN * error;
        let (mut holders, are_all) = later.main_holders(site);
        // A stack frame that has a table in use makes several holders of one: so what held it before counts too.
        let (earlier, were_all) = self.main_holders(site);
        let others: Vec<String> =
            earlier.into_iter().filter(|holder| !holders.contains(holder)).collect();
        holders.extend(others);
        let sum = |sizes: &HolderSizes| holders.iter().map(|name| sizes.bytes_of(name)).sum();
        let (holders_before_bytes, holders_after_bytes): (u64, u64) =
            (sum(&self.sizes), sum(&later.sizes));
        let of_holders = holders_after_bytes as f64 - holders_before_bytes as f64;
        let seconds = to_us.saturating_sub(from_us).max(1) as f64 / 1e6;
        HeldGrowth {
            from_us,
            to_us,
            before: size_of(old, &self.scale),
            after: size_of(new, &later.scale),
            growth_per_second: growth_per_second(growth, error, seconds),
            grows,
            holders_grow: (grows && are_all && were_all)
                .then_some(of_holders >= ENOUGH * (growth - CLEARLY * error)),
            holders,
            holders_before_bytes,
            holders_after_bytes,
            is_kept: went <= FEW * came
                && goes_on(&births(new, (from_us, to_us)), (from_us, to_us)),
        }
    }
}

impl HeldGrowth {
    /// By how much its holders have grown; negative if they have shrunk.
    pub fn holders_growth_bytes(&self) -> f64 {
        self.holders_after_bytes as f64 - self.holders_before_bytes as f64
    }

    /// What happened, in a sentence.
    pub fn sentence(&self) -> String {
        let seconds = self.to_us.saturating_sub(self.from_us) as f64 / 1e6;
        let own = self.growth_per_second.bytes * seconds;
        let between = format!(
            "from {} to {}",
            short_duration(self.from_us as f64),
            short_duration(self.to_us as f64)
        );
        let way = if self.grows { "grew" } else { "has not grown for certain" };
        let of_holders = self.holders_growth_bytes();
        let holders = match self.holders.as_slice() {
            [] => "nothing held it in either".to_owned(),
            [only] => format!("{only}, which holds it, {}", changed(of_holders)),
            [first, ..] => format!("{first} and others, which hold it, {}", changed(of_holders)),
        };
        format!("{way} {between} ({}); {holders}", changed(own))
    }
}

/// `grew by 3.0 MiB`.
fn changed(by: f64) -> String {
    match by {
        0.0 => "stayed as large as it was".to_owned(),
        more if more > 0.0 => format!("grew by {}", bytes(more)),
        less => format!("shrank by {}", bytes(-less)),
    }
}

/// What came, what went, and the variance of both if blocks come and go by chance; in bytes.
fn changes(
    (old, before): (&[HeldBlock], &Scale),
    (new, after): (&[HeldBlock], &Scale),
) -> [f64; 3] {
    let mut by_id: HashMap<u64, f64> = HashMap::new();
    for block in new {
        *by_id.entry(block.id).or_default() += after.bytes_of(block.samples);
    }
    for block in old {
        *by_id.entry(block.id).or_default() -= before.bytes_of(block.samples);
    }
    let mut sums = [0.0; 3];
    for change in by_id.into_values() {
        sums[0] += change.max(0.0);
        sums[1] += (-change).max(0.0);
        sums[2] += change * change;
    }
    sums
}

fn size_of(blocks: &[HeldBlock], scale: &Scale) -> Size {
    scale.bytes(blocks.iter().map(|block| block.samples).sum()).into()
}

fn growth_per_second(growth: f64, error: f64, seconds: f64) -> Size {
    let (bytes, error) = (growth / seconds, error / seconds);
    Estimate { bytes, error, low: bytes - Z95 * error, high: bytes + Z95 * error }.into()
}

/// Birth and samples of the blocks that were born in this time, in the order of time.
fn births(blocks: &[HeldBlock], (from, to): (u64, u64)) -> Vec<(u64, f64)> {
    let born = blocks.iter().filter(|block| (from..to).contains(&block.birth_us));
    let mut births: Vec<(u64, f64)> =
        born.map(|block| (block.birth_us, block.samples as f64)).collect();
    births.sort_unstable_by_key(|&(birth, _)| birth);
    births
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    /// A snapshot at this second, of a site whose blocks have these ids, born one in each tenth of a second. `A.table`
    /// holds all of them, and keeps so many bytes.
    fn snapshot(second: u64, ids: impl IntoIterator<Item = u64>, table: u64) -> HeldSites {
        held_by("A.table", second, ids, table)
    }

    /// The same with a holder of this name.
    fn held_by(
        holder: &str,
        second: u64,
        ids: impl IntoIterator<Item = u64>,
        keeps: u64,
    ) -> HeldSites {
        let (scale, site) = (Scale::new(1e-3, 8.0), Site::named("A.f"));
        let mut holders = SnapshotHolders::new("", second * SECOND, scale);
        let held = |id| HeldBlock { id, birth_us: id * SECOND / 10, samples: 1 };
        let blocks: Vec<HeldBlock> = ids.into_iter().map(held).collect();
        holders.add(site.clone(), Some(holder), blocks.len() as u64);
        let size = HolderSize { holder: holder.into(), bytes: keeps, ..HolderSize::default() };
        let sizes = HolderSizes::new((String::new(), second * SECOND), 0, [size]);
        HeldSites::new(holders, sizes, scale, BTreeMap::from([(site, blocks)]))
    }

    fn growth(before: &HeldSites, after: &HeldSites) -> HeldGrowth {
        before.until(after, &Site::named("A.f"))
    }

    #[test]
    fn a_site_grows_with_its_holder() {
        // 100 blocks more, of 8,000 bytes each.
        let found = growth(&snapshot(10, 0..100, 1_000_000), &snapshot(20, 0..200, 1_800_000));
        assert!(found.grows && found.is_kept);
        assert_eq!(found.holders, ["A.table"]);
        assert_eq!(found.holders_grow, Some(true));
        assert!((found.growth_per_second.bytes - 80_000.0).abs() < 1e-6);
        // √100 blocks in ten seconds.
        assert!((found.growth_per_second.error.unwrap() - 8_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_holder_that_shrinks_does_not_grow_with_its_site() {
        let before = snapshot(10, 0..100, 3_000_000);
        for table in [2_000_000, 3_000_000, 3_200_000] {
            let found = growth(&before, &snapshot(20, 0..200, table));
            assert_eq!((found.grows, found.holders_grow), (true, Some(false)), "{table}");
        }
    }

    #[test]
    fn a_table_that_a_stack_frame_has_in_use_is_the_same_table() {
        let before = snapshot(10, 0..100, 3_000_000);
        let after = |keeps| held_by("several holders together", 20, 0..200, keeps);
        let shrunk = growth(&before, &after(2_000_000));
        assert_eq!(shrunk.holders, ["several holders together", "A.table"]);
        assert_eq!(shrunk.holders_grow, Some(false));
        assert_eq!(growth(&before, &after(3_800_000)).holders_grow, Some(true));
    }

    #[test]
    fn few_blocks_are_no_growth() {
        let found = growth(&snapshot(10, 0..100, 1_000_000), &snapshot(20, 0..120, 1_000_000));
        assert_eq!((found.grows, found.holders_grow), (false, None));
        assert!(found.sentence().starts_with("has not grown for certain from 10.0 s to 20.0 s"));
    }

    #[test]
    fn what_goes_or_has_stopped_is_not_kept() {
        let before = snapshot(10, 0..100, 1_000_000);
        // Half of what was there is gone.
        let turned = growth(&before, &snapshot(20, 50..200, 1_400_000));
        assert!(!turned.is_kept, "{turned:?}");
        // Nothing came in the second half of the time.
        let stopped = growth(&before, &snapshot(20, 0..150, 1_400_000));
        assert!(stopped.grows && !stopped.is_kept, "{stopped:?}");
    }
}
