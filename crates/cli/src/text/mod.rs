//! Text for people and for programs: [`escape`] and [`json`] make hostile names
//! harmless, [`units`] formats numbers, [`terminal`] lays out lines.

pub(crate) mod escape;
pub(crate) mod json;
pub(crate) mod terminal;
pub(crate) mod units;
