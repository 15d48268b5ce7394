//! What a trace says of itself, its totals, and its names.

use std::collections::{BTreeSet, HashSet};

use heaptap_report::figures::units::count;
use heaptap_report::figures::{Figures, Limits, TableOptions, TableView, Timeline, Totals};
use heaptap_report::rows::{By, Sites};
use heaptap_report::{Archive, Frame, Metric, SiteFrame, is_label};
use serde::{Deserialize, Serialize};

use crate::answer::json;
use crate::request::TraceRequest;
use crate::traces::{Found, Traces};

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Info {
    name: String,
    executable: String,
    host: String,
    pid: u64,
    start_us: u64,
    runtime_params: String,
    context: String,
    /// Of several rates, the lowest.
    sample_rate: f64,
    /// All of them, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<f64>>"))]
    sample_rates: Vec<f64>,
    word_bytes: f64,
    duration_us: u64,
    events: u64,
    cut_short: Option<String>,
    call_paths: usize,
    /// The files that it was read from; absent while it is written.
    file: Option<FileFacts>,
    /// The rows of the table, and how many blocks each stands for.
    blocks: usize,
    blocks_one_in: u64,
    selected: bool,
    totals: Totals,
    timeline: Timeline,
    limits: Limits,
    /// Blocks may lack callers, so that there are no figures with a filter by them.
    table_lacks_callers: bool,
    labels: BTreeSet<String>,
    domains: BTreeSet<u16>,
    sources: BTreeSet<&'static str>,
    files: BTreeSet<String>,
    notes: Vec<String>,
}

/// The files of a trace. An archive has them as a result that its table cannot give.
#[derive(Default, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FileFacts {
    files: usize,
    bytes: u64,
    /// The versions of the format, the oldest first.
    versions: Vec<u16>,
}

impl FileFacts {
    const NAME: &str = "file";

    /// Adds a file. The version of one that is compressed is not known.
    pub fn add(&mut self, bytes: u64, version: Option<u16>) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some(version) = version
            && let Err(place) = self.versions.binary_search(&version)
        {
            self.versions.insert(place, version);
        }
    }

    /// As one of [`Archive::answers`].
    pub fn stored(&self) -> (String, String) {
        (FileFacts::NAME.to_owned(), json(self).unwrap_or_default())
    }

    fn of(archive: &Archive) -> Option<FileFacts> {
        let (_, stored) = archive.answers.iter().find(|(name, _)| name == FileFacts::NAME)?;
        serde_json::from_str(stored).ok()
    }
}

pub(crate) fn info(traces: &Traces, trace: usize) -> Result<String, String> {
    let archive = traces.archive(trace)?;
    let of = TraceRequest { trace, ..TraceRequest::default() };
    let (by, site) = (By::File, SiteFrame::Innermost);
    let view = TableView { by, site, metric: Metric::Allocated, at: None };
    let options = TableOptions { view, top: 0, callers: None };
    let figures = Figures::of(&traces.figures(&of, &Found::WHOLE)?, &options);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (domains, sources) = classes(archive);
    let of_paths: HashSet<Frame> =
        archive.aggregate.labels(&archive.locations).into_iter().collect();
    let mut labels = BTreeSet::new();
    for frame in of_paths {
        if let Frame::Code(code) = frame {
            let found = archive.locations.resolve(code).filter(is_label);
            labels.extend(found.map(|location| text(location.definition)));
        }
    }
    let mut notes = notes(&figures, archive.aggregate.table_lacks_callers());
    // The page says by itself that a trace is cut short.
    let is_new =
        |notice: &&String| !archive.cut_short.as_ref().is_some_and(|cut| notice.contains(cut));
    notes.extend(archive.notices.iter().filter(is_new).cloned());
    let files = figures.table.rows.iter().map(|row| row.site.file.clone());
    json(&Info {
        name: archive.name.clone(),
        executable: figures.executable,
        host: text(&archive.info.host),
        pid: archive.info.pid,
        start_us: archive.info.start_time,
        runtime_params: text(&archive.info.runtime_params),
        context: text(&archive.info.context),
        sample_rate: figures.sample_rate,
        sample_rates: figures.sample_rates,
        word_bytes: figures.word_bytes,
        duration_us: figures.duration_us,
        events: figures.events,
        call_paths: archive.aggregate.path_count(),
        file: FileFacts::of(archive),
        blocks: archive.blocks.len(),
        blocks_one_in: 1 << archive.blocks.thinning(),
        selected: false,
        totals: figures.totals,
        timeline: figures.timeline,
        limits: figures.limits,
        table_lacks_callers: archive.aggregate.table_lacks_callers(),
        labels,
        domains,
        sources,
        files: files.filter(|file| !file.is_empty()).collect(),
        notes,
        cut_short: figures.cut_short,
    })
}

/// The domains and sources of all blocks; if the reading did not count them, of those
/// in the table.
fn classes(archive: &Archive) -> (BTreeSet<u16>, BTreeSet<&'static str>) {
    if let Some(classes) = archive.aggregate.classes() {
        return classes.map(|(domain, source)| (domain, source.name())).unzip();
    }
    let all = archive.blocks.all(&archive.aggregate);
    let blocks = archive.blocks.selected(&archive.aggregate, &all);
    blocks.map(|block| (block.domain, block.source.name())).unzip()
}

/// What a reader of the figures should know. That the end is missing is [`Info::cut_short`]; how many blocks
/// they rest on, which depends on what is shown, the page says itself.
fn notes(figures: &Figures, table_lacks_callers: bool) -> Vec<String> {
    let mut notes = Vec::new();
    match figures.totals.samples {
        0 => notes.push(
            "No block was sampled: the program allocated little, or the sampling \
                         rate was too low. Trace it at a higher rate."
                .to_owned(),
        ),
        1..100 => notes.push(format!(
            "Only {}: the figures are rough. A higher sampling rate gives better ones.",
            count(figures.totals.samples, "sample", "samples")
        )),
        _ => {}
    }
    if figures.limits.samples_missing_from_callers > 0 && table_lacks_callers {
        notes.push(
            "There are too many call paths to keep all: what rare ones allocate is in the call tree \
             below “(light call paths)”, without its callers."
                .to_owned(),
        );
    }
    notes
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Names {
    functions: Vec<String>,
    files: Vec<String>,
    labels: Vec<String>,
}

/// The most names of a kind.
const MOST_NAMES: usize = 1000;

/// The names that contain a text, whatever its case.
pub(crate) fn names(
    traces: &Traces,
    trace: usize,
    text: &str,
    most: usize,
) -> Result<String, String> {
    let archive = traces.archive(trace)?;
    let text = text.to_lowercase();
    let sites = Sites::new(&archive.locations, By::Function);
    let (mut functions, mut files, mut labels) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for code in archive.aggregate.codes() {
        let is_label = archive.locations.resolve(code).any(|location| is_label(&location));
        for site in sites.inlined(Frame::Code(code)) {
            let into = if is_label { &mut labels } else { &mut functions };
            if site.name.to_lowercase().contains(&text) {
                into.insert(site.name);
            }
            if !is_label && !site.file.is_empty() && site.file.to_lowercase().contains(&text) {
                files.insert(site.file);
            }
        }
    }
    let few = |names: BTreeSet<String>| names.into_iter().take(most.min(MOST_NAMES)).collect();
    json(&Names { functions: few(functions), files: few(files), labels: few(labels) })
}
