//! Writes a trace of any size, to measure the tools with:
//!
//! ```text
//! cargo run --release -p heaptap-cli --example large_trace -- OUT MEBIBYTES [DOMAINS [LIVE [FRAMES]]]
//! /usr/bin/time -v heaptap info OUT
//! ```
//!
//! The workload looks like a real one: stacks of 20 to 150 frames that mostly
//! stay the same, short blocks, half of which are promoted, all of which die
//! when that many (50,000 by default) younger ones are alive in their domain. There are 8000
//! different frames, or FRAMES, which are then called in turn, so that each is new for as long as
//! there are any.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, Write};

use heaptap_trace::{
    Block, Code, Encoder, Format, Frames, Locate, Location, LocationList, Source, TraceInfo,
};

/// A linear congruential generator will do here.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// Files of fifty definitions each, with the code's number for a line.
struct Sources;

impl Locate for Sources {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        let line = code as u32;
        let file = format!("src/module{}.ml", line / 50);
        let definition = format!("Module{}.function{line}", line / 50);
        list.add(Location {
            file: file.as_bytes(),
            line,
            start_char: line % 40,
            end_char: line % 40 + 20,
            definition: definition.as_bytes(),
        });
    }
}

/// Counts what passes through.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// What one domain has in hand.
struct Mutator {
    number: u16,
    stack: Vec<Code>,
    young: VecDeque<u64>,
    old: VecDeque<u64>,
    /// How many are old at most.
    live: usize,
    /// How many different frames there are.
    frames: u64,
    /// The frame that is called next, if each is called in turn.
    next: Option<u64>,
}

impl Mutator {
    fn new(number: u16, live: usize, frames: u64, next: Option<u64>) -> Self {
        let (young, old) = (VecDeque::new(), VecDeque::new());
        Mutator { number, stack: Vec::new(), young, old, live, frames, next }
    }

    /// Returns from some functions and calls others.
    fn change_stack(&mut self, dice: &mut Dice) {
        let kept = self.stack.len().saturating_sub(dice.below(16) as usize).min(150);
        self.stack.truncate(kept);
        while self.stack.len() < 20 || dice.below(3) > 0 && self.stack.len() < 150 {
            let frame = match &mut self.next {
                Some(next) => {
                    *next += 1;
                    *next % self.frames
                }
                None => dice.below(self.frames),
            };
            self.stack.push(0x5555_0000_0000 + 1 + frame);
        }
    }

    fn step<W: Write>(
        &mut self,
        encoder: &mut Encoder<W>,
        time: u64,
        dice: &mut Dice,
    ) -> Result<(), Box<dyn std::error::Error>> {
        self.change_stack(dice);
        let block = Block { length: 1 + dice.below(20), samples: 1, source: Source::Minor };
        let frames = Frames::Whole(&self.stack);
        self.young.push_back(encoder.domain(self.number).alloc(
            time,
            block,
            frames,
            &mut Sources,
        )?);
        if self.young.len() > 1000 {
            for id in self.young.drain(..) {
                if dice.below(2) == 0 {
                    encoder.domain(self.number).promote(time, id, &mut Sources)?;
                    self.old.push_back(id);
                } else {
                    encoder.domain(self.number).collect(time, id, &mut Sources)?;
                }
            }
        }
        while self.old.len() > self.live {
            if let Some(id) = self.old.pop_front() {
                encoder.domain(self.number).collect(time, id, &mut Sources)?;
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, mebibytes, rest @ ..] = arguments.as_slice() else {
        return Err("usage: large_trace OUT MEBIBYTES [DOMAINS [LIVE [FRAMES]]]".into());
    };
    let goal = mebibytes.parse::<u64>()? << 20;
    let domains = rest.first().map_or(Ok(1), |count| count.parse::<u16>())?;
    let live = rest.get(1).map_or(Ok(50_000), |count| count.parse::<usize>())?;
    let frames = rest.get(2).map(|count| count.parse::<u64>()).transpose()?;
    let (frames, next) = (frames.unwrap_or(8000), frames.map(|_| 0));
    let info = TraceInfo {
        sample_rate: 1e-4,
        word_size: 64,
        executable: b"large_trace".to_vec(),
        host: b"nowhere".to_vec(),
        runtime_params: Vec::new(),
        pid: 1,
        context: Vec::new(),
        start_time: 1_000_000_000_000_000,
        domain: 0,
    };
    let format = if domains > 1 { Format::V3 } else { Format::V2 };
    let mut bytes = Counted { out: BufWriter::new(File::create(path)?), bytes: 0 };
    let mut encoder = Encoder::new(&mut bytes, format, &info)?;
    let mut mutators: Vec<Mutator> =
        (0..domains).map(|number| Mutator::new(number, live, frames, next)).collect();
    let mut dice = Dice(1);
    let mut time = info.start_time;
    // An event takes about this much; the size need not be exact.
    const BYTES_PER_STEP: u64 = 40;
    for _ in 0..goal / BYTES_PER_STEP {
        time += dice.below(50);
        let place = dice.below(u64::from(domains)) as usize;
        mutators[place].step(&mut encoder, time, &mut dice)?;
    }
    encoder.finish(&mut Sources)?;
    println!("{path}: {} bytes", bytes.bytes);
    Ok(())
}
