//! The options that select blocks, and the syntax of times, sizes and shares.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use heaptap_report::{Regex, Selection, Span};
use heaptap_trace::Source;

use crate::exit_status::Failure;

/// Which blocks count
///
/// All figures, totals and peak included, are of the blocks that are selected.
#[derive(Args)]
#[command(next_help_heading = "Which blocks count")]
pub(crate) struct Filters {
    /// Only blocks with a frame whose function or file matches; given several
    /// times, each must match
    #[arg(long, value_name = "REGEX")]
    filter: Vec<String>,

    /// No blocks with a frame whose function or file matches
    #[arg(long, value_name = "REGEX")]
    exclude: Vec<String>,

    /// Only blocks allocated under a label that matches
    #[arg(long, value_name = "REGEX")]
    label: Vec<String>,

    /// Only blocks allocated from this time on, counted from the start: 90s, 1.5min
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<u64>,

    /// Only blocks allocated up to this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<u64>,

    /// Only blocks of at least this size, headers not counted: 4096, 64KiB, 1MiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    min_size: Option<u64>,

    /// Only blocks of at most this size
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_size: Option<u64>,

    /// Only blocks that live at least this long
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    min_lifetime: Option<u64>,

    /// Only blocks that live at most this long
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    max_lifetime: Option<u64>,

    /// Only blocks allocated in this domain
    #[arg(long, value_name = "NUMBER")]
    domain: Vec<u16>,

    /// Only blocks allocated there
    #[arg(long, value_parser = block_source())]
    source: Vec<Source>,
}

/// Parses one of these names. Each value has its name and its help.
pub(crate) fn one_of<T: Clone + Send + Sync + 'static, const N: usize>(
    all: [(T, &'static str, &'static str); N],
) -> impl TypedValueParser<Value = T> {
    let names = all.each_ref().map(|(_, name, help)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(names).try_map(move |chosen| {
        let found = all.iter().find(|(_, name, _)| *name == chosen);
        found.map(|(value, ..)| value.clone()).ok_or("no such value")
    })
}

/// Where a block was allocated.
fn block_source() -> impl TypedValueParser<Value = Source> {
    one_of([
        (Source::Minor, "minor", "In the minor heap"),
        (Source::Major, "major", "Directly in the major heap"),
        (Source::External, "external", "Outside the heap: bigarrays, buffers of channels"),
    ])
}

impl Filters {
    pub(crate) fn selection(&self) -> Result<Selection, Failure> {
        if self.filter.len() > Selection::MOST_INCLUDED {
            return Err(Failure::Trouble(format!(
                "more than {} filters; join some with `|`",
                Selection::MOST_INCLUDED
            )));
        }
        Ok(Selection {
            include: patterns("--filter", &self.filter)?,
            exclude: patterns("--exclude", &self.exclude)?,
            labels: patterns("--label", &self.label)?,
            time: span(self.since, self.until, "--since", "--until")?,
            size: span(self.min_size, self.max_size, "--min-size", "--max-size")?,
            lifetime: span(
                self.min_lifetime,
                self.max_lifetime,
                "--min-lifetime",
                "--max-lifetime",
            )?,
            domains: self.domain.clone(),
            sources: self.source.clone(),
        })
    }

    /// The options as they can be given again.
    pub(crate) fn words(&self) -> String {
        let mut words = Vec::new();
        let mut add = |option: &str, value: &str| words.push(format!("{option} {value}"));
        let patterns =
            [("--filter", &self.filter), ("--exclude", &self.exclude), ("--label", &self.label)];
        for (option, patterns) in patterns {
            patterns.iter().for_each(|pattern| add(option, pattern));
        }
        let times = [
            ("--since", self.since),
            ("--until", self.until),
            ("--min-lifetime", self.min_lifetime),
            ("--max-lifetime", self.max_lifetime),
        ];
        for (option, time) in times {
            time.iter().for_each(|time| add(option, &format!("{time}us")));
        }
        for (option, size) in [("--min-size", self.min_size), ("--max-size", self.max_size)] {
            size.iter().for_each(|size| add(option, &size.to_string()));
        }
        self.domain.iter().for_each(|domain| add("--domain", &domain.to_string()));
        self.source.iter().for_each(|source| add("--source", source.name()));
        words.join(" ")
    }

    /// Whether every block is selected.
    pub(crate) fn is_all(&self) -> bool {
        let patterns = self.filter.len() + self.exclude.len() + self.label.len();
        let spans = [
            self.since,
            self.until,
            self.min_size,
            self.max_size,
            self.min_lifetime,
            self.max_lifetime,
        ];
        patterns + self.domain.len() + self.source.len() == 0 && spans.iter().all(Option::is_none)
    }
}

pub(crate) fn patterns(option: &str, texts: &[String]) -> Result<Vec<Regex>, Failure> {
    let parse = |text: &String| {
        Regex::new(text).map_err(|error| {
            // The last line of the error is the reason; those before it are a drawing.
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or("").trim_start_matches("error: ");
            Failure::Trouble(format!(
                "{option} '{}': not a regular expression: {reason}; \
                 put a backslash before each of . * + ? ( ) [ ] that is meant as it is",
                text.escape_debug()
            ))
        })
    };
    texts.iter().map(parse).collect()
}

fn span(from: Option<u64>, to: Option<u64>, first: &str, last: &str) -> Result<Span, Failure> {
    let span = Span { from: from.unwrap_or(0), to: to.unwrap_or(u64::MAX) };
    if span.from > span.to {
        return Err(Failure::Trouble(format!(
            "{first} is beyond {last}: nothing is in between; exchange them"
        )));
    }
    Ok(span)
}

/// A number and its unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    number.is_finite().then(|| (number, text[digits..].trim()))
}

/// A time or duration, in microseconds.
pub(crate) fn parse_time(text: &str) -> Result<u64, String> {
    let wrong = || "give a number and a unit: 250us, 10ms, 1.5s, 2min, 1h".to_owned();
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let micros = match unit {
        "us" | "µs" => 1.0,
        "ms" => 1e3,
        "s" | "" => 1e6,
        "min" | "m" => 6e7,
        "h" => 3.6e9,
        _ => return Err(wrong()),
    };
    Ok((number * micros).round() as u64)
}

/// A share, written as a percentage.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let wrong = || "give a percentage: 5%, 0.5%".to_owned();
    let (number, unit) = split(text).ok_or_else(wrong)?;
    if unit == "%" { Ok(number / 100.0) } else { Err(wrong()) }
}

/// A size in bytes.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || "give a number of bytes, or one with a unit: 4096, 64KiB, 1.5MiB".to_owned();
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let bytes = match unit.to_ascii_lowercase().as_str() {
        "" | "b" | "bytes" => 1.0,
        "k" | "kib" => 1024.0,
        "kb" => 1e3,
        "m" | "mib" => 1024.0 * 1024.0,
        "mb" => 1e6,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "gb" => 1e9,
        _ => return Err(wrong()),
    };
    Ok((number * bytes).round() as u64)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Call {
        #[command(flatten)]
        filters: Filters,
    }

    #[test]
    fn words_are_the_options() {
        let words = "--filter a --filter b --exclude c --label d --since 1us --until 2us \
            --min-lifetime 3us --max-lifetime 4us --min-size 5 --max-size 6 --domain 7 \
            --source minor --source external";
        let call = Call::parse_from(["test"].into_iter().chain(words.split(' ')));
        assert_eq!(call.filters.words(), words);
        let call = Call::parse_from(["test", "--since", "1.5s"]);
        assert_eq!(call.filters.words(), "--since 1500000us");
    }

    #[test]
    fn times_and_sizes_have_units() {
        assert_eq!(parse_time("1.5s"), Ok(1_500_000));
        assert_eq!(parse_time("250 us"), Ok(250));
        assert_eq!(parse_time("2"), Ok(2_000_000));
        assert_eq!(parse_time("2min"), Ok(120_000_000));
        assert_eq!(parse_size("64KiB"), Ok(65_536));
        assert_eq!(parse_size("1k"), Ok(1024));
        assert_eq!(parse_size("3"), Ok(3));
        assert_eq!(parse_share("5%"), Ok(0.05));
        assert!(parse_share("0.05").is_err());
        for wrong in ["", "s", "-1s", "1..2s", "3 parsecs"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
