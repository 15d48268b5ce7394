//! The rows of a table.

use heaptap_report::figures::Sum;
use heaptap_report::rows::Site;
use serde::Serialize;

use crate::block_counts::BlockCount;

#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct TableRow {
    #[serde(flatten)]
    pub(crate) site: Site,
    /// What it allocates itself, with the library code that it calls if sites are own code.
    #[serde(flatten)]
    pub(crate) sum: Sum,
    pub(crate) share: f64,
    /// With all that it calls: what is allocated while it is on the stack.
    pub(crate) total: Option<Sum>,
    pub(crate) total_share: f64,
    /// Of what it allocates itself.
    pub(crate) blocks: Option<BlockCount>,
}

/// All rows of a request, in no order.
pub(crate) struct AllRows {
    pub(crate) rows: Vec<TableRow>,
    pub(crate) total: Sum,
    pub(crate) no_totals: Option<&'static str>,
    pub(crate) metric: String,
    pub(crate) exact: bool,
}
