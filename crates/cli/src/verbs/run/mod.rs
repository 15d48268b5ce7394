//! `heaptap run`: runs a program and traces it, unmodified.
//!
//! The library is loaded into the program through the environment, and attaches
//! itself there. The program keeps its input, output, signals and exit status; we
//! only wait for it, and report at its end what was traced.

mod closing;
mod journal;
mod next_steps;
mod programs;
mod signals;
mod start_error;
mod trace_name;
mod untraced;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use clap::{Args, ValueHint};
use heaptap_settings::{
    self as settings, Rotation, Syntax, Trigger, VARIABLES, Variable, file_name,
};

use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::notices::say;
use crate::io::{executable, library};
use crate::text::escape;

/// Run a program and trace its allocations
#[derive(Args)]
#[command(long_about = long_about(), after_help = "Examples:
  heaptap run -- ./server --port 80
  heaptap run -o trace.ctf -r 1e-4 -- ocamlopt.opt -c large.ml
  heaptap run -- dune exec ./main.exe
  heaptap run --only test.exe -- make test
  heaptap run --follow -o 'traces/%e-%p.ctf' -- make
  heaptap run --snapshot exit --snapshot every:10m -- ./server
  heaptap run --listen -- ./server
  heaptap run --budget 1% -o trace.ctf -- ./server
  heaptap run --rotate 100MB,24h --keep 20 -o traces/server.ctf -- ./server
  heaptap run --recorder 30s -o traces/server.ctf -- ./server

Exit status:
  0    the program's own status, whatever it is
  2    also: a wrong call, or a file that heaptap needs cannot be found or made; or the
       program ended with 0, but was not traced, or its trace could not be written to
       its end (--keep-status: 0 then)
  126  also: the program was found, but cannot be executed
  127  also: the program was not found
  If a signal ends the program, the same signal ends heaptap.")]
pub(crate) struct Run {
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(help = help_of(&settings::FILE), default_value = default_of(&settings::FILE))]
    output: OsString,

    #[arg(short, long, value_name = "RATE", value_parser = rate)]
    #[arg(help = format!("{}. Default: {}", help_of(&settings::RATE), default_of(&settings::RATE)))]
    rate: Option<f64>,

    #[arg(long, value_name = "PERCENT", value_parser = budget, help = help_of(&settings::BUDGET))]
    budget: Option<String>,

    #[arg(long, value_name = "WHEN", value_parser = rotation, help = help_of(&settings::ROTATE))]
    rotate: Option<String>,

    #[arg(long, value_name = "N", value_parser = keep, requires = "rotate")]
    #[arg(help = format!("{}. Default: {}", help_of(&settings::KEEP), settings::KEEP.default))]
    keep: Option<u64>,

    #[arg(long, value_name = "TIME", value_parser = recorder, conflicts_with_all = ["rotate", "keep", "listen"])]
    #[arg(help = help_of(&settings::RECORDER))]
    recorder: Option<String>,

    #[arg(long, value_name = "N", value_parser = frames)]
    #[arg(help = format!("{}. {FRAMES_TIP}", help_of(&settings::FRAMES)))]
    frames: Option<u64>,

    #[arg(long, help = help_of(&settings::FOLLOW))]
    follow: bool,

    #[arg(long, value_name = "NAME", value_parser = program_name, help = help_of(&settings::ONLY))]
    only: Vec<OsString>,

    #[arg(long, value_name = "N", value_parser = seed, help = help_of(&settings::SEED))]
    seed: Option<u64>,

    #[arg(long, value_name = "WHEN", value_parser = triggers, help = help_of(&settings::SNAPSHOT))]
    snapshot: Vec<String>,

    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(help = format!("{}. Default: {}", help_of(&settings::SNAPSHOT_FILE), settings::SNAPSHOT_FILE.default))]
    snapshot_file: Option<OsString>,

    #[arg(long, help = turns_off(&settings::LISTEN))]
    no_listen: bool,

    /// Start the program untraced and idle: nothing in it is changed until `heaptap start` or `heaptap
    /// snapshot` asks for it
    #[arg(long, conflicts_with_all = ["no_listen", "output", "quiet"])]
    listen: bool,

    #[arg(long, help = help_of(&settings::LISTEN_FORKS), conflicts_with = "no_listen")]
    listen_forks: bool,

    #[arg(long, help = turns_off(&settings::TIMELINE))]
    no_timeline: bool,

    #[arg(long, value_name = "MIB", value_parser = probes_limit)]
    #[arg(help = format!("{}. Default: {}", help_of(&settings::PROBES_LIMIT), settings::PROBES_LIMIT.default))]
    probes_limit: Option<u64>,

    /// End with the program's own status even if it was not traced: for supervisors, which
    /// would start it again
    #[arg(long)]
    keep_status: bool,

    /// Print nothing at the end unless something is missing
    #[arg(short, long)]
    quiet: bool,

    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

const FRAMES_TIP: &str = "With `-r 1 --frames 1` each allocation point has its exact number of words, \
                          and deep stacks cost nothing";

fn long_about() -> String {
    let supported = settings::supported_runtimes();
    format!(
        "Run a program and trace its allocations\n\n\
         The program runs as it is; nothing is compiled or linked again. It can be any \
         dynamically linked program of {supported}, stripped or not, or a \
         script that starts one. Other programs run untraced, with a message.\n\n\
         Programs that only start another are looked through: `dune exec`, `opam exec`, \
         `ocamlfind ocamlopt`, and all that are not written in OCaml, such as shells, env, \
         timeout, nice and make. The program that they start is traced, and what they run \
         before, such as compilers, leaves no files. --only NAME chooses otherwise.\n\n\
         At the end a line on standard error gives the file, the samples, an estimate of the \
         words that the program allocated, and what was lost; if several processes were traced, \
         as with --follow, or because the program forks, it gives their totals, which trace is \
         of which program, and their directory, for `heaptap report DIR`. On a terminal, \
         commands to try next follow."
    )
}

/// The help of the option that sets a variable.
fn help_of(variable: &Variable) -> String {
    match variable.syntax {
        Syntax::File | Syntax::Word(_) | Syntax::Flag | Syntax::Names => {
            variable.meaning.to_owned()
        }
        Syntax::Number { .. }
        | Syntax::Integer { .. }
        | Syntax::Triggers
        | Syntax::Rotation
        | Syntax::Budget
        | Syntax::Recorder => {
            format!("{} ({})", variable.meaning, variable.syntax)
        }
    }
}

/// The help of the option that unsets a variable.
fn turns_off(variable: &Variable) -> &'static str {
    variable.option.and_then(|option| option.turns_off).unwrap_or_default()
}

fn default_of(variable: &Variable) -> &'static str {
    variable.option.and_then(|option| option.default).unwrap_or_default()
}

fn rate(text: &str) -> Result<f64, String> {
    settings::RATE.number(text).map_err(|invalid| format!("not {}", invalid.expected))
}

fn frames(text: &str) -> Result<u64, String> {
    settings::FRAMES.integer(text).map_err(|invalid| format!("not {}", invalid.expected))
}

fn keep(text: &str) -> Result<u64, String> {
    settings::KEEP.integer(text).map_err(|invalid| format!("not {}", invalid.expected))
}

/// What the trace may cost, as it is typed.
fn budget(text: &str) -> Result<String, String> {
    let parsed = settings::budget(text);
    parsed.map(|_| text.to_owned()).ok_or_else(|| format!("not {}", settings::BUDGET.syntax))
}

/// When the trace goes on in another file, as it is typed.
fn rotation(text: &str) -> Result<String, String> {
    let parsed = Rotation::parse(text);
    parsed.map(|_| text.to_owned()).ok_or_else(|| format!("not {}", settings::ROTATE.syntax))
}

/// What is kept in memory, as it is typed.
fn recorder(text: &str) -> Result<String, String> {
    let parsed = settings::Recorder::parse(text);
    parsed.map(|_| text.to_owned()).ok_or_else(|| format!("not {}", settings::RECORDER.syntax))
}

fn probes_limit(text: &str) -> Result<u64, String> {
    settings::PROBES_LIMIT.integer(text).map_err(|invalid| format!("not {}", invalid.expected))
}

/// A list of triggers, as it is typed.
fn triggers(text: &str) -> Result<String, String> {
    let parsed = Trigger::parse_list(text);
    parsed.map(|_| text.to_owned()).ok_or_else(|| format!("not {}", settings::SNAPSHOT.syntax))
}

/// A name of a program. A path is made absolute: the program may be started elsewhere.
fn program_name(text: &str) -> Result<OsString, String> {
    if text.is_empty() || text.contains(',') {
        return Err("not the name of a program: give each by its own --only".into());
    }
    if !text.contains('/') {
        return Ok(text.into());
    }
    let path = std::path::absolute(text).map_err(|error| error.to_string())?;
    Ok(path.into_os_string())
}

fn seed(text: &str) -> Result<u64, String> {
    match settings::SEED.integer(text) {
        // A seed is given to repeat a run.
        Ok(0) => Err("0 stands for a new seed in each run".into()),
        Ok(seed) => Ok(seed),
        Err(invalid) => Err(format!("not {}", invalid.expected)),
    }
}

impl Run {
    pub(crate) fn run(&self) -> VerbResult {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(Failure::Trouble("no program to run".into()));
        };
        let shown = escape::path(program.as_ref()).to_string();
        let files = self.files()?;
        self.check_environment()?;
        let is_traced = !self.listen;
        let library = library::find()?;
        let refusal = executable::why_not(program);
        let journal = journal::JournalFile::new()?;
        let mut command = Command::new(program);
        command.args(arguments);
        if let Some(why) = &refusal {
            let lacks = if is_traced { "is not traced" } else { "takes no commands" };
            say(&format!("{shown} {lacks}: {why}"));
        } else {
            self.request_trace(&mut command, &files, &library, journal.path().as_os_str());
        }
        let signals = signals::SignalForwarder::begin()
            .map_err(|error| Failure::Trouble(signals::not_begun(&error)))?;
        let mut child =
            command.spawn().map_err(|error| start_error::not_started(program, &error))?;
        signals.forward_to(child.id());
        let status = child
            .wait()
            .map_err(|error| Failure::Trouble(format!("{shown} was lost sight of: {error}")))?;
        signals.child_ended();
        let said = journal.read();
        if refusal.is_none() && is_traced {
            let run = closing::EndedRun {
                program: &shown,
                only: &self.only,
                rate: self.first_rate(),
                is_series: self.is_series(),
                budget: self.share(),
                is_recorded: self.is_recorded(),
                is_killed: status.signal() == Some(libc::SIGKILL),
            };
            run.print(&said, self.quiet);
        }
        drop(journal);
        let is_complete = refusal.is_none() && (said.is_complete() || !is_traced);
        end_like(status, self.keep_status || is_complete)
    }

    /// The rate of a trace that has one. The library knows it unless a budget changes it.
    fn first_rate(&self) -> f64 {
        let default = || settings::RATE.number(default_of(&settings::RATE)).unwrap_or(1e-5);
        self.rate.unwrap_or_else(default)
    }

    /// The rate for the program: with a budget only if one is given, since it is then the highest.
    fn rate_for_program(&self) -> Option<OsString> {
        let rate = if self.share().is_some() { self.rate } else { Some(self.first_rate()) };
        rate.map(|rate| rate.to_string().into())
    }

    /// What the trace may cost.
    fn share(&self) -> Option<f64> {
        match &self.budget {
            Some(budget) => settings::budget(budget),
            None => settings::BUDGET.find_budget(|name| std::env::var_os(name)).ok().flatten(),
        }
    }

    /// Whether the program goes on in further files.
    fn is_series(&self) -> bool {
        let rotation = settings::ROTATE.find_rotation(|name| std::env::var_os(name));
        self.rotate.is_some() || rotation.is_ok_and(|rotation| rotation.is_some())
    }

    /// Whether the trace is kept in memory.
    fn is_recorded(&self) -> bool {
        let recorder = settings::RECORDER.find_recorder(|name| std::env::var_os(name));
        self.recorder.is_some() || recorder.is_ok_and(|recorder| recorder.is_some())
    }

    /// The names of the files that the program is to write.
    fn files(&self) -> Result<Files, Failure> {
        let trace = trace_name::resolve("-o", &self.output)?;
        let resolve = |file: &OsString| trace_name::resolve("--snapshot-file", file);
        let snapshots = self.snapshot_file.as_ref().map(resolve).transpose()?;
        let mut named = std::iter::once(&trace).chain(&snapshots);
        if self.follow && named.any(|file| !file_name::has_pid(file)) {
            let message = "--follow needs a file for each process: put %p into its name".into();
            return Err(Failure::Trouble(message));
        }
        Ok(Files { trace, snapshots })
    }

    /// Refuses a value in the environment that the library would refuse in the program.
    /// Variables that this call sets or removes do not matter.
    fn check_environment(&self) -> Result<(), Failure> {
        let inherited = VARIABLES.iter().filter(|variable| match variable.option {
            Some(option) => match option.long {
                "frames" => self.frames.is_none(),
                "budget" => self.budget.is_none(),
                "rotate" => self.rotate.is_none(),
                "keep" => self.keep.is_none(),
                "recorder" => self.recorder.is_none(),
                "only" => self.only.is_empty(),
                "seed" => self.seed.is_none(),
                "snapshot" => self.snapshot.is_empty(),
                _ => false,
            },
            // What an outer wrapper says of its own program is removed.
            None => variable.name != settings::TARGET.name,
        });
        for variable in inherited {
            variable
                .check(|name| std::env::var_os(name))
                .map_err(|invalid| Failure::Trouble(format!("{invalid}: correct or unset it")))?;
        }
        Ok(())
    }

    fn request_trace(
        &self,
        command: &mut Command,
        files: &Files,
        library: &OsStr,
        journal: &OsStr,
    ) {
        let mut preload = library.to_owned();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        command.env("LD_PRELOAD", preload);
        // Set for an outer program, these would be taken for what was asked for here.
        for outer in [
            settings::FOLLOW,
            settings::TARGET,
            settings::LISTEN,
            settings::LISTEN_FORKS,
            settings::TIMELINE,
        ] {
            command.env_remove(outer.name);
        }
        for outer in settings::RATE.names() {
            command.env_remove(outer);
        }
        let flag = |is_set: bool| is_set.then(|| OsString::from("1"));
        let number = |number: Option<u64>| number.map(|number| number.to_string().into());
        let only = (!self.only.is_empty()).then(|| self.only.join(OsStr::new(",")));
        let snapshot = (!self.snapshot.is_empty()).then(|| self.snapshot.join(",").into());
        if self.listen {
            for asks in settings::FILE.names() {
                command.env_remove(asks);
            }
        }
        let traced = |value: &OsStr| (!self.listen).then(|| value.to_owned());
        let values = [
            (settings::FILE, traced(&files.trace)),
            (settings::RATE, self.rate_for_program()),
            (settings::BUDGET, self.budget.clone().map(OsString::from)),
            (settings::ROTATE, self.rotate.clone().map(OsString::from)),
            (settings::KEEP, number(self.keep)),
            (settings::RECORDER, self.recorder.clone().map(OsString::from)),
            (settings::JOURNAL, traced(journal)),
            (settings::FOLLOW, flag(self.follow)),
            (settings::ONLY, only),
            (settings::FRAMES, number(self.frames)),
            (settings::SEED, number(self.seed)),
            (settings::LISTEN, flag(!self.no_listen)),
            (settings::LISTEN_FORKS, flag(self.listen_forks)),
            (settings::TIMELINE, flag(!self.no_timeline)),
            (settings::PROBES_LIMIT, number(self.probes_limit)),
            (settings::SNAPSHOT, snapshot),
            (settings::SNAPSHOT_FILE, files.snapshots.clone()),
        ];
        for (variable, value) in values {
            value.map(|value| command.env(variable.name, value));
        }
    }
}

/// Absolute patterns for the environment of the program.
struct Files {
    trace: OsString,
    /// `None`: beside the trace.
    snapshots: Option<OsString>,
}

/// The exit status if the program succeeded, but was not traced to its end.
const NOT_TRACED: i32 = 2;

/// Ends this process as the program ended. `traced`: nothing that was asked for is missing.
fn end_like(status: ExitStatus, traced: bool) -> VerbResult {
    if let Some(signal) = status.signal() {
        signals::end_by(signal);
    }
    match status.code() {
        Some(0) if traced => Ok(Verdict::Sound),
        Some(0) => std::process::exit(NOT_TRACED),
        // Nothing is left to close or to write.
        Some(code) => std::process::exit(code),
        None => std::process::exit(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_those_of_the_table() {
        let command = Run::augment_args(clap::Command::new("run"));
        let options = VARIABLES.iter().filter_map(|variable| variable.option);
        for option in options.clone() {
            let argument = command.get_arguments().find(|a| a.get_long() == Some(option.long));
            let argument = argument.unwrap_or_else(|| panic!("no --{}", option.long));
            assert_eq!(argument.get_short(), option.short, "--{}", option.long);
            let takes_value = argument.get_action().takes_values();
            assert_eq!(takes_value, option.value_name.is_some(), "--{}", option.long);
            let value_name = argument.get_value_names().and_then(<[_]>::first);
            assert!(
                !takes_value || value_name.map(clap::builder::Str::as_str) == option.value_name
            );
            let default = argument.get_default_values().first();
            let default = default.filter(|_| takes_value).and_then(|value| value.to_str());
            if option.long == "rate" {
                // Under a budget there is another one, so that it matters whether a rate was given.
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.ends_with(&format!("Default: {}", default_of(&settings::RATE))));
                continue;
            }
            assert_eq!(default, option.default, "--{}", option.long);
        }
        let longs = command.get_arguments().filter_map(clap::Arg::get_long);
        // These are about this process, or are how a variable is when another is not set.
        let longs = longs.filter(|long| !["keep-status", "quiet", "listen"].contains(long));
        assert_eq!(longs.count(), options.count());
    }

    #[test]
    fn values_out_of_range_are_refused() {
        assert_eq!(rate("0.5"), Ok(0.5));
        assert_eq!(rate("2"), Err("not a number from 1e-7 to 1".into()));
        assert_eq!(frames("262144"), Ok(262_144));
        assert_eq!(frames("0"), Err("not a whole number from 1 to 262144".into()));
        assert_eq!(seed("7"), Ok(7));
        assert!(seed("0").is_err() && seed("x").is_err());
        assert_eq!(triggers("exit,major:3"), Ok("exit,major:3".into()));
        assert_eq!(program_name("main.exe"), Ok("main.exe".into()));
        assert_eq!(program_name("/b/main"), Ok("/b/main".into()));
        assert!(std::path::Path::new(&program_name("b/main").unwrap()).is_absolute());
        assert!(program_name("").is_err() && program_name("a,b").is_err());
        assert!(triggers("often").unwrap_err().contains("`every:TIME`"));
    }
}
