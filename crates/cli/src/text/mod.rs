//! Text for people and for programs: [`terminal`] lays out lines, [`names`] columns of
//! names, [`diagnosis`] one, [`page`] fills the web page, [`doctor_page`] writes that of a diagnosis. [`escape`] and [`json`], which the exporters
//! need as well, make hostile names harmless. The figures that are shown, and numbers
//! as text, are those of `heaptap_report::figures`.

pub(crate) mod csv;
pub(crate) mod diagnosis;
pub(crate) mod doctor_page;
pub(crate) mod names;
pub(crate) mod page;
pub(crate) mod terminal;

pub(crate) use heaptap_export::json;
pub(crate) use heaptap_report::escape;
