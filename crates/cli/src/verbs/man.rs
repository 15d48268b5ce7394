//! `heaptap man`: manual pages, from the same source as `--help`.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory, ValueHint};

use crate::Program;
use crate::exit_status::{Ending, Failure, Verdict, help_end};
use crate::text::escape;

/// Write the manual pages into a directory
#[derive(Args)]
#[command(after_help = help_end!("  heaptap man ~/.local/share/man/man1 && man heaptap-info"))]
pub(crate) struct Man {
    /// The directory, which is made if it is not there
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: PathBuf,
}

impl Man {
    pub(crate) fn run(&self) -> Ending {
        fs::create_dir_all(&self.directory)
            .and_then(|()| clap_mangen::generate_to(Program::command(), &self.directory))
            .map_err(|error| {
                let name = escape::path(&self.directory);
                Failure::Trouble(format!("{name}: cannot hold manual pages: {error}"))
            })?;
        Ok(Verdict::Sound)
    }
}
