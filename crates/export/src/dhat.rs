//! The format of valgrind's DHAT, version 2, for its `dh_view.html`.
//!
//! The fields are those of `dhat/dh_main.c` in valgrind 3.19: for each program
//! point its total bytes, blocks and lifetimes, and its bytes at the global
//! maximum and at the end. A trace does not count live blocks: they are taken to
//! have the average size of the blocks of their stack.

use std::io::{self, Write};

use heaptap_report::rows::By;
use heaptap_report::{Counts, Metric, Stacks};
use serde::Serialize;

use crate::json::{self, Sequence};
use crate::{ExportInput, Format, frame_name};

pub(crate) const FORMAT: Format = Format {
    name: "dhat",
    help: "For valgrind's `dh_view.html`",
    is_binary: false,
    takes_sidecar: false,
    by: By::Location,
    write,
};

#[derive(Serialize)]
struct DhatFile<P, F> {
    #[serde(rename = "dhatFileVersion")]
    version: u32,
    mode: &'static str,
    verb: &'static str,
    /// Block lifetimes are known, accesses to blocks (`bkacc`) are not.
    bklt: bool,
    bkacc: bool,
    tu: &'static str,
    #[serde(rename = "Mtu")]
    million_tu: &'static str,
    /// Blocks that live at most this long are short-lived.
    tuth: u64,
    cmd: String,
    pid: u64,
    te: u64,
    tg: u64,
    pps: P,
    /// Frame table.
    ftbl: F,
}

/// A program point. `tb`, `mb`, `gb` and `eb` are bytes in total, at its own
/// maximum, at the global one and at the end; with `k`, blocks.
#[derive(Serialize)]
struct ProgramPoint {
    tb: u64,
    tbk: u64,
    tl: u64,
    mb: u64,
    mbk: u64,
    gb: u64,
    gbk: u64,
    eb: u64,
    ebk: u64,
    /// Indexes into `ftbl`, the innermost frame first.
    fs: Vec<u32>,
}

fn write(input: &ExportInput<'_>, stacks: &Stacks<'_>, out: &mut dyn Write) -> io::Result<()> {
    let frames = || {
        let named = stacks.sites().iter().map(frame_name);
        // The first entry is the root of the tree.
        std::iter::once("[root]".to_owned()).chain(named)
    };
    let points = || stacks.iter().map(|stack| point(input, &stack.sites(), &stack.counts));
    let file = DhatFile {
        version: 2,
        mode: "heaptap",
        verb: "Allocated",
        bklt: true,
        bkacc: false,
        tu: "µs",
        million_tu: "s",
        tuth: 1000,
        cmd: input.program(),
        pid: input.info.pid,
        te: input.aggregate.duration(),
        tg: input.aggregate.peak_time(),
        pps: Sequence(points),
        ftbl: Sequence(frames),
    };
    json::write(out, &file)
}

fn point(input: &ExportInput<'_>, sites: &[u32], counts: &Counts) -> ProgramPoint {
    let bytes = |metric| input.bytes(metric, counts).round() as u64;
    let (total, peak, live) = (bytes(Metric::Allocated), bytes(Metric::Peak), bytes(Metric::Live));
    let blocks = (counts.blocks.round() as u64).max(1);
    let block = (total as f64 / blocks as f64).max(1.0);
    let in_blocks = |bytes: u64| (bytes as f64 / block).ceil() as u64;
    // `lifetime` is the mean over samples; it is taken for that over blocks.
    let lifetime = if counts.died > 0 { counts.lifetime / counts.died as f64 } else { 0.0 };
    ProgramPoint {
        tb: total,
        tbk: blocks,
        tl: (lifetime * blocks as f64).round() as u64,
        mb: peak.max(live),
        mbk: in_blocks(peak.max(live)),
        gb: peak,
        gbk: in_blocks(peak),
        eb: live,
        ebk: in_blocks(live),
        fs: sites.iter().map(|site| site + 1).collect(),
    }
}
