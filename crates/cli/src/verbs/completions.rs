//! `heaptap completions`: completion scripts, from the same source as `--help`.

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use crate::Program;
use crate::exit_status::{VerbResult, Verdict, help_end};
use crate::io::output::print;

/// Print the completion script for a shell
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap completions bash > ~/.local/share/bash-completion/completions/heaptap
  heaptap completions fish > ~/.config/fish/completions/heaptap.fish"
))]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> VerbResult {
        let mut script = Vec::new();
        generate(self.shell, &mut Program::command(), "heaptap", &mut script);
        print(&script)?;
        Ok(Verdict::Sound)
    }
}
