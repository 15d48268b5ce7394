//! What a traced program did: the input of the encoder, and the events that a
//! reader of the trace must return.

use std::collections::HashMap;
use std::fmt;

use heaptap_trace::{
    Block, Code, Encoder, EventSink as _, Format, Frames, LiveSink as _, Source, TraceInfo,
};

use crate::debug_info::DebugInfo;
use crate::reading::{RecordedEvent, RecordedKind};

/// A program's run.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) format: Format,
    pub(crate) info: TraceInfo,
    pub(crate) steps: Vec<Step>,
    pub(crate) debug_info: DebugInfo,
}

/// A line for each step: a failing script should be readable.
impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.info.start_time;
        writeln!(f, "{:?}, domain {}, from {start} µs", self.format, self.info.domain)?;
        for step in &self.steps {
            writeln!(f, "  {step:?}")?;
        }
        for (code, locations) in &self.debug_info.locations {
            writeln!(f, "  {code:#x} is at {locations:?}")?;
        }
        write!(f, "  other codes in {} files", self.debug_info.files)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Alloc {
        domain: u16,
        /// Microseconds since the domain's last event.
        wait: u64,
        block: Block,
        /// How many frames of the domain's last stack stay: this modulo one
        /// more than there are.
        keep: usize,
        /// The calls from there: a code, and how often it is repeated.
        calls: Vec<(Code, usize)>,
    },
    /// The objects are chosen among those there are, from the youngest back.
    Promote {
        domain: u16,
        wait: u64,
        back: usize,
    },
    Collect {
        domain: u16,
        wait: u64,
        back: usize,
    },
    Flush,
    /// Skips this many blocks of ids and some more, then allocates. Skips none if
    /// 0, or within a block, where it would be a defect.
    Renumber {
        domain: u16,
        skip: u64,
    },
}

/// How the encoder is given the stacks. The bytes must be the same.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Style {
    Whole,
    Suffix,
}

/// A trace and the events in it, in the order of their writing.
pub(crate) struct Performed {
    pub(crate) bytes: Vec<u8>,
    pub(crate) recorded: Vec<RecordedEvent>,
}

/// Something that is traced: the encoder, or the oracle in its place.
pub(crate) trait Recorder {
    fn alloc(&mut self, domain: u16, time: u64, block: Block, last: &[Code], stack: &[Code])
    -> u64;
    fn promote(&mut self, domain: u16, time: u64, id: u64);
    fn collect(&mut self, domain: u16, time: u64, id: u64);
    fn flush(&mut self);
    fn next_id(&self, domain: u16) -> Option<u64>;
    fn renumber(&mut self, domain: u16, time: u64, first: u64);
}

/// A domain as the traced program knows it.
#[derive(Default)]
struct Running {
    time: u64,
    stack: Vec<Code>,
}

impl Script {
    /// Writes the trace with the encoder.
    pub(crate) fn perform(&self, style: Style) -> Performed {
        let encoder = Encoder::new(Vec::new(), self.format, &self.info).unwrap();
        let mut recorder = Encoding { encoder, style, debug_info: &self.debug_info };
        let recorded = self.perform_with(&mut recorder);
        let bytes = recorder.encoder.finish(&mut &self.debug_info).unwrap();
        Performed { bytes, recorded }
    }

    /// Plays the script to any recorder; returns the events it must record.
    pub(crate) fn perform_with(&self, recorder: &mut impl Recorder) -> Vec<RecordedEvent> {
        let mut domains: HashMap<u16, Running> = HashMap::new();
        let mut given: Vec<u64> = Vec::new();
        let mut highest = 0;
        let mut recorded = Vec::new();
        for step in &self.steps {
            let (domain, wait) = match *step {
                Step::Alloc { domain, wait, .. }
                | Step::Promote { domain, wait, .. }
                | Step::Collect { domain, wait, .. } => (domain, wait),
                Step::Renumber { domain, .. } => (domain, 0),
                Step::Flush => {
                    recorder.flush();
                    continue;
                }
            };
            let running = domains
                .entry(domain)
                .or_insert_with(|| Running { time: self.info.start_time, ..Running::default() });
            running.time += wait;
            let time = running.time;
            let kind = match step {
                Step::Alloc { block, keep, calls, .. } => {
                    let stack = called(&running.stack, *keep, calls);
                    let id = recorder.alloc(domain, time, *block, &running.stack, &stack);
                    running.stack = stack;
                    given.push(id);
                    RecordedKind::Alloc { id, block: *block, frames: running.stack.clone() }
                }
                Step::Promote { back, .. } => {
                    // A promotion of an object that another domain allocated
                    // later is a defect; see `Defect::PromoteAhead`.
                    let next = recorder.next_id(domain).unwrap_or(0);
                    let Some(id) = nth_back(&given, *back, next) else { continue };
                    recorder.promote(domain, time, id);
                    RecordedKind::Promote(id)
                }
                Step::Collect { back, .. } => {
                    let Some(id) = nth_back(&given, *back, u64::MAX) else { continue };
                    recorder.collect(domain, time, id);
                    RecordedKind::Collect(id)
                }
                Step::Renumber { skip, .. } => {
                    let first = match recorder.next_id(domain) {
                        Some(next) if *skip == 0 || next % 10_000 != 0 => next,
                        // Behind all that the domains may have taken.
                        _ => (highest / 10_000 + 10 + skip) * 10_000,
                    };
                    recorder.renumber(domain, time, first);
                    let block = Block { length: 1, samples: 1, source: Source::Minor };
                    let stack = running.stack.clone();
                    let id = recorder.alloc(domain, time, block, &stack, &stack);
                    assert_eq!(id, first);
                    given.push(id);
                    RecordedKind::Alloc { id, block, frames: stack }
                }
                Step::Flush => continue,
            };
            recorded.push(RecordedEvent { domain, time, kind });
            highest = highest.max(recorder.next_id(domain).unwrap_or(0));
        }
        recorded
    }
}

/// The object `back` positions before the youngest, or the first before it that
/// has an id below `below`.
fn nth_back(given: &[u64], back: usize, below: u64) -> Option<u64> {
    let from = given.len() - back % given.len().max(1);
    given[..from].iter().rev().find(|&&id| id < below).copied()
}

/// The stack after returning to `keep` frames and calling on.
fn called(stack: &[Code], keep: usize, calls: &[(Code, usize)]) -> Vec<Code> {
    let mut next = stack[..keep % (stack.len() + 1)].to_vec();
    for &(code, times) in calls {
        next.extend(std::iter::repeat_n(code, times));
    }
    next
}

/// How many frames at the `main` end are the same.
pub(crate) fn same_frames(a: &[Code], b: &[Code]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The encoder as a recorder.
struct Encoding<'a> {
    encoder: Encoder<Vec<u8>>,
    style: Style,
    debug_info: &'a DebugInfo,
}

impl Recorder for Encoding<'_> {
    fn alloc(
        &mut self,
        domain: u16,
        time: u64,
        block: Block,
        last: &[Code],
        stack: &[Code],
    ) -> u64 {
        let frames = match self.style {
            Style::Whole => Frames::Whole(stack),
            Style::Suffix => {
                let same = same_frames(last, stack);
                Frames::Suffix { common_prefix: same as u64, new: &stack[same..] }
            }
        };
        self.encoder.domain(domain).alloc(time, block, frames, &mut self.debug_info).unwrap()
    }

    fn promote(&mut self, domain: u16, time: u64, id: u64) {
        self.encoder.domain(domain).promote(time, id, &mut self.debug_info).unwrap();
    }

    fn collect(&mut self, domain: u16, time: u64, id: u64) {
        self.encoder.domain(domain).collect(time, id, &mut self.debug_info).unwrap();
    }

    fn flush(&mut self) {
        self.encoder.flush(&mut self.debug_info).unwrap();
    }

    fn next_id(&self, domain: u16) -> Option<u64> {
        self.encoder.next_id(domain)
    }

    fn renumber(&mut self, domain: u16, time: u64, first: u64) {
        self.encoder.domain(domain).renumber(time, first).unwrap();
    }
}
