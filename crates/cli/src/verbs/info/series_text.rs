//! The facts about several traces, laid out for people.

use std::fmt::Write as _;

use heaptap_report::figures::units::{bytes, count, duration, utc};

use super::series::{SeriesFacts, Stretch};
use crate::text::names::escaped_or_dash;
use crate::text::terminal::{Layout, wrap_whole};

/// Two columns, then a line for each stretch and each file.
pub(crate) fn report(facts: &SeriesFacts, layout: Layout) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let mut add = |label: &str, value: &str| {
        _ = writeln!(text, "{label:<15} {}", wrap_whole(value, 16, layout.width));
    };
    let files = count(facts.files.len() as u64, "file", "files");
    let (all, sidecars) = (bytes(facts.bytes as f64), bytes(facts.sidecar_bytes as f64));
    add("traces", &format!("{}, {files}, {all} with {sidecars} of sidecars", facts.name));
    let numbers: Vec<u64> = facts.files.iter().filter_map(|file| file.part).collect();
    if let (Some(first), Some(last)) = (numbers.iter().min(), numbers.iter().max()) {
        add("parts", &format!("{first} to {last}, of which {} are read", numbers.len()));
    }
    add("executable", &escaped_or_dash(&facts.executable));
    add("host", &escaped_or_dash(&facts.host));
    add("process id", &facts.pid.to_string());
    add("word size", &format!("{} bits", facts.word_bits));
    add("start", &utc(facts.start_unix_us));
    add("end", &utc(facts.end_unix_us));
    add("duration", &duration(facts.duration_us));
    for rate in &facts.rates {
        let samples = count(rate.samples, "sample", "samples");
        let words = format!("about {:.0} words", rate.words);
        add("sampling rate", &format!("{} with {samples}, {words}", rate.sample_rate));
    }
    let events = &facts.events;
    add("alive before", &count(events.alive_before, "sampled block", "sampled blocks"));
    add("allocations", &format!("{} with {} samples", events.allocations, events.samples));
    add("promotions", &events.promotions.to_string());
    add("collections", &events.collections.to_string());
    add("allocated", &allocated(facts));
    let stretch = |stretch: &Stretch| {
        let files = count(stretch.files, "file", "files");
        let covered = duration(stretch.end_unix_us.saturating_sub(stretch.start_unix_us));
        let start = utc(stretch.start_unix_us);
        format!("{start}, {covered} at {}, {files}", stretch.sample_rate)
    };
    text.push('\n');
    for one in &facts.stretches {
        _ = writeln!(text, "{}", wrap_whole(&stretch(one), 2, layout.width));
    }
    text.push('\n');
    for file in &facts.files {
        let covered = duration(file.end_unix_us.saturating_sub(file.start_unix_us));
        let (own, sidecars) = (bytes(file.bytes as f64), bytes(file.sidecar_bytes as f64));
        let line = format!("{}: {covered}, {own}, sidecars {sidecars}", file.name);
        _ = writeln!(text, "{}", wrap_whole(&line, 2, layout.width));
    }
    text
}

fn allocated(facts: &SeriesFacts) -> String {
    let size = bytes(facts.allocated_bytes);
    match facts.relative_error {
        Some(error) => format!("about {:.0} words, {size} ± {:.2}%", facts.words, 100.0 * error),
        None => "no sample".to_owned(),
    }
}
