//! Text for people and for programs: [`units`] formats numbers, [`terminal`] lays
//! out lines, [`names`] columns of names, [`page`] fills the web page. [`escape`] and [`json`], which the exporters need as well, make
//! hostile names harmless.

pub(crate) mod names;
pub(crate) mod page;
pub(crate) mod terminal;
pub(crate) mod units;

pub(crate) use heaptap_export::{escape, json};
