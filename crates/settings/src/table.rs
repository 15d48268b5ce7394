//! The table: every environment variable that heaptap reads.

use crate::value::Syntax;
use crate::variable::{Inheritance, Reader, RunOption, Variable};

/// The lowest sampling rate.
pub const MIN_RATE: f64 = 1e-7;
/// The highest sampling rate: every word.
pub const MAX_RATE: f64 = 1.0;
/// The deepest backtrace that can be asked for, and the default.
pub const MAX_FRAMES: u64 = 262_144;

/// Asks for a trace and names its file.
pub const FILE: Variable = Variable {
    name: "HEAPTAP",
    alias: Some("MEMTRACE"),
    syntax: Syntax::File,
    default: "none, and the program is not traced",
    meaning: "The trace file, in whose name `%p` stands for the process id, `%e` for the program's name, \
              `%t` for the time in seconds and `%%` for a percent sign",
    reader: Reader::Library,
    children: Inheritance::WithFollow,
    option: Some(RunOption {
        short: Some('o'),
        default: Some("%e-%p.ctf"),
        ..RunOption::with_value("output", "FILE")
    }),
};

/// The sampling rate.
pub const RATE: Variable = Variable {
    name: "HEAPTAP_RATE",
    alias: Some("MEMTRACE_RATE"),
    syntax: Syntax::Number { min: MIN_RATE, max: MAX_RATE },
    default: "1e-5",
    meaning: "The probability with which each allocated word is sampled",
    reader: Reader::Library,
    children: Inheritance::WithFollow,
    option: Some(RunOption {
        short: Some('r'),
        default: Some("1e-5"),
        ..RunOption::with_value("rate", "RATE")
    }),
};

/// What the trace may cost.
pub const BUDGET: Variable = Variable {
    name: "HEAPTAP_BUDGET",
    alias: None,
    syntax: Syntax::Budget,
    default: "the rate stays as it is",
    meaning: "Change the rate as the program changes, so that tracing costs no more than this share of its processor \
              time: the rate is then the highest one, by default 1e-2",
    reader: Reader::Library,
    children: Inheritance::WithFollow,
    option: Some(RunOption::with_value("budget", "PERCENT")),
};

/// When the trace goes on in another file.
pub const ROTATE: Variable = Variable {
    name: "HEAPTAP_ROTATE",
    alias: None,
    syntax: Syntax::Rotation,
    default: "the trace is one file",
    meaning: "Go on in another file before the trace has this size, or after this time, or only when asked by \
              `heaptap rotate` or `heaptap rate`: all of them are read as one trace, and have a number in their names",
    reader: Reader::Library,
    children: Inheritance::WithFollow,
    option: Some(RunOption::with_value("rotate", "WHEN")),
};

/// The files that are kept, unless another number is set.
pub const DEFAULT_KEEP: u64 = 20;

/// How many files are kept.
pub const KEEP: Variable = Variable {
    name: "HEAPTAP_KEEP",
    alias: None,
    syntax: Syntax::Integer { min: 2, max: 1_000_000 },
    default: "20",
    meaning: "The most files of a trace that goes on in others; the oldest are removed, those of earlier runs too",
    reader: Reader::Library,
    children: Inheritance::WithFollow,
    option: Some(RunOption::with_value("keep", "N")),
};

/// What is kept in memory instead of being written.
pub const RECORDER: Variable = Variable {
    name: "HEAPTAP_RECORDER",
    alias: None,
    syntax: Syntax::Recorder,
    default: "the trace is written all the time",
    meaning: "Keep the last of the trace in memory, and write it when `heaptap recorder` asks, when memory runs \
              short, when an uncaught exception or a signal ends the program, and at `exit` if that is added",
    reader: Reader::Library,
    children: Inheritance::WithFollow,
    option: Some(RunOption::with_value("recorder", "TIME")),
};

/// The most frames of a backtrace.
pub const FRAMES: Variable = Variable {
    name: "HEAPTAP_FRAMES",
    alias: None,
    syntax: Syntax::Integer { min: 1, max: MAX_FRAMES },
    default: "262144",
    meaning: "The most frames in a backtrace, of which the innermost are kept",
    reader: Reader::Library,
    children: Inheritance::WithFollow,
    option: Some(RunOption::with_value("frames", "N")),
};

/// The seed of the sampler. 0 is the default.
pub const SEED: Variable = Variable {
    name: "HEAPTAP_SEED",
    alias: None,
    syntax: Syntax::Integer { min: 0, max: u64::MAX },
    default: "a new seed in each run",
    meaning: "The seed of the sampler: with the same seed, the same program gives the same samples",
    reader: Reader::Library,
    children: Inheritance::WithFollow,
    option: Some(RunOption::with_value("seed", "N")),
};

/// Whether children are traced too.
pub const FOLLOW: Variable = Variable {
    name: "HEAPTAP_FOLLOW",
    alias: None,
    syntax: Syntax::Flag,
    default: "children are not traced",
    meaning: "Trace the program's children too, each into its own file, whose name needs `%p`",
    reader: Reader::Attached,
    children: Inheritance::Always,
    option: Some(RunOption::flag("follow")),
};

/// Which programs are traced.
pub const ONLY: Variable = Variable {
    name: "HEAPTAP_ONLY",
    alias: None,
    syntax: Syntax::Names,
    default: "the first OCaml program that is no wrapper, such as `dune exec`",
    meaning: "Trace only programs of these names (with or without `.exe`) or paths, wherever the command starts them",
    reader: Reader::Attached,
    children: Inheritance::WithFollow,
    option: Some(RunOption::with_value("only", "NAME")),
};

/// When heap snapshots are taken.
pub const SNAPSHOT: Variable = Variable {
    name: "HEAPTAP_SNAPSHOT",
    alias: None,
    syntax: Syntax::Triggers,
    default: "none are taken by themselves",
    meaning: "When to take snapshots of the heap, besides those that `heaptap snapshot` asks for",
    reader: Reader::Library,
    children: Inheritance::WithFollow,
    option: Some(RunOption::with_value("snapshot", "WHEN")),
};

/// The names of heap snapshots that are taken by themselves.
pub const SNAPSHOT_FILE: Variable = Variable {
    name: "HEAPTAP_SNAPSHOT_FILE",
    alias: None,
    syntax: Syntax::File,
    default: "`%e-%p-%n.heap` beside the trace",
    meaning: "The files of these snapshots, in whose names `%n` stands for the number of the snapshot, \
              from 1, and `%p`, `%e`, `%t` and `%%` for the same as in the trace's",
    reader: Reader::Library,
    children: Inheritance::WithFollow,
    option: Some(RunOption::with_value("snapshot-file", "FILE")),
};

/// Whether the process takes commands.
pub const LISTEN: Variable = Variable {
    name: "HEAPTAP_LISTEN",
    alias: None,
    syntax: Syntax::Flag,
    default: "the program takes no commands",
    meaning: "Take commands on a socket, such as those of `heaptap snapshot`, with or without a trace",
    reader: Reader::Library,
    children: Inheritance::WithFollow,
    option: Some(RunOption::turning_off(
        "no-listen",
        "Take no commands: `heaptap snapshot` cannot reach the program",
    )),
};

/// Whether forked children take commands.
pub const LISTEN_FORKS: Variable = Variable {
    name: "HEAPTAP_LISTEN_FORKS",
    alias: None,
    syntax: Syntax::Flag,
    default: "only the process itself takes commands",
    meaning: "Take commands in forked children too, each on a socket of its own",
    reader: Reader::Attached,
    children: Inheritance::WithFollow,
    option: Some(RunOption::flag("listen-forks")),
};

/// Whether the time line is recorded.
pub const TIMELINE: Variable = Variable {
    name: "HEAPTAP_TIMELINE",
    alias: None,
    syntax: Syntax::Flag,
    default: "only what the program's own probes say is recorded",
    meaning: "Record collections, the heap's size and the process's memory over time, in a file beside the \
              trace whose name ends in `.probes`",
    reader: Reader::Library,
    children: Inheritance::WithFollow,
    option: Some(RunOption::turning_off(
        "no-timeline",
        "Record no time line: there is a file `.probes` only if the program has probes",
    )),
};

/// The most MiB of a file of probes, unless another limit is set.
pub const DEFAULT_PROBES_LIMIT: u64 = 16;

/// How large the file of probes may become.
pub const PROBES_LIMIT: Variable = Variable {
    name: "HEAPTAP_PROBES_LIMIT",
    alias: None,
    syntax: Syntax::Integer { min: 4, max: 65_536 },
    default: "16",
    meaning: "The most MiB of the file `.probes`, which keeps fewer rows of what is long ago to stay \
              below it",
    reader: Reader::Library,
    children: Inheritance::WithFollow,
    option: Some(RunOption::with_value("probes-limit", "MIB")),
};

/// Where `heaptap run` reads what was traced.
pub const JOURNAL: Variable = Variable {
    name: "HEAPTAP_JOURNAL",
    alias: None,
    syntax: Syntax::File,
    default: "none",
    meaning: "An existing file to which the library appends what it traced, as `heaptap run` asks it to",
    reader: Reader::Attached,
    children: Inheritance::WithFollow,
    option: None,
};

/// The process in which a wrapper starts its program.
pub const TARGET: Variable = Variable {
    name: "HEAPTAP_TARGET",
    alias: None,
    syntax: Syntax::Integer { min: 1, max: u32::MAX as u64 },
    default: "any process",
    meaning: "The one process that is traced, which the library sets in a wrapper such as `dune exec`, so that \
              the compilers it runs are not",
    reader: Reader::Attached,
    children: Inheritance::WithFollow,
    option: None,
};

/// Which unwinder walks the stacks.
pub const UNWINDER: Variable = Variable {
    name: "HEAPTAP_UNWINDER",
    alias: None,
    syntax: Syntax::Word("runtime"),
    default: "heaptap's own",
    meaning: "Walk stacks with the runtime's own unwinder, which is slower, to check heaptap's against it",
    reader: Reader::Attached,
    children: Inheritance::Always,
    option: None,
};

/// Whether snapshots are compared with what the runtime's own collector keeps.
pub const TEST_VERIFY: Variable = Variable {
    name: "HEAPTAP_TEST_VERIFY",
    alias: None,
    syntax: Syntax::Flag,
    default: "the copy of the process ends when it has written the heap",
    meaning: "Have the copy of a process that writes a heap snapshot collect everything dead afterwards, which runs \
              finalisers of C code, and record what the runtime keeps (`info --json`), to check heaptap's walk \
              against it",
    reader: Reader::Attached,
    children: Inheritance::Always,
    option: None,
};

/// Where the library is.
pub const LIBRARY: Variable = Variable {
    name: "HEAPTAP_LIBRARY",
    alias: None,
    syntax: Syntax::File,
    default: "beside `heaptap`, or in the `lib` directory of the installation",
    meaning: "The `libheaptap.so` that `heaptap run` loads into the program",
    reader: Reader::Tool,
    children: Inheritance::Always,
    option: None,
};

/// All of them, in the order in which they are documented.
pub const VARIABLES: [Variable; 21] = [
    FILE,
    RATE,
    BUDGET,
    ROTATE,
    KEEP,
    RECORDER,
    FRAMES,
    SEED,
    FOLLOW,
    ONLY,
    SNAPSHOT,
    SNAPSHOT_FILE,
    LISTEN,
    LISTEN_FORKS,
    TIMELINE,
    PROBES_LIMIT,
    JOURNAL,
    TARGET,
    UNWINDER,
    TEST_VERIFY,
    LIBRARY,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_variables_share_a_name_or_an_option() {
        let names: Vec<_> = VARIABLES.iter().flat_map(Variable::names).collect();
        let options: Vec<_> = VARIABLES.iter().filter_map(|v| Some(v.option?.long)).collect();
        for words in [names, options] {
            let distinct: std::collections::BTreeSet<_> = words.iter().collect();
            assert_eq!(distinct.len(), words.len(), "{words:?}");
        }
    }

    #[test]
    fn a_default_that_is_a_value_is_accepted() {
        assert_eq!(RATE.number(RATE.default), Ok(1e-5));
        assert_eq!(RATE.option.unwrap().default, Some(RATE.default));
        assert_eq!(FRAMES.integer(FRAMES.default), Ok(MAX_FRAMES));
        assert_eq!(KEEP.integer(KEEP.default), Ok(DEFAULT_KEEP));
        assert_eq!(PROBES_LIMIT.integer(PROBES_LIMIT.default), Ok(DEFAULT_PROBES_LIMIT));
    }

    #[test]
    fn a_meaning_is_one_sentence() {
        for variable in &VARIABLES {
            let meaning = variable.meaning;
            assert!(meaning.starts_with(char::is_uppercase), "{meaning}");
            assert!(!meaning.ends_with('.') && !meaning.contains(". "), "{meaning}");
        }
    }
}
