//! The figures of heaptap's reports as data: what `--json` prints, what the text of
//! the program `heaptap` is made of, and what the viewer shows. All three have them
//! from here, so that they cannot disagree.
//!
//! The map:
//!
//! - [`TraceFigures`] is a trace that was read, whole or selected: where the figures
//!   come from. [`TableView`] is what a table shows of it.
//! - `report`, `leaks`, `hot` and `diff` have the figures of these verbs.
//! - `before_attach` has what was in the heap before a trace began that a running program was attached for.
//! - `leak_verdicts` has the verdict on a site by the collector's cycles. `leak_evidence` adds to `leaks` what heap snapshots
//!   say: `leak_holders` what holders keep, `held_growth` what a site and its holders did between two of them.
//! - `snapshot_holders` adds to the rows of `report` and `leaks` what holds their blocks in a heap snapshot.
//! - [`heap`] has the figures of a heap snapshot, [`probes`] those of the file beside a trace.
//! - `size` is a part of all of them; `unseen` is what no sample says;
//!   [`units`] turns numbers into text for people.

// The fields are those of the JSON, by its names.
#![allow(missing_docs)]

mod before_attach;
mod diff;
pub mod heap;
mod held_growth;
mod hot;
mod leak_evidence;
mod leak_holders;
mod leak_verdicts;
mod leaks;
pub mod probes;
mod report;
mod size;
mod snapshot_holders;
mod trace;
pub mod units;
mod unseen;

pub use before_attach::{BeforeAttach, HeldBefore};
pub use diff::{ChangeRow, Comparison, comparison};
pub use held_growth::{HeldBlock, HeldGrowth, HeldSites};
pub use hot::{FragmentFrame, FragmentRow, Fragments, HotLimits, fragments};
pub use leak_holders::{HolderGrowth, HolderGrowthRow, HolderSize, HolderSizes, SnapshotFigures};
pub use leak_verdicts::{JudgedFigures, ReachableAt};
pub use leaks::{
    CallerSite, LeakReport, LeakRow, OlderBlocks, SuspectReport, SuspectRow, leak_report,
    selected_leak_report,
};
pub use report::{
    Figures, Limits, Others, Part, ReportRow, Table, TableOptions, Time, Timeline, Totals,
};
pub use size::{Size, Sum, share, sized};
pub use snapshot_holders::{BlockHolders, GARBAGE, HolderPart, JoinedSnapshot, SnapshotHolders};
pub use trace::{ALL_ROWS, TableView, TraceFigures, by_name};
pub use unseen::Unseen;
