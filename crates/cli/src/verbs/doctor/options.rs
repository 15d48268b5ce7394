//! How a program is watched.

use std::time::Duration;

use clap::Args;

use crate::analysis::ocaml_types::TypeOptions;
use crate::io::running;

/// How a program is watched, and how what it holds is named.
#[derive(Args)]
pub(super) struct WatchOptions {
    /// How long to watch: such as 30s, 5m or 1h. Default: 60s; of a program that is started, to its end, and with a time
    /// the program is ended then
    #[arg(long = "for", value_name = "TIME", value_parser = running::span)]
    pub(super) span: Option<Duration>,

    /// The probability with which each allocated word is sampled (a number from 1e-7 to 1). Default: 1e-3, and less
    /// for a program that runs and allocates more than 200 MB a second
    #[arg(short, long, value_name = "RATE", value_parser = running::rate)]
    pub(super) rate: Option<f64>,

    /// The longest wait, in seconds, until the program allocates, and until it can be interrupted:
    /// such as 60 or 0.5, at most 3600. Default: as long as it is watched, and at least 10
    #[arg(long, value_name = "SECONDS", value_parser = running::timeout)]
    timeout: Option<Duration>,

    /// Watch a program with a filter of system calls (seccomp), as `heaptap attach` does
    #[arg(long)]
    pub(super) despite_seccomp: bool,

    /// Look for strings that are there more than once: the snapshots, which may be kept, then have the contents of
    /// strings, up to 256 bytes of each
    #[arg(long)]
    with_strings: bool,

    #[command(flatten)]
    pub(super) types: TypeOptions,
}

impl WatchOptions {
    /// How much of each string is in the snapshots.
    pub(super) fn string_bytes(&self) -> u32 {
        if self.with_strings { 256 } else { 0 }
    }

    /// The longest wait for a program that is watched so long.
    pub(super) fn timeout(&self, span: Duration) -> Duration {
        const LEAST: Duration = Duration::from_secs(10);
        const MOST: Duration = Duration::from_secs(3600);
        self.timeout.unwrap_or(span.clamp(LEAST, MOST))
    }
}
