//! `heaptap man`: manual pages, from the same sources as `--help` and the
//! environment variables in `docs/`.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::PathBuf;

use clap::{Args, CommandFactory, ValueHint};
use clap_mangen::roff::{Roff, bold, roman};
use heaptap_settings::{VARIABLES, Variable};

use crate::Program;
use crate::exit_status::{Failure, VerbResult, Verdict, help_end};
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
    pub(crate) fn run(&self) -> VerbResult {
        fs::create_dir_all(&self.directory)
            .and_then(|()| clap_mangen::generate_to(Program::command(), &self.directory))
            .and_then(|()| self.append_environment("heaptap-run.1"))
            .map_err(|error| {
                let name = escape::path(&self.directory);
                Failure::Trouble(format!("{name}: cannot hold manual pages: {error}"))
            })?;
        Ok(Verdict::Sound)
    }

    /// Appends the section on environment variables to a page.
    fn append_environment(&self, page: &str) -> io::Result<()> {
        let mut page = OpenOptions::new().append(true).open(self.directory.join(page))?;
        environment().to_writer(&mut page)
    }
}

/// The section ENVIRONMENT, from the table of settings.
fn environment() -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["ENVIRONMENT"]);
    for variable in &VARIABLES {
        let Variable { syntax, default, meaning, .. } = variable;
        let names: Vec<_> = variable.names().collect();
        let option = variable.option.map(|option| format!(" Set by `{}`.", option.usage()));
        section.control("TP", []);
        section.text([bold(names.join(", "))]);
        section.text([roman(format!(
            "{meaning}. Value: {syntax}. Default: {default}.{}",
            option.unwrap_or_default()
        ))]);
    }
    section
}
