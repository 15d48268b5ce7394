//! What heap snapshots add to a report of leaks: who holds each site, and whether the holder grows with it.

use crate::figures::held_growth::{HeldGrowth, HeldSites};
use crate::figures::leak_holders::{HolderGrowth, SnapshotFigures};
use crate::figures::leak_verdicts::JudgedFigures;
use crate::figures::leaks::{LeakReport, LeakRow, SuspectRow, growing, partly};
use crate::figures::units::short_duration;
use crate::leaks::Verdict;

/// The last snapshot must be at this part of the run at least for its growth to be that of the end.
const FRESH: f64 = 0.55;
/// And the first at this part of the last: before, the program starts.
const STARTED: f64 = 0.25;

impl LeakReport {
    /// Adds what snapshots say, which are in the order of time: what holds each site in the last one; and what it and
    /// its holders did since the first one, if there are several. A site that grows while its holders do not is no
    /// leak any more. One of which the trace alone cannot tell is a leak if it grows and is kept, and its holders grow.
    pub fn join(&mut self, snapshots: &[HeldSites]) {
        let [first, .., last] = snapshots else {
            if let [only] = snapshots {
                self.add_holders(only);
                self.add_figures(snapshots, None);
            }
            return;
        };
        self.add_holders(last);
        for leak in &mut self.leaks {
            leak.between = Some(first.until(last, &leak.site));
        }
        for suspect in &mut self.suspects.rows {
            suspect.between = Some(first.until(last, &suspect.site));
        }
        let before = self.leaks.len();
        let is_late = last.sizes.taken_us as f64 >= FRESH * self.duration_us as f64
            && first.sizes.taken_us as f64 >= STARTED * last.sizes.taken_us as f64;
        self.acquit();
        if is_late {
            self.accuse();
        }
        self.add_figures(snapshots, Some(HolderGrowth::new(&first.sizes, &last.sizes)));
        if self.leaks.len() != before || !self.leaks.is_empty() {
            self.judge_again();
        }
    }

    /// The verdict by the leaks that there are now.
    fn judge_again(&mut self) {
        let partly = partly(self.incomplete.as_deref());
        self.verdict = match self.leaks.len() as u64 {
            0 => {
                let until = short_duration(self.known_until_us as f64);
                format!("no site seen growing with what holds it up to {until}{partly}")
            }
            number => {
                self.conclusive = true;
                growing(number, &partly)
            }
        };
    }

    fn add_holders(&mut self, last: &HeldSites) {
        for leak in &mut self.leaks {
            leak.held = Some(last.holders.of(&leak.site));
            leak.keeper = last.keeper_of(&leak.site);
        }
        for suspect in &mut self.suspects.rows {
            suspect.held = Some(last.holders.of(&suspect.site));
            suspect.keeper = last.keeper_of(&suspect.site);
        }
        self.snapshot = Some(last.holders.snapshot());
    }

    fn add_figures(&mut self, snapshots: &[HeldSites], growth: Option<HolderGrowth>) {
        let snapshots = snapshots.iter().map(|snapshot| snapshot.sizes.clone()).collect();
        self.snapshots = Some(SnapshotFigures { snapshots, holder_growth: growth });
    }

    /// Takes the sites away from the leaks that grow while their holders do not.
    fn acquit(&mut self) {
        let grows = |leak: &LeakRow| {
            leak.between.as_ref().and_then(|between| between.holders_grow) != Some(false)
        };
        let (leaks, others) = std::mem::take(&mut self.leaks).into_iter().partition(grows);
        self.leaks = leaks;
        let others: Vec<LeakRow> = others;
        let rows = others.into_iter().map(LeakRow::acquitted);
        self.suspects.rows.splice(0..0, rows);
    }

    /// Calls the suspects leaks of which the snapshots leave no doubt.
    fn accuse(&mut self) {
        let (sure, others) =
            std::mem::take(&mut self.suspects.rows).into_iter().partition(SuspectRow::is_sure);
        self.suspects.rows = others;
        let sure: Vec<SuspectRow> = sure;
        self.leaks.extend(sure.into_iter().map(SuspectRow::accused));
        self.leaks.sort_by(|one, other| {
            other.growth_per_second.bytes.total_cmp(&one.growth_per_second.bytes)
        });
    }
}

impl LeakRow {
    /// The site as one that is no leak.
    fn acquitted(mut self) -> SuspectRow {
        let sentence = self.between.as_ref().map(HeldGrowth::sentence).unwrap_or_default();
        if let Some(judged) = &mut self.judged {
            judged.set(Verdict::HolderSteady);
        }
        let seconds = self.survivors_to_us.saturating_sub(self.survivors_from_us) as f64 / 1e6;
        let judged_seconds = self.judged.as_ref().map(JudgedFigures::seconds);
        SuspectRow {
            growth: self.growth_per_second.times(judged_seconds.unwrap_or(seconds)),
            undecided: format!("no leak, since its holder does not grow with it: {sentence}"),
            site: self.site,
            live: self.live,
            allocated: self.allocated,
            judged: self.judged,
            keeper: self.keeper,
            between: self.between,
            held: self.held,
        }
    }
}

impl SuspectRow {
    /// Whether snapshots show a leak where the trace alone cannot tell.
    fn is_sure(&self) -> bool {
        let is_open = self.judged.as_ref().is_none_or(|judged| {
            matches!(judged.kind(), Verdict::WasGrowing | Verdict::NotSeen | Verdict::Waits)
        });
        let between = self.between.as_ref();
        is_open && between.is_some_and(|one| one.is_kept && one.holders_grow == Some(true))
    }

    /// The site as a leak.
    fn accused(mut self) -> LeakRow {
        if let Some(judged) = &mut self.judged {
            judged.set(Verdict::KeepsGrowing);
        }
        let between = self.between.as_ref();
        LeakRow {
            growth_per_second: between.map_or(self.growth, |between| between.growth_per_second),
            survivors_from_us: between.map_or(0, |between| between.from_us),
            survivors_to_us: between.map_or(0, |between| between.to_us),
            survivors: Vec::new(),
            site: self.site,
            live: self.live,
            allocated: self.allocated,
            slowing: false,
            via: Vec::new(),
            called_from: Vec::new(),
            judged: self.judged,
            older: None,
            keeper: self.keeper,
            between: self.between,
            held: self.held,
        }
    }
}
