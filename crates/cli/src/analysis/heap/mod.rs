//! A heap snapshot, read for the verbs that show one. Its figures are those of `heaptap_report::figures`.
//!
//! - `load`: reads a snapshot and finds what holds what.
//! - `row_kind`: the option `--by`; `find_holder`: a holder by its name.
//! - `page_snapshots`: reads snapshots for the web page.
//! - `origin`: which trace is that of a snapshot; `tracked`: the blocks that both have. `sites`: where what is held was allocated;
//!   `site_growth`: two snapshots compared by that; `holder_sites`: where what each holder has was allocated;
//!   `snapshot_holders`: what holds the rows of a trace's report; `snapshot_evidence`: what snapshots say of leaks;
//!   `before_attach`: what was there before a trace began.

pub(crate) mod before_attach;
pub(crate) mod find_holder;
pub(crate) mod holder_sites;
pub(crate) mod load;
pub(crate) mod origin;
pub(crate) mod page_snapshots;
pub(crate) mod row_kind;
pub(crate) mod site_growth;
pub(crate) mod sites;
pub(crate) mod snapshot_evidence;
pub(crate) mod snapshot_holders;
mod tracked;
