//! What the analysing verbs share (`report`, `leaks`, `hot`, `diff`, `export`): the
//! reading of a trace ([`aggregate`], in [`time_order`], and [`parallel`] where there
//! are two processors) or of [`several`], their form for the web page ([`archive`], with [`gzip`]), the
//! options that select blocks ([`filters`]) and tables ([`view`]), and the folding of
//! [`recursion`]; [`live`], a trace that is tailed, and the figures [`so_far`];
//! and [`heap`], a snapshot analysed; [`evidence`], all of these for a diagnosis, and [`page_diagnosis`], which makes it for the page and for `top`. The figures that they print are those of `heaptap_report::figures`.

pub(crate) mod aggregate;
pub(crate) mod archive;
pub(crate) mod continued;
pub(crate) mod cycles;
pub(crate) mod evidence;
pub(crate) mod filters;
pub(crate) mod findings;
mod gzip;
pub(crate) mod heap;
pub(crate) mod joined;
pub(crate) mod live;
pub(crate) mod live_series;
pub(crate) mod ocaml_types;
pub(crate) mod page_diagnosis;
pub(crate) mod parallel;
pub(crate) mod recursion;
pub(crate) mod series;
pub(crate) mod series_boundaries;
pub(crate) mod series_check;
pub(crate) mod several;
pub(crate) mod so_far;
pub(crate) mod thinning;
pub(crate) mod time_order;
pub(crate) mod view;
