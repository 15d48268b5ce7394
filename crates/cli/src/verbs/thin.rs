//! `heaptap thin`: reduces a trace to a lower sampling rate.

use clap::Args;
use heaptap_trace::{Allocation, EventSource, Mode, TraceFormat, TraceInfo};
use rand::rngs::SysRng;
use rand::{SeedableRng, TryRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::analysis::joined::{Joined, MergedNames};
use crate::analysis::thinning::Survivors;
use crate::exit_status::{Failure, VerbResult, help_end};
use crate::io::input::Input;
use crate::io::notices::say;
use crate::io::rewrite::renaming::SameNames;
use crate::io::rewrite::{InAndOut, Rewrite};
use crate::io::trace_files::shown;

/// Thin a trace out to a lower sampling rate
///
/// Each sample of the trace is kept with the probability RATE / (the trace's rate),
/// independently. An allocation is kept if one of its samples is, and so are its
/// promotion and collection. The result is distributed exactly as if the program
/// had been traced at RATE, so estimates from it are unbiased. Objects get new
/// numbers.
///
/// The traces of a directory, such as the files of a series, become one trace. Where they
/// have several rates, each sample is kept with the probability RATE / (its own rate).
/// What was alive when the first of them began is not in it.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap thin --rate 1e-5 big.ctf small.ctf
  heaptap thin --rate 1e-4 --seed 42 big.ctf small.ctf   the same result every time
  heaptap thin --rate 1e-5 big.ctf.gz - | zstd > small.ctf.zst"
))]
pub(crate) struct Thin {
    #[command(flatten)]
    files: InAndOut,

    /// Sampling rate of the result: above 0, at most the trace's own
    #[arg(long, value_name = "RATE", value_parser = sampling_rate)]
    rate: f64,

    /// Seed of the random numbers; by default a new one, which is printed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

fn sampling_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 1.0 => Ok(rate),
        _ => Err("a sampling rate is a number above 0 and at most 1, such as 1e-5".into()),
    }
}

impl Thin {
    pub(crate) fn run(&self) -> VerbResult {
        if self.files.input.is_dir() {
            return self.join();
        }
        let input = Input::open(&self.files.input)?;
        input.make_repeatable()?;
        let mut reader = input.reader(Mode::Lenient)?;
        if self.rate > reader.info().sample_rate {
            return Err(self.too_high(input.name(), reader.info().sample_rate));
        }
        let format = reader.format().of_copy();
        if format.has_one_domain() {
            return self.thin(&input, &mut *reader, format);
        }
        // An object may be collected in a packet that comes before the
        // one in which another domain allocates it.
        self.thin(&input, &mut *input.in_time_order()?, format)
    }

    /// Makes one trace of those of a directory: each block is brought from its own rate to the new one.
    fn join(&self) -> VerbResult {
        let traces = Joined::survey(&self.files)?;
        let info = TraceInfo { sample_rate: self.rate, ..traces.info.clone() };
        let lowest = traces.info.sample_rate;
        if self.rate > lowest {
            return Err(self.too_high(&shown(&self.files.input), lowest));
        }
        let mut survivors = Survivors { share: 1.0, random: self.random()? };
        let select = |allocation: &Allocation<'_>, rate: f64| {
            survivors.share = self.rate / rate;
            survivors.block(allocation)
        };
        traces.write(&self.files, &info, MergedNames::default(), select, |time| time)
    }

    fn too_high(&self, name: &str, rate: f64) -> Failure {
        Failure::Trouble(format!(
            "{name}: was sampled at a rate of {rate}, and {} is above that; name a lower rate",
            self.rate
        ))
    }

    fn thin(&self, input: &Input, events: &mut dyn EventSource, format: TraceFormat) -> VerbResult {
        let share = self.rate / events.info().sample_rate;
        let mut survivors = Survivors { share, random: self.random()? };
        let info = TraceInfo { sample_rate: self.rate, ..events.info().clone() };
        let names = SameNames::default();
        let rewrite = Rewrite { input, files: &self.files, format, info, names };
        rewrite.renumber(events, Some(&mut |allocation| survivors.block(allocation)))
    }

    fn random(&self) -> Result<Xoshiro256PlusPlus, Failure> {
        let seed = match self.seed {
            Some(seed) => seed,
            None => {
                let seed = SysRng.try_next_u32().map_err(|error| {
                    Failure::Trouble(format!("no random seed: {error}; name one with --seed"))
                })?;
                say(&format!("thinning with --seed {seed}"));
                u64::from(seed)
            }
        };
        Ok(Xoshiro256PlusPlus::seed_from_u64(seed))
    }
}
