//! `heaptap hot`: runs of calls under which much is allocated.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use heaptap_report::figures::units::{count, percent};
use heaptap_report::figures::{FragmentFrame, Fragments, HotLimits, fragments, sized};
use heaptap_report::{Depth, Options, SiteFrame};

use crate::analysis::aggregate::AggregatedTrace;
use crate::analysis::filters::{Filters, parse_share};
use crate::analysis::recursion::{Recursion, say_omitted};
use crate::analysis::view::{View, check_frames};
use crate::exit_status::{VerbResult, help_end};
use crate::io::newest::named_or_newest;
use crate::io::output::print_figures;
use crate::text::names::{site_name, with_file};
use crate::text::terminal::{Layout, width, wrap};

/// Show hot stack fragments: runs of calls, anywhere in stacks, under which much is
/// allocated
///
/// Longer fragments go first: for a hundred callers of the same code one fragment
/// is shown, and a shorter fragment is shown only if enough is allocated under it
/// that no longer one explains.
///
/// Recursion is folded: a cycle of up to 32 functions that repeats counts as one.
/// Its first function is shown with the most iterations in any stack.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap hot trace.ctf
  heaptap hot trace.ctf --threshold 1% --metric peak
  heaptap hot trace.ctf --by location --exclude '^Stdlib'"
))]
pub(crate) struct Hot {
    /// Traces, which are merged by time; a directory stands for the traces in it, `-` for
    /// standard input [default: the newest trace in this directory]
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    view: View,

    #[command(flatten)]
    recursion: Recursion,

    #[command(flatten)]
    filters: Filters,

    /// The least share of the total that a fragment must have
    #[arg(long, value_name = "PERCENT", value_parser = parse_share, default_value = "3%")]
    threshold: f64,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Hot {
    pub(crate) fn run(&self) -> VerbResult {
        check_frames(self.view.by, "hot")?;
        let options = Options {
            selection: self.filters.selection()?,
            depth: Depth::Whole,
            at: self.view.at,
            ..Options::default()
        };
        let trace = AggregatedTrace::read(&named_or_newest(&self.files)?, options)?;
        self.view.check(&trace)?;
        let figures = trace.figures(!self.filters.is_all());
        let (fragments, omitted) = fragments(
            &figures,
            &self.view.table(SiteFrame::Innermost),
            self.threshold,
            self.recursion.fold(),
        );
        print_figures(&fragments, self.json, |layout| text(&fragments, layout))?;
        say_omitted(trace.name(), &omitted);
        Ok(trace.verdict())
    }
}

fn text(found: &Fragments, layout: Layout) -> String {
    let mut text = String::new();
    let threshold = percent(found.threshold);
    let heading = format!("{}: {} in all", found.metric, sized(&found.total));
    // Writing to a string does not fail.
    let lines = |text: &str| wrap(text, layout.width).join("\n");
    let _ = writeln!(text, "{}", layout.strong(&lines(&heading)));
    if found.fragments.is_empty() {
        let none = format!("No fragment has {threshold} of it; try a lower --threshold.");
        let _ = writeln!(text, "{}", lines(&none));
    }
    for line in &found.fragments {
        let shares = match percent(line.share) {
            share if line.own_share == line.share => share,
            share => format!("{share}, {} not shown elsewhere", percent(line.own_share)),
        };
        let size = sized(&line.size);
        let heading = lines(&format!("{size} ({shares})"));
        let _ = writeln!(text, "\n{}", heading.replacen(&size, &layout.strong(&size), 1));
        frames(&mut text, &line.frames, layout);
    }
    let HotLimits { complete, samples_missing } = found.limits;
    if !complete {
        let note = "There is too much to look at: fragments may go on further than is shown. \
                    A higher --threshold or a --filter leaves less.";
        let _ = writeln!(text, "\n{}", layout.faint(&lines(note)));
    }
    if samples_missing > 0 {
        let note = format!(
            "There are too many call paths to keep all: the rarest, each of {} at most, are at \
             (light call paths), without their callers.",
            count(samples_missing, "sample", "samples")
        );
        let _ = writeln!(text, "\n{}", layout.faint(&lines(&note)));
    }
    text
}

/// The frames of a fragment. Of a long one only the ends are shown.
fn frames(text: &mut String, frames: &[FragmentFrame], layout: Layout) {
    const HEAD: usize = 8;
    const TAIL: usize = 3;
    let skipped = frames.len().saturating_sub(HEAD + TAIL);
    for (at, FragmentFrame { site, repeats }) in frames.iter().enumerate() {
        if skipped > 1 && at == HEAD {
            let _ = writeln!(text, "{}", layout.faint(&format!("    … {skipped} more")));
        }
        if skipped > 1 && (HEAD..HEAD + skipped).contains(&at) {
            continue;
        }
        let arrow = if at == 0 { "   " } else { " ← " };
        let repeated = match repeats {
            1 => String::new(),
            _ => format!(" (repeated up to ×{repeats})"),
        };
        let room = layout.width - 4 - width(&repeated);
        let name = with_file(&site_name(site), room);
        let _ = writeln!(text, " {arrow}{name}{}", layout.faint(&repeated));
    }
}
