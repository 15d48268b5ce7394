//! Writes a real trace over and over, to measure the tools with stacks as they
//! are and a file of any size:
//!
//! ```text
//! cargo run --release -p heaptap-cli --example repeated_trace -- IN OUT MEBIBYTES [keep]
//! /usr/bin/time -v heaptap report OUT
//! ```
//!
//! What is alive at the end of a pass is collected before the next one, unless
//! `keep` is said: then the heap grows with the file.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::BufWriter;

use heaptap_trace::EventSource as _;
use heaptap_trace::{
    Code, Encoder, EventKind, Format, Locate, LocationList, LocationTable, Mode, Reader,
};

/// Locations as the source has them.
struct Known<'a>(&'a LocationTable);

impl Locate for Known<'_> {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        for location in self.0.resolve(code) {
            list.add(location);
        }
    }
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// What is written, and the time in it.
struct Copy<'a> {
    encoder: Encoder<BufWriter<File>>,
    names: Known<'a>,
    /// Alive: the source's id, and ours.
    live: HashMap<u64, u64>,
    /// Microseconds that the passes before took.
    passed: u64,
}

impl Copy<'_> {
    /// Writes the source once more.
    fn pass(&mut self, source: &[u8], keep: bool) -> Outcome<()> {
        let mut reader = Reader::from_slice(source, Mode::Strict)?;
        let start = reader.info().start_time;
        let mut last = start;
        while let Some(event) = reader.next_event()? {
            last = event.time;
            let time = event.time + self.passed;
            match event.kind {
                EventKind::Alloc(allocation) => {
                    let (block, frames) = (allocation.block(), allocation.backtrace.whole());
                    let id = self.encoder.domain(0).alloc(time, block, frames, &mut self.names)?;
                    self.live.insert(allocation.id, id);
                }
                EventKind::Promote(id) => {
                    if let Some(&id) = self.live.get(&id) {
                        self.encoder.domain(0).promote(time, id, &mut self.names)?;
                    }
                }
                EventKind::Collect(id) => {
                    if let Some(id) = self.live.remove(&id) {
                        self.encoder.domain(0).collect(time, id, &mut self.names)?;
                    }
                }
                _ => {}
            }
        }
        let left = self.live.drain().filter(|_| !keep).map(|(_, id)| id);
        for id in left {
            self.encoder.domain(0).collect(last + self.passed, id, &mut self.names)?;
        }
        self.passed += last - start + 1;
        Ok(())
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, mebibytes, rest @ ..] = arguments.as_slice() else {
        return Err("usage: repeated_trace IN OUT MEBIBYTES [keep]".into());
    };
    let goal = mebibytes.parse::<u64>()? << 20;
    let keep = rest.first().is_some_and(|word| word == "keep");
    let source = fs::read(input)?;
    let mut reader = Reader::from_slice(&source, Mode::Strict)?;
    let mut events = 0_u64;
    while reader.next_event()?.is_some() {
        events += 1;
    }
    let info = reader.info().clone();
    let table = reader.into_locations();
    let out = BufWriter::new(File::create(output)?);
    let encoder = Encoder::new(out, Format::V2, &info)?;
    let mut copy = Copy { encoder, names: Known(&table), live: HashMap::new(), passed: 0 };
    let mut passes = 0;
    while fs::metadata(output)?.len() < goal {
        copy.pass(&source, keep)?;
        passes += 1;
    }
    let Copy { encoder, mut names, .. } = copy;
    encoder.finish(&mut names)?;
    println!("{output}: {passes} passes of {events} events");
    Ok(())
}
