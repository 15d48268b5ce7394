//! The state of a probe in words, as `heaptap probes` and `heaptap top` show it.

use crate::figures::units::{bytes, percent, short_duration};

use crate::escape::Escaped;
use crate::figures::probes::figures::{ProbeRow, ProbeState};

/// All that is known of a probe.
pub fn described(probe: &ProbeRow) -> String {
    match &probe.state {
        None => "never changed".to_owned(),
        Some(found) => {
            let more = match found {
                ProbeState::Count { rate_lately, rate, .. } => {
                    format!(", {}/s lately, {}/s in all", number(*rate_lately), number(*rate))
                }
                ProbeState::Timer { rate_lately, rate, .. } => {
                    format!(
                        ", {} of the time lately, {} in all",
                        percent(*rate_lately),
                        percent(*rate)
                    )
                }
                ProbeState::Tag { size_bytes: None, .. } => ", size not measured".to_owned(),
                ProbeState::Tag { size_bytes: Some(size), size_is_least, .. } => {
                    let least = if *size_is_least { "≥ " } else { "" };
                    format!(", {least}{}", bytes(*size as f64))
                }
                ProbeState::Value { .. } | ProbeState::Text { .. } => String::new(),
            };
            format!("{}{more}", state(found))
        }
    }
}

/// The state in two short columns: what it is, and how it changes or how large it is.
pub fn brief(state: &ProbeState) -> (String, String) {
    match state {
        ProbeState::Count { total, rate_lately, .. } => {
            (grouped(*total), format!("{}/s", number(*rate_lately)))
        }
        ProbeState::Timer { total_ns, mean_ns, rate_lately, .. } => {
            let mean = mean_ns.map(|mean| format!(", mean {}", nanos(mean))).unwrap_or_default();
            (nanos(*total_ns as f64), format!("{}{mean}", percent(*rate_lately)))
        }
        ProbeState::Value { last, least, greatest } => {
            (number(*last), format!("{} … {}", number(*least), number(*greatest)))
        }
        ProbeState::Text { text } => (String::new(), Escaped(text.as_bytes()).to_string()),
        ProbeState::Tag { live, size_bytes, size_is_least, .. } => {
            let least = if *size_is_least { "≥ " } else { "" };
            let size = size_bytes.map(|size| format!("{least}{}", bytes(size as f64)));
            (format!("{}{} live", at_most(*live, "≤ "), grouped(*live)), size.unwrap_or_default())
        }
    }
}

/// The state without its rates and sizes.
fn state(state: &ProbeState) -> String {
    match state {
        ProbeState::Count { total, .. } => grouped(*total),
        ProbeState::Timer { total_ns, runs, running, mean_ns, .. } => {
            let mut text = nanos(*total_ns as f64);
            if *runs > 0 {
                text +=
                    &format!(" in {} {}", grouped(*runs), if *runs == 1 { "run" } else { "runs" });
            }
            if let Some(mean) = mean_ns {
                text += &format!(", mean {}", nanos(*mean));
            }
            if *running > 0 {
                text += &format!(", {running} running");
            }
            text
        }
        ProbeState::Value { last, least, greatest } => {
            format!("{}, least {}, greatest {}", number(*last), number(*least), number(*greatest))
        }
        ProbeState::Text { text } => Escaped(text.as_bytes()).to_string(),
        ProbeState::Tag { live, marked, .. } => {
            let live = format!("{}{} live", at_most(*live, "at most "), grouped(*live));
            format!("{live} of {} marked", grouped(*marked))
        }
    }
}

/// What stands before the number of live tagged values: the collector may not have found all dead
/// ones yet.
fn at_most(live: u64, words: &str) -> &str {
    if live == 0 { "" } else { words }
}

/// A duration in nanoseconds.
pub fn nanos(nanos: f64) -> String {
    if nanos < 1e3 { format!("{nanos:.0} ns") } else { short_duration(nanos / 1e3) }
}

/// A count, its digits in groups of three.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of the program: whole if it is, else to six digits or so.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() || size != 0.0 && !(1e-4..1e15).contains(&size) {
        return format!("{value:.5e}").replace("inf", "∞");
    }
    if value.fract() == 0.0 || size >= 1e6 {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}{}", grouped(size.round() as u64));
    }
    let digits = 5_usize.saturating_sub(size.log10().floor().max(0.0) as usize);
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_whole_ones_are_exact() {
        let cases = [
            (0.0, "0"),
            (-12.0, "-12"),
            (1_234_567.0, "1,234,567"),
            (1_234_567.8, "1,234,568"),
            (0.125, "0.125"),
            (-2.123_456_789, "-2.12346"),
            (1_234.567_89, "1234.57"),
            (0.000_01, "1.00000e-5"),
            (1e20, "1.00000e20"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-∞"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert_eq!(grouped(803_800_206), "803,800,206");
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!((nanos(7.0), nanos(2_500.0)), ("7 ns".to_owned(), "2 µs".to_owned()));
    }
}
