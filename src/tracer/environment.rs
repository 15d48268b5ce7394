//! Options from the environment.
//!
//! [`settings::FILE`] asks for a trace and names its file; the other variables of
//! the table (`crates/settings`) only change how it is taken. Read when a trace
//! starts, never inside a hook.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use heaptap_settings as settings;

use crate::sampling::Rate;
use crate::tracer::failure::Failure;
use crate::tracer::message::say;
use crate::tracer::options::{Options, RecorderLimits};
use crate::writer::RotationLimits;

const _: () = assert!(settings::MIN_RATE == Rate::MIN, "the table and the sampler disagree");

/// `options` with what the environment sets in place of their own values. A value
/// that is not accepted is reported on standard error.
pub(crate) fn options_from_environment(options: Options) -> Result<Options, Failure> {
    // SAFETY: `getauxval` reads the process's auxiliary vector and takes any key.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        // A program with more rights than its user must not write a file of the
        // user's choice.
        return Err(Failure::NotAsked);
    }
    apply(options, |name| std::env::var_os(name))
}

/// `options` for sessions that are asked for while the program runs: with what the environment
/// sets, but for the file. Reported as by [`options_from_environment`].
pub(crate) fn settings_from_environment(options: Options) -> Result<Options, Failure> {
    apply_settings(options, |name| std::env::var_os(name))
}

fn apply(
    mut options: Options,
    lookup: impl Fn(&str) -> Option<OsString>,
) -> Result<Options, Failure> {
    let (name, file) = settings::FILE.find(&lookup).ok_or(Failure::NotAsked)?;
    if file == "-" {
        say(format_args!(
            "{name}=-: standard output belongs to the program, so no trace can be written there: \
             name a file or a FIFO (a file called - is ./-); not tracing"
        ));
        return Err(Failure::Option);
    }
    options.file = file.into_vec();
    apply_settings(options, lookup)
}

fn apply_settings(
    mut options: Options,
    lookup: impl Fn(&str) -> Option<OsString>,
) -> Result<Options, Failure> {
    let rate = settings::RATE.find_number(&lookup).map_err(|invalid| {
        report(&invalid);
        Failure::Rate
    })?;
    let rate = rate.map(|rate| Rate::new(rate).ok_or(Failure::Rate)).transpose()?;
    let budget = settings::BUDGET.find_budget(&lookup).map_err(|invalid| {
        report(&invalid);
        Failure::Option
    })?;
    match (budget, rate) {
        (Some(share), highest) => options.set_budget(share, highest),
        (None, Some(rate)) => match options.budget {
            // The host's.
            Some(budget) => options.set_budget(budget.share, Some(rate)),
            None => options.rate = rate,
        },
        (None, None) => {}
    }
    let integer = |variable: &settings::Variable| {
        variable.find_integer(&lookup).map_err(|invalid| {
            report(&invalid);
            Failure::Option
        })
    };
    if let Some(seed) = integer(&settings::SEED)? {
        options.seed = seed;
    }
    let rotation = settings::ROTATE.find_rotation(&lookup).map_err(|invalid| {
        report(&invalid);
        Failure::Option
    })?;
    if let Some(settings::Rotation { bytes, age }) = rotation {
        let keep = integer(&settings::KEEP)?.unwrap_or(settings::DEFAULT_KEEP) as usize;
        options.rotation = Some(RotationLimits { bytes, age, keep });
    }
    let recorder = settings::RECORDER.find_recorder(&lookup).map_err(|invalid| {
        report(&invalid);
        Failure::Option
    })?;
    if let Some(settings::Recorder { time, bytes, at_exit }) = recorder {
        if options.rotation.is_some() {
            let (one, other) = (settings::RECORDER.name, settings::ROTATE.name);
            say(format_args!("{one} and {other} exclude each other: unset one; not tracing"));
            return Err(Failure::Option);
        }
        options.recorder = Some(RecorderLimits { time, bytes, at_exit });
    }
    if let Some(frames) = integer(&settings::FRAMES)? {
        options.max_frames = frames as usize;
    }
    if let Some(mebibytes) = integer(&settings::PROBES_LIMIT)? {
        options.probes_limit = mebibytes << 20;
    }
    options.time_line = settings::TIMELINE.is_on(&lookup).map_err(|invalid| {
        report(&invalid);
        Failure::Option
    })?;
    Ok(options)
}

fn report(invalid: &settings::Invalid) {
    say(format_args!("{invalid}: correct or unset it; not tracing"));
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
        assert_eq!(refused(&[("HEAPTAP", "-")]), Some(Failure::Option));
        assert_eq!(refused(&[("MEMTRACE", "-")]), Some(Failure::Option));
        assert_eq!(from(&[("HEAPTAP", "./-")]).unwrap().file, b"./-");
        assert_eq!(from(&[("MEMTRACE", "b")]).unwrap().file, b"b");
        assert_eq!(from(&[("MEMTRACE", "b"), ("HEAPTAP", "a")]).unwrap().file, b"a");
    }

    #[test]
    fn the_other_variables_change_the_options() {
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
        let rotating = [("HEAPTAP", "a"), ("HEAPTAP_ROTATE", "1MB,10m"), ("HEAPTAP_KEEP", "7")];
        let (bytes, age) = (Some(1_000_000), Some(std::time::Duration::from_secs(600)));
        let limits = RotationLimits { bytes, age, keep: 7 };
        assert_eq!(from(&rotating).unwrap().rotation, Some(limits));
        let defaults = from(&[("HEAPTAP", "a")]).unwrap();
        assert_eq!(settings::RATE.number(settings::RATE.default), Ok(defaults.rate.get()));
        assert_eq!(
            settings::FRAMES.integer(settings::FRAMES.default),
            Ok(defaults.max_frames as u64)
        );
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for (name, value, failure) in [
            ("HEAPTAP_RATE", "often", Failure::Rate),
            ("HEAPTAP_RATE", "2", Failure::Rate),
            ("MEMTRACE_RATE", "nan", Failure::Rate),
            ("HEAPTAP_SEED", "-1", Failure::Option),
            ("HEAPTAP_ROTATE", "1", Failure::Option),
            ("HEAPTAP_FRAMES", "0", Failure::Option),
            ("HEAPTAP_FRAMES", "262145", Failure::Option),
        ] {
            assert_eq!(refused(&[("HEAPTAP", "a"), (name, value)]), Some(failure), "{name}");
        }
    }
}
