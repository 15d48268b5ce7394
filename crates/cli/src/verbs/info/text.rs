//! The facts on a trace, laid out for people.

use std::fmt::Write as _;

use heaptap_figures::units::{bytes, duration, utc};

use super::facts::Facts;
use crate::text::escape::Escaped;

/// Two columns, then the table of parts.
pub(crate) fn report(facts: &Facts) -> String {
    let mut text = String::new();
    for (label, value) in about(facts).into_iter().chain(counts(facts)) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{label:<15} {value}");
    }
    let _ = writeln!(
        text,
        "\n{:<15} {:>12} {:>8} {:>15}",
        "part of the file", "bytes", "share", "per allocation"
    );
    for part in &facts.parts {
        let _ = writeln!(
            text,
            "{:<15} {:>13} {:>7.2}% {:>15.2}",
            part.part,
            part.bytes,
            100.0 * part.share,
            part.bytes_per_allocation
        );
    }
    text
}

/// Who was traced, when and how.
fn about(facts: &Facts) -> Vec<(&'static str, String)> {
    let shown = |text: &str| match text {
        "" => "-".to_string(),
        _ => Escaped(text.as_bytes()).to_string(),
    };
    vec![
        ("trace", format!("{}, {}", facts.name, bytes(facts.bytes as f64))),
        ("format version", facts.version.to_string()),
        ("sampling rate", format!("{} ({:.4e})", facts.sample_rate, facts.sample_rate)),
        ("executable", shown(&facts.executable)),
        ("host", shown(&facts.host)),
        ("process id", facts.pid.to_string()),
        ("runtime", shown(&facts.runtime_params)),
        ("context", shown(&facts.context)),
        ("word size", format!("{} bits", facts.word_bits)),
        ("start", utc(facts.start_unix_us)),
        ("end", utc(facts.end_unix_us)),
        ("duration", duration(facts.duration_us)),
        ("domains", domains(&facts.domains)),
    ]
}

/// How many, and the first few of them.
fn domains(numbers: &[u16]) -> String {
    const SHOWN: usize = 16;
    let list: Vec<String> = numbers.iter().take(SHOWN).map(ToString::to_string).collect();
    match numbers.len() {
        0 => "0".to_string(),
        count if count > SHOWN => format!("{count} ({} …)", list.join(", ")),
        count => format!("{count} ({})", list.join(", ")),
    }
}

fn counts(facts: &Facts) -> Vec<(&'static str, String)> {
    let events = &facts.events;
    let allocated = match &facts.words {
        Some(estimate) => format!(
            "about {:.0} words, {} ± {:.2}%",
            estimate.words,
            bytes(estimate.bytes),
            100.0 * estimate.relative_error
        ),
        None => "not known: the trace was cut short before the first sample".to_owned(),
    };
    vec![
        ("packets", events.packets.to_string()),
        ("allocations", format!("{} with {} samples", events.allocations, events.samples)),
        ("promotions", events.promotions.to_string()),
        ("collections", events.collections.to_string()),
        (
            "locations",
            format!("{} of {} codes and {} names", events.locations, facts.codes, facts.names),
        ),
        (
            "backtraces",
            format!("{:.1} frames on average, {} at most", facts.depth.mean, facts.depth.max),
        ),
        ("allocated", allocated),
    ]
}
