//! The tables of a trace: its blocks, their stacks, and the trace itself.

use std::io::{self, Write};
use std::rc::Rc;

use hashbrown::HashMap;
use heaptap_report::rows::{By, Site, Sites};
use heaptap_report::{BlockLife, BlockSink, Frame, Scale, WholeStack, is_label};
use heaptap_trace::{Code, LocationTable, Source, TraceInfo};

use super::column::{Column, Kind, WordPlace};
use super::file::FileWriter;
use super::trace_id;
use crate::frame_name;

static BLOCKS: [Column; 15] = [
    Column::new("trace_id", Kind::Word),
    Column::new("pid", Kind::Int64),
    Column::new("block_id", Kind::Int64),
    Column::new("allocated", Kind::Time),
    Column::optional("promoted", Kind::Time),
    Column::optional("collected", Kind::Time),
    Column::optional("lifetime_us", Kind::Int64),
    Column::new("source", Kind::Word),
    Column::new("words", Kind::Int64),
    Column::new("bytes", Kind::Int64),
    Column::new("samples", Kind::Int64),
    Column::new("weight", Kind::Double),
    Column::new("domain", Kind::Int32),
    Column::optional("label", Kind::Word),
    Column::new("stack_id", Kind::Int64),
];

static STACKS: [Column; 12] = [
    Column::new("trace_id", Kind::Word),
    Column::new("stack_id", Kind::Int64),
    Column::new("function", Kind::Word),
    Column::new("file", Kind::Word),
    Column::new("line", Kind::Int32),
    Column::optional("label", Kind::Word),
    Column::in_list("frames", "function", Kind::Word),
    Column::in_list("frames", "file", Kind::Word),
    Column::in_list("frames", "line", Kind::Int32),
    Column::in_list("frames", "start_char", Kind::Int32),
    Column::in_list("frames", "end_char", Kind::Int32),
    Column::new("text", Kind::Text),
];

static TRACES: [Column; 10] = [
    Column::new("trace_id", Kind::Word),
    Column::new("pid", Kind::Int64),
    Column::new("program", Kind::Word),
    Column::new("context", Kind::Word),
    Column::new("started", Kind::Time),
    Column::new("ended", Kind::Time),
    Column::new("sample_rate", Kind::Double),
    Column::new("word_bytes", Kind::Int32),
    Column::new("blocks", Kind::Int64),
    Column::new("complete", Kind::Int32),
];

/// What is known of a trace after its last event.
pub struct TraceFacts {
    /// The time of the last event, in microseconds since the epoch.
    pub ended: u64,
    /// Whether nothing is known to be missing.
    pub complete: bool,
}

/// A site as a frame of stacks: what is written of it again and again.
struct FrameSite {
    site: Site,
    /// Its name in the text of a stack.
    text: String,
    function: WordPlace,
    file: WordPlace,
}

impl FrameSite {
    fn new(site: Site) -> FrameSite {
        let text = frame_name(&site);
        FrameSite { site, text, function: WordPlace::default(), file: WordPlace::default() }
    }
}

/// The tables of one trace, being written.
pub struct BlockTables<W: Write> {
    blocks: FileWriter<W>,
    stacks: FileWriter<W>,
    traces: FileWriter<W>,
    trace_id: String,
    info: TraceInfo,
    /// The sites of each frame, the innermost first.
    sites: HashMap<Frame, Rc<[FrameSite]>>,
    last_stack: LastStack,
    /// Stands for frames that are left out.
    left_out: FrameSite,
    /// The label of each outermost frame, if it is one.
    labels: HashMap<Code, Option<Rc<str>>>,
    most_frames: usize,
    block_count: i64,
}

impl<W: Write> BlockTables<W> {
    /// Into files for each of [`super::TABLES`]. Of longer stacks than `most_frames`, the middle is
    /// left out.
    pub fn new(
        [blocks, stacks, traces]: [W; 3],
        info: &TraceInfo,
        most_frames: usize,
    ) -> io::Result<Self> {
        Ok(BlockTables {
            blocks: FileWriter::new(blocks, &BLOCKS)?,
            stacks: FileWriter::new(stacks, &STACKS)?,
            traces: FileWriter::new(traces, &TRACES)?,
            trace_id: trace_id(info),
            info: info.clone(),
            sites: HashMap::new(),
            last_stack: LastStack::default(),
            left_out: FrameSite::new(Site {
                name: "(frames left out)".to_owned(),
                file: String::new(),
                line: 0,
                chars: (0, 0),
            }),
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
            .text(&self.trace_id)
            .integer(self.info.pid as i64)
            .text(&String::from_utf8_lossy(executable))
            .text(&String::from_utf8_lossy(context))
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
fn label_of(frame: Frame, table: &LocationTable) -> Option<String> {
    let Frame::Code(code) = frame else { return None };
    let mut labels = table.resolve(code).filter(is_label);
    labels.next().map(|location| String::from_utf8_lossy(location.definition).into_owned())
}

impl<W: Write> BlockSink for BlockTables<W> {
    type Error = io::Error;

    fn block(&mut self, life: &BlockLife, table: &LocationTable) -> io::Result<()> {
        let label = life.outermost.and_then(|code| {
            let known = self.labels.entry(code);
            known.or_insert_with(|| label_of(Frame::Code(code), table).map(Rc::from)).clone()
        });
        self.block_count += 1;
        let word_bytes = u64::from(self.info.word_size / 8);
        let scale = Scale { rate: self.info.sample_rate, word_bytes: word_bytes as f64 };
        let time = |since_start: u64| micros(self.info.start_time.saturating_add(since_start));
        self.blocks
            .row()
            .text(&self.trace_id)
            .integer(self.info.pid as i64)
            .integer(life.id as i64)
            .integer(time(life.birth))
            .optional_integer(life.promotion.map(time))
            .optional_integer(life.death.map(time))
            .optional_integer(life.death.map(|death| micros(death.saturating_sub(life.birth))))
            .text(match life.source {
                Source::Minor => "minor",
                Source::Major => "major",
                Source::External => "external",
            })
            .integer(life.length as i64)
            .integer(life.length.saturating_mul(word_bytes) as i64)
            .integer(life.samples as i64)
            .double(scale.bytes(life.samples).bytes)
            .integer(i64::from(life.domain))
            .optional_text(label.as_deref())
            .integer(life.stack as i64)
            .end()
    }

    fn stack(&mut self, id: u64, stack: WholeStack<'_>, table: &LocationTable) -> io::Result<()> {
        self.take_stack(stack, table);
        let label = stack.frames.first().and_then(|&frame| label_of(frame, table));
        let sites = self.last_stack.shown(self.most_frames, &self.left_out);
        let names: Vec<&str> = sites.iter().rev().map(|frame| frame.text.as_str()).collect();
        let innermost = sites.first().map(|frame| &frame.site);
        let (name, file, line) =
            innermost.map_or(("", "", 0), |site| (&*site.name, &*site.file, site.line));
        self.stacks
            .row()
            .text(&self.trace_id)
            .integer(id as i64)
            .text(name)
            .text(file)
            .integer(i64::from(line))
            .optional_text(label.as_deref())
            .list(
                &sites,
                &[
                    |frame, values| values.word(&frame.site.name, &frame.function),
                    |frame, values| values.word(&frame.site.file, &frame.file),
                    |frame, values| values.integer(i64::from(frame.site.line)),
                    |frame, values| values.integer(i64::from(frame.site.chars.0)),
                    |frame, values| values.integer(i64::from(frame.site.chars.1)),
                ],
            )
            .text(&names.join(";"))
            .end()
    }
}

/// Times beyond what 63 bits hold are in damaged traces only.
fn micros(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}
