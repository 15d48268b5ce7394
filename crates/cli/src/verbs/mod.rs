//! The verbs, one file or folder each.
//!
//! A verb is a `clap` struct, which is its help, and a `run` that returns an
//! [`VerbResult`]. A further verb is one more file,
//! declared here, and one more line in the list below.

mod anonymise;
mod attach;
mod check;
mod completions;
mod diff;
mod doctor;
mod dump;
mod export;
mod flush;
mod heap;
mod heap_diff;
mod hot;
mod info;
mod leaks;
mod man;
mod mark;
mod next_part;
mod probes;
mod ps;
mod recode;
mod recorder;
mod report;
mod run;
mod serve;
mod snapshot;
mod start;
mod stop;
mod thin;
mod top;

use clap::Subcommand;

use crate::exit_status::VerbResult;

/// Makes the enum of verbs from a list, in the order in which the help shows them.
macro_rules! verbs {
    ($($(#[$attribute:meta])* $module:ident::$verb:ident,)*) => {
        /// What the program can do.
        #[derive(Subcommand)]
        pub(crate) enum Verb {
            $($(#[$attribute])* $verb($module::$verb),)*
        }

        impl Verb {
            pub(crate) fn run(&self) -> VerbResult {
                match self {
                    $(Verb::$verb(verb) => verb.run(),)*
                }
            }
        }
    };
}

verbs! {
    run::Run,
    attach::Attach,
    doctor::Doctor,
    top::Top,
    ps::Ps,
    start::Start,
    stop::Stop,
    mark::Mark,
    flush::Flush,
    snapshot::Snapshot,
    next_part::Rotate,
    next_part::Rate,
    next_part::Budget,
    recorder::Recorder,
    heap::Heap,
    heap_diff::HeapDiff,
    report::Report,
    probes::Probes,
    leaks::Leaks,
    hot::Hot,
    diff::Diff,
    export::Export,
    serve::Serve,
    info::Info,
    dump::Dump,
    check::Check,
    recode::Recode,
    thin::Thin,
    #[command(alias = "anonymize")]
    anonymise::Anonymise,
    man::Man,
    completions::Completions,
}
