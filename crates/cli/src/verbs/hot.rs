//! `heaptap hot`: the runs of calls that much is allocated under.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use heaptap_report::rows::Site;
use heaptap_report::{Depth, Hot as Fragment, Options};
use serde::Serialize;

use crate::aggregate::Gathered;
use crate::exit_status::{Ending, help_end};
use crate::filters::{Selecting, parse_share};
use crate::io::output::print;
use crate::text::escape::Escaped;
use crate::text::json;
use crate::text::terminal::{Page, fit};
use crate::text::units::percent;
use crate::verbs::report::{Place, Shown, Size, sized};

/// Show hot stack fragments: runs of calls, anywhere in stacks, that much is
/// allocated under
///
/// The longest come first: of a hundred callers that lead to the same place one
/// fragment is shown, and a shorter one only if enough is allocated under it
/// that no longer one explains.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap hot trace.ctf
  heaptap hot trace.ctf --threshold 1% --metric peak
  heaptap hot trace.ctf --by location --exclude '^Stdlib'"
))]
pub(crate) struct Hot {
    /// The trace, or `-` for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    #[command(flatten)]
    shown: Shown,

    #[command(flatten)]
    selecting: Selecting,

    /// How much must be allocated under a fragment, of all there is
    #[arg(long, value_name = "PERCENT", value_parser = parse_share, default_value = "3%")]
    threshold: f64,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What is shown. The field names are those of the JSON.
#[derive(Serialize)]
struct Fragments {
    trace: String,
    metric: String,
    threshold: f64,
    total: Size,
    fragments: Vec<Line>,
    limits: Limits,
}

/// What the bounds on memory and time cost.
#[derive(Serialize)]
struct Limits {
    /// False if there was too much to look at: fragments may be longer.
    complete: bool,
    /// What can be missing from a fragment.
    samples_missing: u64,
}

#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    size: Size,
    share: f64,
    /// The share that no longer fragment has.
    own_share: f64,
    /// The innermost function first.
    frames: Vec<Place>,
}

impl Hot {
    pub(crate) fn run(&self) -> Ending {
        self.shown.by.check_frames("hot")?;
        let options = Options {
            selection: self.selecting.selection()?,
            depth: Depth::Whole,
            at: self.shown.at,
            ..Options::default()
        };
        let gathered = Gathered::read(&self.file, options)?;
        self.shown.check(&gathered)?;
        let fragments = self.fragments(&gathered);
        if self.json {
            let mut line = Vec::new();
            json::put(&mut line, &fragments);
            line.push(b'\n');
            print(&line)?;
        } else {
            print(text(&fragments, Page::of_stdout()).as_bytes())?;
        }
        Ok(gathered.verdict())
    }

    fn fragments(&self, gathered: &Gathered) -> Fragments {
        let (aggregate, metric) = (&gathered.aggregate, self.shown.metric());
        let all = aggregate.total(metric);
        let share = |samples: u64| if all == 0 { 0.0 } else { samples as f64 / all as f64 };
        let hot = aggregate.hot(gathered.locations(), self.shown.by.by(), metric, self.threshold);
        let line = |Fragment { sites, samples, own }: &Fragment| Line {
            size: aggregate.estimate(metric, *samples).into(),
            share: share(*samples),
            own_share: share(*own),
            frames: sites.iter().map(|site: &Site| Place::from(site)).collect(),
        };
        Fragments {
            trace: gathered.input.name().to_owned(),
            metric: self.shown.title(aggregate.peak_time()),
            threshold: self.threshold,
            total: aggregate.estimate(metric, all).into(),
            fragments: hot.found.iter().map(line).collect(),
            limits: Limits {
                complete: hot.complete,
                samples_missing: aggregate.missing_from_paths(),
            },
        }
    }
}

fn text(found: &Fragments, page: Page) -> String {
    let mut text = String::new();
    let threshold = percent(found.threshold);
    let heading = format!("{}: {} in all", found.metric, sized(&found.total));
    // Writing to a string does not fail.
    let _ = writeln!(text, "{}", page.strong(&heading));
    if found.fragments.is_empty() {
        let _ = writeln!(text, "No fragment has {threshold} of it; try a lower --threshold.");
    }
    for line in &found.fragments {
        let shares = match percent(line.share) {
            share if line.own_share == line.share => share,
            share => format!("{share}, {} not shown elsewhere", percent(line.own_share)),
        };
        let _ = writeln!(text, "\n{} ({shares})", page.strong(&sized(&line.size)));
        frames(&mut text, &line.frames, page);
    }
    let Limits { complete, samples_missing } = found.limits;
    if !complete {
        let note = "There is too much to look at: fragments may go on further than is shown. \
                    A higher --threshold or a --filter leaves less.";
        let _ = writeln!(text, "\n{}", page.faint(note));
    }
    if samples_missing > 0 {
        let note = format!(
            "There are too many call paths to keep all: up to {samples_missing} samples are \
             missing from a fragment."
        );
        let _ = writeln!(text, "\n{}", page.faint(&note));
    }
    text
}

/// The ends of a long fragment; what is between is only counted.
fn frames(text: &mut String, frames: &[Place], page: Page) {
    const HEAD: usize = 8;
    const TAIL: usize = 3;
    let skipped = frames.len().saturating_sub(HEAD + TAIL);
    for (at, place) in frames.iter().enumerate() {
        if skipped > 1 && at == HEAD {
            let _ = writeln!(text, "{}", page.faint(&format!("    … {skipped} more")));
        }
        if skipped > 1 && (HEAD..HEAD + skipped).contains(&at) {
            continue;
        }
        let arrow = if at == 0 { "   " } else { " ← " };
        let name = fit(&Escaped(place.label().as_bytes()).to_string(), page.width - 4);
        let _ = writeln!(text, " {arrow}{name}");
    }
}
