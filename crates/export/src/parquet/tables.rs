//! The tables of a trace: its blocks, their stacks, and the trace itself.

use std::io::{self, Write};
use std::rc::Rc;

use hashbrown::HashMap;
use heaptap_report::rows::{By, Site, Sites};
use heaptap_report::{BlockLife, BlockSink, Frame, Scale, WholeStack, is_label};
use heaptap_trace::{Code, LocationTable, Source, TraceInfo};
use parquet::data_type::ByteArray;

use super::file::FileWriter;
use super::trace_id;
use crate::frame_name;

static BLOCKS: &str = "message schema {
    REQUIRED BYTE_ARRAY trace_id (STRING);
    REQUIRED INT64 pid;
    REQUIRED INT64 block_id;
    REQUIRED INT64 allocated (TIMESTAMP(MICROS,true));
    OPTIONAL INT64 promoted (TIMESTAMP(MICROS,true));
    OPTIONAL INT64 collected (TIMESTAMP(MICROS,true));
    OPTIONAL INT64 lifetime_us;
    REQUIRED BYTE_ARRAY source (STRING);
    REQUIRED INT64 words;
    REQUIRED INT64 bytes;
    REQUIRED INT64 samples;
    REQUIRED DOUBLE weight;
    REQUIRED INT32 domain;
    OPTIONAL BYTE_ARRAY label (STRING);
    REQUIRED INT64 stack_id;
}";

static STACKS: &str = "message schema {
    REQUIRED BYTE_ARRAY trace_id (STRING);
    REQUIRED INT64 stack_id;
    REQUIRED BYTE_ARRAY function (STRING);
    REQUIRED BYTE_ARRAY file (STRING);
    REQUIRED INT32 line;
    OPTIONAL BYTE_ARRAY label (STRING);
    REQUIRED group frames (LIST) {
        REPEATED group list {
            REQUIRED group element {
                REQUIRED BYTE_ARRAY function (STRING);
                REQUIRED BYTE_ARRAY file (STRING);
                REQUIRED INT32 line;
                REQUIRED INT32 start_char;
                REQUIRED INT32 end_char;
            }
        }
    }
    REQUIRED BYTE_ARRAY text (STRING);
}";

static TRACES: &str = "message schema {
    REQUIRED BYTE_ARRAY trace_id (STRING);
    REQUIRED INT64 pid;
    REQUIRED BYTE_ARRAY program (STRING);
    REQUIRED BYTE_ARRAY context (STRING);
    REQUIRED INT64 started (TIMESTAMP(MICROS,true));
    REQUIRED INT64 ended (TIMESTAMP(MICROS,true));
    REQUIRED DOUBLE sample_rate;
    REQUIRED INT32 word_bytes;
    REQUIRED INT64 blocks;
    REQUIRED INT32 complete;
}";

/// What is known of a trace after its last event.
pub struct TraceFacts {
    /// The time of the last event, in microseconds since the epoch.
    pub ended: u64,
    /// Whether nothing is known to be missing.
    pub complete: bool,
}

/// A site as a frame of stacks: what is written of it again and again.
struct FrameSite {
    function: ByteArray,
    file: ByteArray,
    line: u32,
    chars: (u32, u32),
    /// Its name in the text of a stack.
    text: String,
}

impl FrameSite {
    fn new(site: Site) -> FrameSite {
        let text = frame_name(&site);
        let Site { name, file, line, chars } = site;
        let [function, file] = [name, file].map(|name| name.into_bytes().into());
        FrameSite { function, file, line, chars, text }
    }

    /// Without a place.
    fn named(name: &str) -> FrameSite {
        let (name, file) = (name.to_owned(), String::new());
        FrameSite::new(Site { name, file, line: 0, chars: (0, 0) })
    }
}

/// The tables of one trace, being written.
pub struct BlockTables<W: Write + Send> {
    blocks: FileWriter<W>,
    stacks: FileWriter<W>,
    traces: FileWriter<W>,
    trace_id: ByteArray,
    info: TraceInfo,
    /// The sites of each frame, the innermost first.
    sites: HashMap<Frame, Rc<[FrameSite]>>,
    last_stack: LastStack,
    /// Stands for frames that are left out.
    left_out: FrameSite,
    /// Stands for the innermost frame of a stack without frames.
    no_frame: FrameSite,
    /// The words for [`Source::Minor`], [`Source::Major`] and [`Source::External`].
    sources: [ByteArray; 3],
    /// The label of each outermost frame, if it is one.
    labels: HashMap<Code, Option<ByteArray>>,
    most_frames: usize,
    block_count: i64,
}

impl<W: Write + Send> BlockTables<W> {
    /// Into files for each of [`super::TABLES`]. Of longer stacks than `most_frames`, the middle is
    /// left out.
    pub fn new(
        [blocks, stacks, traces]: [W; 3],
        info: &TraceInfo,
        most_frames: usize,
    ) -> io::Result<Self> {
        Ok(BlockTables {
            blocks: FileWriter::new(blocks, BLOCKS)?,
            stacks: FileWriter::new(stacks, STACKS)?,
            traces: FileWriter::new(traces, TRACES)?,
            trace_id: trace_id(info).as_str().into(),
            info: info.clone(),
            sites: HashMap::new(),
            last_stack: LastStack::default(),
            left_out: FrameSite::named("(frames left out)"),
            no_frame: FrameSite::named(""),
            sources: Source::ALL.map(|source| ByteArray::from(source.name())),
            labels: HashMap::new(),
            most_frames,
            block_count: 0,
        })
    }

    /// Completes the files, and returns them in the order of [`super::TABLES`].
    pub fn finish(mut self, facts: &TraceFacts) -> io::Result<[W; 3]> {
        let TraceInfo { executable, context, .. } = &self.info;
        self.traces
            .row()
            .word(&self.trace_id)
            .integer(self.info.pid as i64)
            .text(&*String::from_utf8_lossy(executable))
            .text(&*String::from_utf8_lossy(context))
            .integer(micros(self.info.start_time))
            .integer(micros(facts.ended))
            .double(self.info.sample_rate)
            .integer(i64::from(self.info.word_size / 8))
            .integer(self.block_count)
            .integer(i64::from(facts.complete))
            .end()?;
        Ok([self.blocks.finish()?, self.stacks.finish()?, self.traces.finish()?])
    }

    /// Makes this the last stack. It mostly begins like the one before it, so that few frames are
    /// looked up.
    fn take_stack(&mut self, stack: WholeStack<'_>, table: &LocationTable) {
        let LastStack(sites) = &mut self.last_stack;
        sites.truncate(stack.common);
        for &frame in stack.frames.get(sites.len()..).unwrap_or(&[]) {
            let known = self.sites.entry(frame).or_insert_with(|| {
                let sites = Sites::new(table, By::Location).inlined(frame);
                sites.into_iter().map(FrameSite::new).collect()
            });
            sites.push(Rc::clone(known));
        }
    }
}

/// The sites of each frame of the last stack, the innermost first. The outermost frame comes first.
#[derive(Default)]
struct LastStack(Vec<Rc<[FrameSite]>>);

impl LastStack {
    /// The sites from the allocation outwards. If there are more, the middle is left out, and
    /// `marker` is in its place. Of a deep stack, only its ends are looked at.
    fn shown<'a>(&'a self, most: usize, marker: &'a FrameSite) -> Vec<&'a FrameSite> {
        let LastStack(stack) = self;
        let (inner, outer) = (most - most / 2, most / 2);
        let inwards = stack.iter().rev().flat_map(|sites| sites.iter());
        let mut sites: Vec<&FrameSite> = inwards.take(most + 1).collect();
        if sites.len() <= most {
            return sites;
        }
        sites.truncate(inner);
        sites.push(marker);
        let outwards = stack.iter().flat_map(|sites| sites.iter().rev());
        let mut outermost: Vec<&FrameSite> = outwards.take(outer).collect();
        outermost.reverse();
        sites.extend(outermost);
        sites
    }
}

/// The label that a frame stands for, if it does.
fn label_of(frame: Frame, table: &LocationTable) -> Option<ByteArray> {
    let Frame::Code(code) = frame else { return None };
    let mut labels = table.resolve(code).filter(is_label);
    labels.next().map(|location| String::from_utf8_lossy(location.definition).as_ref().into())
}

impl<W: Write + Send> BlockSink for BlockTables<W> {
    type Error = io::Error;

    fn block(&mut self, life: &BlockLife, table: &LocationTable) -> io::Result<()> {
        let label = life.outermost.and_then(|code| {
            let known = self.labels.entry(code);
            known.or_insert_with(|| label_of(Frame::Code(code), table)).clone()
        });
        self.block_count += 1;
        let word_bytes = u64::from(self.info.word_size / 8);
        let scale = Scale::new(self.info.sample_rate, word_bytes as f64);
        let [minor, major, external] = &self.sources;
        let time = |since_start: u64| micros(self.info.start_time.wrapping_add(since_start));
        self.blocks
            .row()
            .word(&self.trace_id)
            .integer(self.info.pid as i64)
            .integer(life.id as i64)
            .integer(time(life.birth))
            .optional_integer(life.promotion.map(time))
            .optional_integer(life.death.map(time))
            .optional_integer(life.death.map(|death| micros(death.wrapping_sub(life.birth))))
            .word(match life.source {
                Source::Minor => minor,
                Source::Major => major,
                Source::External => external,
            })
            .integer(life.length as i64)
            .integer(life.length.saturating_mul(word_bytes) as i64)
            .integer(life.samples as i64)
            .double(scale.bytes(life.samples).bytes)
            .integer(i64::from(life.domain))
            .optional_word(label.as_ref())
            .integer(life.stack as i64)
            .end()
    }

    fn stack(&mut self, id: u64, stack: WholeStack<'_>, table: &LocationTable) -> io::Result<()> {
        self.take_stack(stack, table);
        let label = stack.frames.first().and_then(|&frame| label_of(frame, table));
        let sites = self.last_stack.shown(self.most_frames, &self.left_out);
        let names: Vec<&str> = sites.iter().rev().map(|frame| frame.text.as_str()).collect();
        let innermost = sites.first().copied().unwrap_or(&self.no_frame);
        self.stacks
            .row()
            .word(&self.trace_id)
            .integer(id as i64)
            .word(&innermost.function)
            .word(&innermost.file)
            .integer(i64::from(innermost.line))
            .optional_word(label.as_ref())
            .words(sites.iter().map(|frame| &frame.function))
            .words(sites.iter().map(|frame| &frame.file))
            .integers(sites.iter().map(|frame| i64::from(frame.line)))
            .integers(sites.iter().map(|frame| i64::from(frame.chars.0)))
            .integers(sites.iter().map(|frame| i64::from(frame.chars.1)))
            .text(names.join(";").into_bytes())
            .end()
    }
}

/// Times beyond what 63 bits hold are in damaged traces only.
fn micros(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}
