//! The format of valgrind's DHAT, version 2, for its `dh_view.html`.
//!
//! Fields are those of `dhat/dh_main.c` in valgrind 3.19: of a program point the
//! total bytes, blocks and lifetimes, and the bytes at the global maximum and at
//! the end. A trace has no count of live blocks; they are taken to be as large as
//! the site's blocks are on average.

use std::io::{self, Write};

use heaptap_report::rows::By;
use heaptap_report::{Counts, Metric};
use serde::Serialize;

use super::Exported;
use crate::text::json::{self, Sequence};

#[derive(Serialize)]
struct File<P, F> {
    #[serde(rename = "dhatFileVersion")]
    version: u32,
    mode: &'static str,
    verb: &'static str,
    /// There are lifetimes, but no accesses.
    bklt: bool,
    bkacc: bool,
    tu: &'static str,
    #[serde(rename = "Mtu")]
    million_tu: &'static str,
    /// Blocks that live no longer are short-lived.
    tuth: u64,
    cmd: String,
    pid: u64,
    te: u64,
    tg: u64,
    pps: P,
    ftbl: F,
}

/// A program point.
#[derive(Serialize)]
struct Point {
    tb: u64,
    tbk: u64,
    tl: u64,
    mb: u64,
    mbk: u64,
    gb: u64,
    gbk: u64,
    eb: u64,
    ebk: u64,
    /// Frames, the innermost first.
    fs: Vec<u32>,
}

pub(super) fn write(exported: &Exported<'_>, out: &mut dyn Write) -> io::Result<()> {
    let stacks = exported.stacks(By::Location);
    let frames = || {
        let named = stacks.sites().iter().map(|site| match site.line {
            0 => site.name.clone(),
            line => format!("{} ({}:{line})", site.name, site.file),
        });
        // The first entry is the root of the tree.
        std::iter::once("[root]".to_owned()).chain(named)
    };
    let points = || stacks.iter().map(|stack| point(exported, &stack.sites, &stack.counts));
    let file = File {
        version: 2,
        mode: "heaptap",
        verb: "Allocated",
        bklt: true,
        bkacc: false,
        tu: "µs",
        million_tu: "s",
        tuth: 1000,
        cmd: exported.program(),
        pid: exported.info.pid,
        te: exported.aggregate.duration(),
        tg: exported.aggregate.peak_time(),
        pps: Sequence(points),
        ftbl: Sequence(frames),
    };
    json::write(out, &file)
}

fn point(exported: &Exported<'_>, sites: &[u32], counts: &Counts) -> Point {
    let bytes = |metric| exported.bytes(metric, counts).round() as u64;
    let (total, peak, live) = (bytes(Metric::Allocated), bytes(Metric::Peak), bytes(Metric::Live));
    let blocks = (counts.blocks.round() as u64).max(1);
    let block = (total as f64 / blocks as f64).max(1.0);
    let in_blocks = |bytes: u64| (bytes as f64 / block).ceil() as u64;
    // The mean over samples, for each block.
    let lifetime = if counts.died > 0 { counts.lifetime / counts.died as f64 } else { 0.0 };
    Point {
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
