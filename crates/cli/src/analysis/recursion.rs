//! The options `--fold` and `--no-fold`, and the message about what was left out.

use clap::Args;
use heaptap_report::figures::units::count;
use heaptap_report::{Omitted, OmittedFrames};

use crate::io::notices::say;

/// Whether recursion is folded.
#[derive(Args)]
pub(crate) struct Recursion {
    /// Write a repeated cycle of calls once, with the number of its iterations; this is
    /// the default
    #[arg(long, overrides_with = "no_fold")]
    fold: bool,

    /// Write every frame of a recursion
    #[arg(long, overrides_with = "fold")]
    no_fold: bool,
}

impl Recursion {
    pub(crate) fn fold(&self) -> bool {
        !self.no_fold
    }
}

/// Prints what was left out of the stacks of the trace called `name`.
pub(crate) fn say_omitted(name: &str, omitted: &Omitted) {
    let of = |part: &OmittedFrames| {
        let paths = count(omitted.paths, "call path", "call paths");
        let frames = count(part.frames, "frame", "frames");
        format!("{} of {paths}, {frames} left out", part.paths)
    };
    let Omitted { folded, cut, .. } = omitted;
    if folded.paths > 0 {
        say(&format!("{name}: folded recursion in {}; --no-fold keeps them", of(folded)));
    }
    if cut.paths > 0 {
        say(&format!("{name}: cut {}; a higher --frames keeps more", of(cut)));
    }
}
