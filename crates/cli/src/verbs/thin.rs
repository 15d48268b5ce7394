//! `heaptap thin`: reduces a trace to a lower sampling rate.

use clap::Args;
use heaptap_trace::{Allocation, Block, EventSource, Mode, TraceFormat, TraceInfo};
use rand::rngs::SysRng;
use rand::{Rng, SeedableRng, TryRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::exit_status::{Failure, VerbResult, help_end};
use crate::io::input::Input;
use crate::io::notices::say;
use crate::io::rewrite::renaming::SameNames;
use crate::io::rewrite::{InAndOut, Rewrite};

/// Thin a trace out to a lower sampling rate
///
/// Each sample of the trace is kept with the probability RATE / (the trace's rate),
/// independently. An allocation is kept if one of its samples is, and so are its
/// promotion and collection. The result is distributed exactly as if the program
/// had been traced at RATE, so estimates from it are unbiased. Objects get new
/// numbers.
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
        let input = Input::open(&self.files.input)?;
        input.make_repeatable()?;
        let mut reader = input.reader(Mode::Lenient)?;
        if self.rate > reader.info().sample_rate {
            return Err(Failure::Trouble(format!(
                "{}: was sampled at a rate of {}, and {} is above that; name a lower rate",
                input.name(),
                reader.info().sample_rate,
                self.rate
            )));
        }
        let format = reader.format().of_copy();
        if format.has_one_domain() {
            return self.thin(&input, &mut *reader, format);
        }
        // An object may be collected in a packet that comes before the
        // one in which another domain allocates it.
        self.thin(&input, &mut *input.in_time_order()?, format)
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

/// Chooses the samples that are kept.
struct Survivors {
    /// The probability with which each sample is kept.
    share: f64,
    random: Xoshiro256PlusPlus,
}

impl Survivors {
    /// What is left of an allocation, if anything.
    fn block(&mut self, allocation: &Allocation<'_>) -> Option<Block> {
        let samples = self.of(allocation.samples);
        (samples > 0).then_some(Block { samples, ..allocation.block() })
    }

    /// Above this variance a binomial number is drawn from the normal distribution
    /// of the same mean and variance; their distribution functions then differ by
    /// at most 3·10⁻⁴. Real blocks rarely have that many samples, and a hostile one
    /// must not take long.
    const MANY: f64 = 65_536.0;

    /// The number of samples that are kept, which is binomial.
    fn of(&mut self, samples: u64) -> u64 {
        if self.share >= 1.0 {
            return samples;
        }
        if samples == 1 {
            return u64::from(self.uniform() <= self.share);
        }
        let count = samples as f64;
        if count * self.share * (1.0 - self.share) > Self::MANY {
            return self.of_many(count).min(samples);
        }
        // Whichever kind is rarer is counted, by the gaps between its members.
        if self.share <= 0.5 {
            self.rare(samples, self.share)
        } else {
            samples - self.rare(samples, 1.0 - self.share)
        }
    }

    /// The number of successes among `samples` trials with probability `share`. The
    /// gap to the next one is geometric.
    fn rare(&mut self, samples: u64, share: f64) -> u64 {
        let mut left = samples as f64;
        let mut found = 0;
        loop {
            // `ln_1p` keeps the tiniest shares exact.
            let gap = (self.uniform().ln() / (-share).ln_1p()).floor();
            left -= gap + 1.0;
            if left < 0.0 {
                return found;
            }
            found += 1;
        }
    }

    fn of_many(&mut self, count: f64) -> u64 {
        let (mean, deviation) =
            (count * self.share, (count * self.share * (1.0 - self.share)).sqrt());
        // Box and Muller's method.
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.uniform()).cos();
        (mean + deviation * normal).round().max(0.0) as u64
    }

    /// Uniform in (0, 1], a multiple of 2⁻⁵³.
    fn uniform(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1u64 << 53) as f64;
        ((self.random.next_u64() >> 11) + 1) as f64 * STEP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of the survivors of `samples`, over many draws,
    /// against those of the binomial law, at 4.5 sigma.
    fn assert_binomial(samples: u64, share: f64, draws: u32, seed: u64) {
        println!("seed {seed}, {samples} samples, share {share}");
        let mut survivors = Survivors { share, random: Xoshiro256PlusPlus::seed_from_u64(seed) };
        let (n, count) = (samples as f64, f64::from(draws));
        let (mean, variance) = (n * share, n * share * (1.0 - share));
        let deviations: Vec<f64> =
            (0..draws).map(|_| survivors.of(samples) as f64 - mean).collect();
        let first = deviations.iter().sum::<f64>() / count;
        let second = deviations.iter().map(|d| d * d).sum::<f64>() / count;
        // Fourth central moment of the binomial law.
        let fourth = variance * (1.0 + 3.0 * (n - 2.0) * share * (1.0 - share));
        let sigma_of_second = ((fourth - variance * variance) / count).sqrt();
        assert!(first.abs() <= 4.5 * (variance / count).sqrt(), "mean off by {first}");
        assert!(
            (second - variance).abs() <= 4.5 * sigma_of_second,
            "variance {second}, not {variance}"
        );
    }

    #[test]
    fn survivors_follow_the_binomial_law_for_few_and_many_samples() {
        let shares = [1e-3, 0.1, 0.5, 0.7, 0.999];
        for (seed, share) in (1..).zip(shares) {
            assert_binomial(1, share, 200_000, seed);
            assert_binomial(2, share, 200_000, seed + 10);
            assert_binomial(17, share, 100_000, seed + 20);
            assert_binomial(5000, share, 2_000, seed + 30);
        }
        assert_binomial(1 << 40, 0.3, 50_000, 99);
    }

    #[test]
    fn hostile_numbers_of_samples_take_no_time_and_stay_in_bounds() {
        for share in [1e-300, 1e-9, 0.5, 1.0 - f64::EPSILON / 2.0, 1.0] {
            let random = Xoshiro256PlusPlus::seed_from_u64(7);
            let mut survivors = Survivors { share, random };
            for samples in [1, 2, 1 << 40, (1 << 62) - 1] {
                assert!(survivors.of(samples) <= samples);
            }
        }
    }
}
