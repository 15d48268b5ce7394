//! From the filter of a request to a selection.

use heaptap_report::{Regex, Selection, Span};
use heaptap_trace::Source;

use crate::request::Filter;

impl Filter {
    /// Whether every block counts.
    pub(crate) fn is_all(&self) -> bool {
        *self == Filter::default()
    }

    /// Whether a block's frames decide whether it counts.
    pub(crate) fn looks_at_frames(&self) -> bool {
        let Filter { include, exclude, labels, .. } = self;
        !(include.is_empty() && exclude.is_empty() && labels.is_empty())
    }

    /// Whether both look for the same frames.
    pub(crate) fn has_patterns_of(&self, other: &Filter) -> bool {
        self.include == other.include
            && self.exclude == other.exclude
            && self.labels == other.labels
    }

    /// The selection, or what is wrong with the filter.
    pub fn selection(&self) -> Result<Selection, String> {
        if self.include.len() > Selection::MOST_INCLUDED {
            return Err(format!("more than {} functions or files", Selection::MOST_INCLUDED));
        }
        Ok(Selection {
            include: patterns(&self.include)?,
            exclude: patterns(&self.exclude)?,
            labels: patterns(&self.labels)?,
            time: span(self.time),
            size: span(self.size),
            lifetime: span(self.lifetime),
            domains: self.domains.clone(),
            sources: self.sources.iter().map(|name| source(name)).collect::<Result<_, _>>()?,
        })
    }
}

fn patterns(texts: &[String]) -> Result<Vec<Regex>, String> {
    let pattern = |text: &String| {
        Regex::new(text).map_err(|error| format!("not a regular expression: {text}: {error}"))
    };
    texts.iter().map(pattern).collect()
}

fn span(ends: Option<(f64, Option<f64>)>) -> Span {
    let Some((from, to)) = ends else { return Span::default() };
    // A cast of a float saturates.
    Span { from: from.ceil() as u64, to: to.map_or(u64::MAX, |to| to.floor() as u64) }
}

fn source(name: &str) -> Result<Source, String> {
    let found = Source::ALL.into_iter().find(|source| source.name() == name);
    found.ok_or_else(|| format!("{name} is not a source: minor, major or external"))
}
