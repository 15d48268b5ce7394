//! What an allocation trace says: sites, call paths, live sizes, lifetimes, growth.
//!
//! ```text
//! Gather::new(info, options) → event(…) for each, in the order of time → Aggregate
//! ```
//!
//! The map:
//!
//! - [`Gather`] is the one reading that everything shares, in bounded memory. It
//!   uses `live` (living objects), `paths`, `counts` and `frames` (call paths),
//!   `peak`, `timeline`, `lifetimes`, `growth` and `flows` (paths over time);
//!   `select` says which blocks count.
//! - [`Aggregate`] is what it found; `estimate` turns samples into bytes with
//!   their error.
//! - [`rows`] groups by function, location, file, module, label or domain;
//!   `stacks` gives whole call paths to exporters; `callers` says who
//!   calls them; `leaks` finds sites that keep growing;
//!   `hot` finds hot fragments in the tree of `functions`; `diff` compares.
//!
//! Nothing here prints: the program `heaptap`, its exporters and viewers do.

#![forbid(unsafe_code)]

mod aggregate;
mod aggregator;
mod callers;
mod counts;
mod diff;
mod estimate;
mod flows;
mod frames;
mod functions;
mod growth;
mod hot;
mod leaks;
mod lifespans;
mod lifetimes;
mod live;
mod paths;
mod peak;
pub mod rows;
mod select;
mod stacks;
mod timeline;

pub use aggregate::{Aggregate, Frame, Metric, PathRef};
pub use aggregator::{Aggregator, Depth, Follow, Options};
pub use callers::Caller;
pub use counts::Counts;
pub use diff::{Change, changes, distance};
pub use estimate::{Estimate, Scale, Share};
pub use flows::Flow;
pub use hot::{Hot, HotFragments};
pub use leaks::{Leak, Leaks, Outlook};
pub use lifespans::Lifespans;
pub use lifetimes::{Lifetimes, Quantile};
pub use regex::bytes::Regex;
pub use select::{Selection, Span};
pub use stacks::{Stack, Stacks};
pub use timeline::{Bucket, Timeline};
