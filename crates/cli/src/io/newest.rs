//! The trace that a verb takes if none is named: the newest in this directory, as
//! `heaptap run` leaves it there.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use heaptap_trace::TraceHead;

use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::notices::say;
use crate::io::trace_files::{shown, traces_in};

/// The named files; else the newest trace here, which is said on standard error.
pub(crate) fn named_or_newest(files: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    if files.is_empty() { Ok(vec![newest_here()?]) } else { Ok(files.to_vec()) }
}

/// The same for a verb of one file.
pub(crate) fn one_or_newest(file: Option<&Path>) -> Result<PathBuf, Failure> {
    file.map_or_else(newest_here, |file| Ok(file.to_owned()))
}

fn newest_here() -> Result<PathBuf, Failure> {
    let traces = traces_in(Path::new("."))?;
    let begun = |path: PathBuf| Some((start_time(&path)?, path));
    let mut traces: Vec<(u64, PathBuf)> = traces.into_iter().filter_map(begun).collect();
    traces.sort();
    let number = traces.len();
    let Some((_, newest)) = traces.pop() else {
        return Err(Failure::Trouble(
            "no trace is named, and there is none in this directory; name a FILE, or make one by \
             `heaptap run -- PROGRAM`"
                .into(),
        ));
    };
    let newest = newest.strip_prefix(".").map(Path::to_owned).unwrap_or(newest);
    // A file called `-` is not standard input.
    let newest = if newest.as_os_str() == "-" { Path::new(".").join(newest) } else { newest };
    say(&match number {
        1 => format!("{}, the only trace here", shown(&newest)),
        _ => format!("{}, the newest of {number} traces here", shown(&newest)),
    });
    Ok(newest)
}

/// When the trace was begun, in microseconds since the epoch. `None` if it does not say.
fn start_time(path: &Path) -> Option<u64> {
    let mut begin = Vec::new();
    let input = Input::open(path).ok()?.quietly();
    input.bytes_again().take(TraceHead::BYTES as u64).read_to_end(&mut begin).ok()?;
    TraceHead::of(&begin).map(|head| head.origin.start_time)
}
