//! The options of a trace that a running program is asked for.

use clap::Args;
use heaptap_control::StartRequest;
use heaptap_settings::{self as settings, Recorder, Rotation};

use crate::io::running;

/// How a trace samples, what it may cost, and where it goes on.
#[derive(Args)]
pub(crate) struct TraceOptions {
    /// The probability with which each allocated word is sampled (a number from 1e-7 to 1).
    /// Default: that of the program's settings, 1e-5
    #[arg(short, long, value_name = "RATE", value_parser = running::rate)]
    rate: Option<f64>,

    /// What the trace may cost, from 0.01% to 50% of the program's processor time, such as 1%: the
    /// rate changes as the program does, and `--rate` is the highest one, by default 1e-2
    #[arg(long, value_name = "PERCENT", value_parser = budget)]
    budget: Option<f64>,

    /// Go on in another file before the trace has this size, or after this time, as in `heaptap run`:
    /// such as 100MB,24h
    #[arg(long, value_name = "WHEN", value_parser = rotation)]
    rotate: Option<String>,

    /// The most files of a series that are kept, those of earlier traces in the directory too.
    /// Default: that of the program's settings, 20
    #[arg(long, value_name = "N", value_parser = keep)]
    keep: Option<u64>,

    /// Keep the last of the trace in memory, and write it when `heaptap recorder` asks, or the program
    /// dies: as `heaptap run --recorder`
    #[arg(long, value_name = "TIME", value_parser = recorder, conflicts_with = "rotate")]
    recorder: Option<String>,

    /// Record the collector's time line beside the trace, as `heaptap run` does: what it does when, how
    /// large the heap is, and the memory of the process
    #[arg(long)]
    timeline: bool,
}

impl TraceOptions {
    /// What the program is asked for. Which file, and for how long, is left open.
    pub(crate) fn request(&self) -> StartRequest {
        let TraceOptions { rate, budget, ref rotate, keep, ref recorder, timeline } = *self;
        let (rotate, recorder) = (rotate.clone(), recorder.clone());
        StartRequest { rate, budget, rotate, keep, recorder, timeline, ..StartRequest::default() }
    }
}

/// In per cent.
fn budget(text: &str) -> Result<f64, String> {
    let share = settings::budget(text);
    let share = share.ok_or_else(|| format!("not {}", settings::BUDGET.syntax))?;
    Ok((share * 1e6).round() / 1e4)
}

fn rotation(text: &str) -> Result<String, String> {
    let parsed = Rotation::parse(text);
    parsed.map(|_| text.to_owned()).ok_or_else(|| format!("not {}", settings::ROTATE.syntax))
}

fn keep(text: &str) -> Result<u64, String> {
    settings::KEEP.integer(text).map_err(|invalid| format!("not {}", invalid.expected))
}

/// What is kept in memory, as it is typed.
fn recorder(text: &str) -> Result<String, String> {
    let parsed = Recorder::parse(text);
    parsed.map(|_| text.to_owned()).ok_or_else(|| format!("not {}", settings::RECORDER.syntax))
}
