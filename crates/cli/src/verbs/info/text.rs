//! The facts on a trace, laid out for people.

use std::fmt::Write as _;

use heaptap_report::figures::Unseen;
use heaptap_report::figures::units::{bytes, duration, utc};

use super::facts::{Estimate, Facts};
use crate::text::names::escaped_or_dash;
use crate::text::terminal::{Layout, wrap_whole};

/// Two columns, then the table of parts.
pub(crate) fn report(facts: &Facts, layout: Layout) -> String {
    let mut text = String::new();
    for (label, value) in about(facts).into_iter().chain(counts(facts)) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{label:<15} {}", wrap_whole(&value, 16, layout.width));
    }
    // A narrow terminal has no room for the last column.
    let has_room = layout.width >= 54;
    let last = |column: String| if has_room { format!(" {column:>15}") } else { String::new() };
    let _ = writeln!(
        text,
        "\n{:<15} {:>12} {:>8}{}",
        "part of the file",
        "bytes",
        "share",
        last("per allocation".to_owned())
    );
    for part in &facts.parts {
        let _ = writeln!(
            text,
            "{:<15} {:>13} {:>7.2}%{}",
            part.part,
            part.bytes,
            100.0 * part.share,
            last(format!("{:.2}", part.bytes_per_allocation))
        );
    }
    text
}

/// Who was traced, when and how.
fn about(facts: &Facts) -> Vec<(&'static str, String)> {
    vec![
        ("trace", format!("{}, {}", facts.name, bytes(facts.bytes as f64))),
        ("format version", facts.version.to_string()),
        ("sampling rate", format!("{} ({:.4e})", facts.sample_rate, facts.sample_rate)),
        ("executable", escaped_or_dash(&facts.executable)),
        ("host", escaped_or_dash(&facts.host)),
        ("process id", facts.pid.to_string()),
        ("runtime", escaped_or_dash(&facts.runtime_params)),
        ("context", escaped_or_dash(&facts.context)),
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

fn allocated(estimate: &Estimate, facts: &Facts) -> String {
    if let Some(error) = estimate.relative_error {
        let size = bytes(estimate.bytes);
        return format!("about {:.0} words, {size} ± {:.2}%", estimate.words, 100.0 * error);
    }
    let size = bytes(estimate.high_words * f64::from(facts.word_bits / 8));
    let better = Unseen::at(facts.sample_rate)
        .map_or(String::new(), |unseen| format!("; --rate {} for more", unseen.better_rate()));
    let words = estimate.high_words;
    format!("fewer than {words:.0} words, {size} (no sample, with 95 % probability){better}")
}

fn counts(facts: &Facts) -> Vec<(&'static str, String)> {
    let events = &facts.events;
    let kinds = facts.kinds.iter().map(|kind| escaped_or_dash(kind)).collect::<Vec<_>>().join(", ");
    let kinds = Some(("kinds", kinds)).filter(|_| !facts.kinds.is_empty());
    let allocated = match &facts.words {
        Some(estimate) => allocated(estimate, facts),
        None => "not known: the trace was cut short before the first sample".to_owned(),
    };
    let rows = [
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
    ];
    rows.into_iter().chain(kinds).collect()
}
