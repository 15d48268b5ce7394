//! `heaptap man`: manual pages, from the same sources as `--help` and the
//! environment variables in `docs/`.
//!
//! The examples and the table of exit statuses are the end of a verb's help: blocks
//! that begin with a title and a colon. Each becomes a section.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Arg, Args, Command, CommandFactory, ValueHint};
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
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
        self.write_pages().map_err(|error| {
            let name = escape::path(&self.directory);
            Failure::Trouble(format!("{name}: cannot hold manual pages: {error}"))
        })?;
        Ok(Verdict::Sound)
    }

    fn write_pages(&self) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let mut program = Program::command().disable_help_subcommand(true);
        program.build();
        for command in program.get_subcommands().chain([&program]) {
            let source = concat!("heaptap ", env!("CARGO_PKG_VERSION"));
            let page = clap_mangen::Man::new(command.clone()).source(source).manual("heaptap");
            let mut file = File::create(self.directory.join(page.get_filename()))?;
            file.write_all(&page_of(command, &page)?)?;
        }
        Ok(())
    }
}

/// The whole page of a command.
fn page_of(command: &Command, page: &clap_mangen::Man) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    synopsis(command).to_writer(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut text)?;
    }
    let help_end = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    for block in help_end.split("\n\n") {
        section_of_help(block).to_writer(&mut text)?;
    }
    environment(command).to_writer(&mut text)?;
    see_also(command).to_writer(&mut text)?;
    Ok(text)
}

/// The section SYNOPSIS: the options with their values, then the arguments. `--help`,
/// which every verb has, is not in it.
fn synopsis(command: &Command) -> Roff {
    let mut line = vec![bold(command.get_bin_name().unwrap_or_else(|| command.get_name()))];
    let is_shown = |argument: &&Arg| {
        !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
    };
    let (positional, options): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(is_shown).partition(|argument| argument.is_positional());
    for argument in options.into_iter().chain(positional) {
        line.push(roman(if argument.is_required_set() { " " } else { " [" }));
        line.extend(usage(argument));
        line.push(roman(if argument.is_required_set() { "" } else { "]" }));
    }
    if command.has_subcommands() {
        line.extend([roman(" "), italic("VERB"), roman(" "), italic("ARGUMENTS")]);
    }
    let mut section = Roff::new();
    section.control("SH", ["SYNOPSIS"]);
    section.text(line);
    section
}

/// One option or argument in the synopsis.
fn usage(argument: &Arg) -> Vec<Inline> {
    let short = argument.get_short().map(|short| format!("-{short}"));
    let flag = short.or_else(|| argument.get_long().map(|long| format!("--{long}")));
    let mut usage: Vec<Inline> = flag.iter().map(bold).collect();
    if argument.get_action().takes_values() {
        let names = argument.get_value_names().unwrap_or_default();
        usage.extend(flag.iter().map(|_| roman(" ")));
        usage.push(italic(names.join(" ")));
    } else if argument.is_positional() {
        usage.push(italic(argument.get_id().as_str()));
    }
    if argument.is_trailing_var_arg_set() {
        usage.extend([roman(" ["), italic("ARGUMENT"), roman("]...")]);
    } else if argument.get_num_args().is_some_and(|range| range.max_values() > 1) {
        usage.push(roman("..."));
    }
    usage
}

/// A block of the help as a section. Indented lines that start with a number are a
/// table; the others are shown as they are.
fn section_of_help(block: &str) -> Roff {
    let mut section = Roff::new();
    let Some((title, lines)) = block.split_once(":\n") else { return section };
    section.control("SH", [title.to_uppercase().as_str()]);
    if title == "Examples" {
        section.control("nf", []);
        for line in lines.lines() {
            section.text([roman(line.trim())]);
        }
        section.control("fi", []);
        return section;
    }
    for line in lines.lines().map(str::trim) {
        match line.split_once("  ") {
            Some((status, meaning)) if status.bytes().all(|byte| byte.is_ascii_digit()) => {
                section.control("TP", []);
                section.text([bold(status)]);
                section.text([roman(meaning.trim())]);
            }
            _ => {
                section.control("PP", []);
                section.text([roman(line)]);
            }
        }
    }
    section
}

/// Variables that the verbs which print to a terminal use.
const OF_OUTPUT: [(&str, &str); 3] = [
    (
        "COLUMNS",
        "The width of the output. Default: that of the terminal; in a file there is no limit.",
    ),
    ("NO_COLOR", "If it is not empty, there are no colours."),
    ("TMPDIR", "Where input from a pipe is kept that must be read several times. Default: /tmp."),
];

/// The section ENVIRONMENT: for `run` the table of settings, for the other verbs what
/// concerns their output, for the program both.
fn environment(command: &Command) -> Roff {
    let (runs, prints) = match command.get_name() {
        "run" => (true, false),
        "man" | "completions" | "snapshot" | "rotate" | "rate" => (false, false),
        _ => (command.has_subcommands(), true),
    };
    let mut section = Roff::new();
    if runs || prints {
        section.control("SH", ["ENVIRONMENT"]);
    }
    let mut entry = |names: &str, meaning: &str| {
        section.control("TP", []);
        section.text([bold(names)]);
        section.text([roman(meaning)]);
    };
    for variable in VARIABLES.iter().filter(|_| runs) {
        let Variable { syntax, default, meaning, .. } = variable;
        let names: Vec<_> = variable.names().collect();
        let option = match variable.option {
            Some(option) if option.turns_off.is_some() => {
                format!(" Set, unless with `{}`.", option.usage())
            }
            Some(option) => format!(" Set by `{}`.", option.usage()),
            None => String::new(),
        };
        entry(
            &names.join(", "),
            &format!("{meaning}. Value: {syntax}. Default: {default}.{option}"),
        );
    }
    OF_OUTPUT.iter().filter(|_| prints).for_each(|(name, meaning)| entry(name, meaning));
    section
}

/// The section SEE ALSO; the page of the program lists those of the verbs already.
fn see_also(command: &Command) -> Roff {
    let mut section = Roff::new();
    if !command.has_subcommands() {
        section.control("SH", ["SEE ALSO"]);
        section.text([bold("heaptap"), roman("(1)")]);
    }
    section
}
