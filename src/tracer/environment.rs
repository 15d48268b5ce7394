//! Options from the environment.
//!
//! `HEAPTAP` names the file and asks for a trace; `MEMTRACE` does so too, as
//! with the original tool. The rest only says how.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::sampling::Rate;
use crate::tracer::failure::Failure;
use crate::tracer::message::say;
use crate::tracer::options::Options;

/// The options as the environment changes them. What it says wrong is said.
pub(crate) fn options_from_environment(options: Options) -> Result<Options, Failure> {
    // SAFETY: asks the kernel's table; takes nothing else.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        // A program with more rights than its user writes no file of their choice.
        return Err(Failure::NotAsked);
    }
    apply(options, |name| std::env::var_os(name))
}

fn apply(
    mut options: Options,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Options, Failure> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let first = |names: [&'static str; 2]| {
        names.into_iter().find_map(|name| set(name).map(|value| (name, value)))
    };
    let (_, file) = first(["HEAPTAP", "MEMTRACE"]).ok_or(Failure::NotAsked)?;
    options.file = file.into_vec();
    if let Some((name, value)) = first(["HEAPTAP_RATE", "MEMTRACE_RATE"]) {
        let rate = parse::<f64>(&value).and_then(Rate::new);
        options.rate = rate.ok_or_else(|| {
            wrong(name, &value, "a number from 1e-7 to 1");
            Failure::Rate
        })?;
    }
    if let Some(value) = set("HEAPTAP_SEED") {
        options.seed = parse(&value).ok_or_else(|| {
            wrong("HEAPTAP_SEED", &value, "a whole number");
            Failure::Option
        })?;
    }
    if let Some(value) = set("HEAPTAP_FRAMES") {
        let frames = parse(&value).filter(|frames| (1..=Options::MAX_FRAMES).contains(frames));
        options.max_frames = frames.ok_or_else(|| {
            wrong("HEAPTAP_FRAMES", &value, "a number from 1 to 262144");
            Failure::Option
        })?;
    }
    Ok(options)
}

fn parse<T: std::str::FromStr>(value: &OsString) -> Option<T> {
    value.to_str()?.trim().parse().ok()
}

fn wrong(name: &str, value: &OsString, wanted: &str) {
    say(format_args!("{name}={} is not {wanted}; not tracing", value.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(pairs: &[(&str, &str)]) -> Result<Options, Failure> {
        let options = Options::new(Vec::new(), Rate::DEFAULT);
        apply(options, |name| {
            let found = pairs.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    fn refused(pairs: &[(&str, &str)]) -> Option<Failure> {
        from(pairs).err()
    }

    #[test]
    fn a_file_asks_for_a_trace() {
        assert_eq!(refused(&[]), Some(Failure::NotAsked));
        assert_eq!(refused(&[("HEAPTAP", "")]), Some(Failure::NotAsked));
        assert_eq!(refused(&[("HEAPTAP_RATE", "1")]), Some(Failure::NotAsked));
        assert_eq!(from(&[("MEMTRACE", "b")]).unwrap().file, b"b");
        assert_eq!(from(&[("MEMTRACE", "b"), ("HEAPTAP", "a")]).unwrap().file, b"a");
    }

    #[test]
    fn the_rest_says_how() {
        let options = from(&[
            ("HEAPTAP", "a"),
            ("MEMTRACE_RATE", "0.5"),
            ("HEAPTAP_RATE", " 1e-3"),
            ("HEAPTAP_SEED", "7"),
            ("HEAPTAP_FRAMES", "64"),
        ])
        .unwrap();
        assert_eq!((options.rate.get(), options.seed, options.max_frames), (1e-3, 7, 64));
        assert_eq!(from(&[("MEMTRACE", "a"), ("MEMTRACE_RATE", "1e-4")]).unwrap().rate.get(), 1e-4);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (name, value, failure) in [
            ("HEAPTAP_RATE", "often", Failure::Rate),
            ("HEAPTAP_RATE", "2", Failure::Rate),
            ("MEMTRACE_RATE", "nan", Failure::Rate),
            ("HEAPTAP_SEED", "-1", Failure::Option),
            ("HEAPTAP_FRAMES", "0", Failure::Option),
            ("HEAPTAP_FRAMES", "262145", Failure::Option),
        ] {
            assert_eq!(refused(&[("HEAPTAP", "a"), (name, value)]), Some(failure), "{name}");
        }
    }
}
