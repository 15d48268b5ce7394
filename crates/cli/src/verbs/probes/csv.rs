//! All states as comma-separated values, one number to a line.

use std::fmt::Write as _;

use heaptap_probes::{History, Sample, TagSize};
use heaptap_report::figures::probes::figures::ProbeClock;

use crate::exit_status::Failure;
use crate::io::output::print;
use crate::text::csv::quoted;

/// Lines are printed in pieces of about this many bytes.
const PIECE: usize = 1 << 20;

/// The heading; with a column for the file, if there are several.
pub(crate) fn heading(several: bool) -> String {
    format!("{}time_us,probe,kind,field,value\n", if several { "file," } else { "" })
}

/// Prints the states of each probe in the order of time, then the log and the pauses that
/// the program asked for.
pub(crate) fn print_all(
    file: Option<&str>,
    history: &History,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<(), Failure> {
    let clock = ProbeClock::of(history);
    let file = file.map(|file| format!("{},", quoted(file))).unwrap_or_default();
    let mut lines = String::new();
    for probe in history.probes().filter(|probe| wanted(&probe.name)) {
        let (name, kind) = (quoted(&probe.name), probe.kind.name());
        for (time, sample) in &probe.series.points {
            let time = clock.micros(*time);
            for (field, value) in fields(sample) {
                // Writing to a string does not fail.
                let _ = writeln!(lines, "{file}{time},{name},{kind},{field},{value}");
            }
            flush(&mut lines, PIECE)?;
        }
    }
    for (kind, texts) in [("log", &history.log), ("pause", &history.stops)] {
        for (time, text) in texts {
            let time = clock.micros(*time);
            let _ = writeln!(lines, "{file}{time},,{kind},text,{}", quoted(text));
            flush(&mut lines, PIECE)?;
        }
    }
    flush(&mut lines, 0)
}

fn flush(lines: &mut String, room: usize) -> Result<(), Failure> {
    if lines.len() > room {
        print(lines.as_bytes())?;
        lines.clear();
    }
    Ok(())
}

fn fields(sample: &Sample) -> Vec<(&'static str, String)> {
    match sample {
        Sample::Count(total) => vec![("total", total.to_string())],
        Sample::Timer { total_ns, runs, running } => vec![
            ("total_ns", total_ns.to_string()),
            ("runs", runs.to_string()),
            ("running", running.to_string()),
        ],
        Sample::Value { last, least, greatest } => vec![
            ("last", last.to_string()),
            ("least", least.to_string()),
            ("greatest", greatest.to_string()),
        ],
        Sample::Text(text) => vec![("text", quoted(text))],
        Sample::Tag { live, marked, size } => {
            let mut fields = vec![("live", live.to_string()), ("marked", marked.to_string())];
            match size {
                TagSize::Unknown => {}
                TagSize::Exactly(words) => fields.push(("size_words", words.to_string())),
                TagSize::AtLeast(words) => fields.push(("least_size_words", words.to_string())),
            }
            fields
        }
    }
}
