//! `heaptap leaks`: sites whose live size keeps growing.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use heaptap_report::{Caller, Depth, Follow, Leak, Options, Outlook};
use serde::Serialize;

use crate::aggregate::Gathered;
use crate::exit_status::{Ending, help_end};
use crate::filters::Selecting;
use crate::io::output::print;
use crate::text::escape::Escaped;
use crate::text::json;
use crate::text::terminal::{Page, fit};
use crate::text::units::{bytes, count, percent, short_duration};
use crate::verbs::report::{Place, Size, sized, sparkline};

/// Find leaks: allocation sites whose live size keeps growing
///
/// A site leaks if of what it allocated at any time about as much is still alive
/// as of what it allocated at any other, and if it grows by more than sampling
/// explains. Blocks that have not met the collector twice are no evidence: they
/// may be garbage that waits.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap leaks trace.ctf
  heaptap leaks trace.ctf --exclude '^Cache\\.'
  heaptap leaks --json trace.ctf | jq '.leaks[0].site'"
))]
pub(crate) struct Leaks {
    /// The trace, or `-` for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    #[command(flatten)]
    selecting: Selecting,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What is shown. The field names are those of the JSON.
#[derive(Serialize)]
struct Found {
    trace: String,
    duration_us: u64,
    verdict: String,
    /// Whether the trace can show leaks.
    conclusive: bool,
    leaks: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    site: Place,
    live: Size,
    allocated: Size,
    growth_per_second: Size,
    slowing: bool,
    survivors_from_us: u64,
    survivors_to_us: u64,
    /// Bytes alive of what was allocated in each window of that time.
    survivors: Vec<f64>,
    /// The callers under which nearly all of it lives, the nearest first.
    called_from: Vec<Place>,
}

impl Leaks {
    pub(crate) fn run(&self) -> Ending {
        let options = Options {
            selection: self.selecting.selection()?,
            depth: Depth::Whole,
            follow: Follow::LiveSize,
            ..Options::default()
        };
        let gathered = Gathered::read(&self.file, options)?;
        let found = found(&gathered);
        if self.json {
            let mut line = Vec::new();
            json::put(&mut line, &found);
            line.push(b'\n');
            print(&line)?;
        } else {
            print(text(&found, Page::of_stdout()).as_bytes())?;
        }
        Ok(gathered.verdict())
    }
}

fn found(gathered: &Gathered) -> Found {
    const LEVELS: usize = 6;
    let leaks = gathered.aggregate.leaks(gathered.locations(), LEVELS);
    let verdict = match (leaks.outlook, leaks.found.len() as u64) {
        (Outlook::TooShort, _) => {
            "cannot tell: the trace is too short; trace a longer run, or at a higher rate"
                .to_owned()
        }
        (Outlook::RarelyCollected, _) => "cannot tell: old blocks were collected too rarely to \
            tell a leak from garbage that waits; trace a longer run"
            .to_owned(),
        (Outlook::Clear, 0) => "no leak: no site keeps growing".to_owned(),
        (Outlook::Clear, number) => {
            format!("{} growing", count(number, "site keeps", "sites keep"))
        }
    };
    Found {
        trace: gathered.input.name().to_owned(),
        duration_us: gathered.aggregate.duration(),
        verdict,
        conclusive: leaks.outlook == Outlook::Clear,
        leaks: leaks.found.iter().map(line).collect(),
    }
}

fn line(leak: &Leak) -> Line {
    let live: u64 = leak.callers.iter().map(|caller| caller.samples).sum();
    Line {
        site: Place::from(&leak.site),
        live: leak.live.into(),
        allocated: leak.allocated.into(),
        growth_per_second: leak.growth.into(),
        slowing: leak.slowing,
        survivors_from_us: leak.window.0,
        survivors_to_us: leak.window.1,
        survivors: leak.survivors.clone(),
        called_from: main_callers(&leak.callers, live),
    }
}

/// The callers that nine tenths of the size have in common.
fn main_callers(callers: &[Caller], all: u64) -> Vec<Place> {
    let mut chain = Vec::new();
    let mut level = callers;
    while let Some(caller) = level.first() {
        if caller.samples.saturating_mul(10) < all.saturating_mul(9) {
            break;
        }
        chain.push(Place::from(&caller.site));
        level = &caller.callers;
    }
    chain
}

fn text(found: &Found, page: Page) -> String {
    let seen = format!("in {}", short_duration(found.duration_us as f64));
    let verdict = match (found.conclusive, found.leaks.is_empty()) {
        (true, true) => page.good(&found.verdict),
        (true, false) => page.bad(&found.verdict),
        (false, _) => page.strong(&found.verdict),
    };
    let mut text = format!("{verdict} ({seen})\n");
    for line in &found.leaks {
        put(&mut text, line, page);
    }
    text
}

fn put(text: &mut String, line: &Line, page: Page) {
    let escaped = |place: &Place| Escaped(place.label().as_bytes()).to_string();
    let name = fit(&escaped(&line.site), page.width);
    let growth = &line.growth_per_second;
    let minute = bytes(60.0 * growth.bytes);
    let kept =
        if line.allocated.bytes > 0.0 { line.live.bytes / line.allocated.bytes } else { 0.0 };
    // Writing to a string does not fail.
    let _ = writeln!(text, "\n{}", page.strong(&name));
    let _ = writeln!(text, "  grows by    {minute} ± {} a minute", percent(growth.relative()));
    let _ = writeln!(
        text,
        "  alive       {}, {} of what it allocated",
        sized(&line.live),
        percent(kept)
    );
    let _ = writeln!(
        text,
        "  survivors   {}  by age, from {} to {}",
        sparkline(&line.survivors, line.survivors.len()),
        short_duration(line.survivors_from_us as f64),
        short_duration(line.survivors_to_us as f64)
    );
    let verdict = if line.slowing {
        "grows less and less: perhaps a cache that fills; look again after a longer run"
    } else {
        "a leak: what it allocates is kept, whenever it was allocated"
    };
    let _ = writeln!(text, "  verdict     {verdict}");
    for (at, caller) in line.called_from.iter().enumerate() {
        let label = if at == 0 { "called from" } else { "" };
        let name = fit(&escaped(caller), page.width - 14);
        let _ = writeln!(text, "  {label:<11} {name}");
    }
}
