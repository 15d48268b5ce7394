//! Text for people and for programs: [`units`] formats numbers, [`terminal`] lays
//! out lines. [`escape`] and [`json`], which the exporters need as well, make
//! hostile names harmless.

pub(crate) mod terminal;
pub(crate) mod units;

pub(crate) use heaptap_export::{escape, json};
