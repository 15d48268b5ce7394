//! Aggregates an allocation trace: sites, call paths, live sizes, lifetimes, growth.
//!
//! ```text
//! Aggregator::new(info, options) → event(…) for each event, in the order of time
//!     → aggregate(): an Aggregate up to here; more events may follow
//!     → finish(): the Aggregate of the whole trace
//! ```
//!
//! The map:
//!
//! - [`Aggregator`] is the one pass that all reports share, in bounded memory. Its
//!   halves, which may run on two threads, are [`EventResolver`] and [`EventCounter`]. It
//!   uses `live` (live objects), `paths`, `counts` and `frames` (call paths),
//!   `peak`, `timeline`, `lifetimes`, `growth` with `sweeps` and `cohorts` (by the moments of `truths`), and `flows` (paths over time).
//!   `classes` counts by domain and source, and `regroup` makes tables by label, domain
//!   and source of those. `select` decides which blocks count, `lifespans` which of them live as long
//!   as the selection demands.
//! - [`BlockTable`] has a row for each tracked block; it gives the [`Aggregate`] of
//!   any selection without the trace. It and the aggregator count in `block_counter`.
//!   [`BlockLives`] passes on every block, for tables that hold them all.
//! - [`Archive`] is the binary form of both: what the viewer's page holds.
//! - [`Aggregate`] is the result; `estimate` turns samples into bytes with their
//!   error, and `rates` says what a sample counts where several rates were used.
//! - `own_code` decides which frames are library code; [`SiteFrame`] is whether a stack's site is its
//!   innermost frame or the innermost of the program's own code, and `site_nodes` finds these in the call
//!   tree. `library_runs` finds where own code calls libraries.
//! - From an aggregate: [`rows`] groups by function, location, file, module, label,
//!   domain or source; `stacks` lists whole call paths for exporters, and
//!   `folding` folds the recursion in them; `callers` finds the
//!   callers of a site, `totals` what sites have with all that they call, `library_calls` the library functions it allocates through, `call_tree` is the tree for views that walk it; `leaks` finds sites that keep growing; `hot` finds hot
//!   fragments in the tree of `functions`; `diff` compares two traces.
//!
//! - [`figures`] are all of these as data: what `--json` prints, the text is made of and the viewer shows.
//!
//! - [`diagnosis`] is one verdict from all evidence: what `heaptap doctor` says.
//!
//! [`escape`] makes hostile names harmless. Nothing here prints: the program `heaptap`, the exporters and the viewer do.

#![forbid(unsafe_code)]

mod aggregate;
mod aggregator;
mod archive;
mod block_counter;
mod block_lives;
mod blocks;
mod call_tree;
mod callers;
mod classes;
mod cohorts;
mod counts;
mod depth;
pub mod diagnosis;
mod diff;
pub mod escape;
mod estimate;
mod event_counter;
pub mod figures;
mod flows;
mod folding;
mod frames;
mod functions;
mod growth;
mod hot;
mod ids;
mod leaks;
mod library_calls;
mod library_runs;
mod lifespans;
mod lifetimes;
mod live;
mod names;
mod options;
mod own_code;
mod paths;
mod peak;
mod rates;
mod regroup;
mod resolver;
pub mod rows;
mod select;
mod site;
mod site_nodes;
mod stacks;
mod sweeps;
mod thinning;
mod timeline;
mod totals;
mod trace_ending;
mod truths;

pub use aggregate::{Aggregate, Frame, Metric, PathRef};
pub use aggregator::Aggregator;
pub use archive::{Archive, ArchiveError, ArchiveParts};
pub use block_counter::OverTime;
pub use block_lives::{BlockLife, BlockLives, BlockRowsError, BlockSink, WholeStack};
pub use blocks::{
    BlockTable, LiveHistory, MOST_BLOCKS, SelectedBlock, SelectedPaths, SelectedRows,
};
pub use call_tree::{CallShape, CallTree};
pub use callers::Caller;
pub use counts::{Counts, Tally};
pub use depth::Depth;
pub use diff::{Change, SingleSample, certain_distance, changes, distance, is_total_certain};
pub use estimate::{Estimate, Sampled, Scale, Share};
pub use event_counter::EventCounter;
pub use flows::Flow;
pub use hot::{HotFragment, HotFragments};
pub use leaks::{
    ByCycles, JudgedSite, Judgement, Leak, Leaks, Outlook, Shape, Suspect, Suspects, Verdict,
};
pub use library_calls::LibraryCall;
pub use lifespans::Lifespans;
pub use lifetimes::{Lifetimes, Quantile};
pub use options::Options;
pub use own_code::{ALL_SITE_FRAMES, SiteFrame};
pub use paths::PathMoves;
pub use rates::{MOST_RATES, Rates};
pub use regex::bytes::Regex;
pub use resolver::{EventResolver, ResolvedEvent};
pub use select::{Selection, Span, is_label};
pub use stacks::{Omitted, OmittedFrames, Stack, StackShape, Stacks};
pub use timeline::{Bucket, Timeline};
pub use totals::{FileLines, Occurrences, SiteTotal, StackSites};
pub use trace_ending::TraceEnding;
pub use truths::{Truth, Truths};
