//! The one reading of traces behind `report`, `leaks`, `hot`, `diff`, `export` and
//! `serve`.
//!
//! Live sizes need the order of time ([`time_order`](crate::analysis::time_order)), and
//! so an input that can be read again: a pipe is first copied into a temporary file.
//! Several traces are merged ([`several`](crate::analysis::several)).

use std::path::{Path, PathBuf};
use std::rc::Rc;

use heaptap_report::figures::TraceFigures;
use heaptap_report::{Aggregate, BlockTable, Lifespans, Options, Span};
use heaptap_trace::{Event, EventSource, LocationTable, TraceInfo};

use crate::analysis::parallel::ParallelAggregator;
use crate::analysis::several::{Findings, TracePart, TraceSet};
use crate::analysis::so_far::{FiguresSoFar, Onlooker};
use crate::analysis::time_order::in_time_order;
use crate::exit_status::{Failure, Verdict};
use crate::io::input::{Input, outcome_in_reports};
use crate::io::lifecycle::Lives;
use crate::io::notices;
use crate::io::series_files::is_part;
use crate::io::trace_files::{InputFile, expand};

/// How often an onlooker is asked, in events.
const EVENTS_PER_LOOK: u32 = 4096;

/// Traces that were read to their ends, and their aggregate.
pub(crate) struct AggregatedTrace {
    pub(crate) aggregate: Aggregate,
    /// Empty unless the options ask for it.
    pub(crate) blocks: BlockTable,
    name: String,
    /// Of several traces each.
    parts: Vec<TracePart>,
    cut_short: Option<String>,
    incomplete: Option<String>,
    events: Box<dyn EventSource>,
    findings: Findings,
}

impl AggregatedTrace {
    /// Reads the traces that the arguments stand for. A selection by lifetime takes a
    /// reading of its own, before the one that counts.
    pub(crate) fn read(
        arguments: &[PathBuf],
        options: Options,
    ) -> Result<AggregatedTrace, Failure> {
        AggregatedTrace::read_with_onlooker(arguments, options, &())
    }

    /// The same while somebody looks at the figures, of one trace.
    pub(crate) fn read_with_onlooker(
        arguments: &[PathBuf],
        options: Options,
        onlooker: &impl Onlooker,
    ) -> Result<AggregatedTrace, Failure> {
        match &expand(arguments)?[..] {
            [InputFile { path, .. }] if !is_part(path) => {
                AggregatedTrace::read_one(path, options, onlooker)
            }
            files => AggregatedTrace::read_several(TraceSet::survey(files)?, arguments, options),
        }
    }

    fn read_one(
        path: &Path,
        options: Options,
        onlooker: &impl Onlooker,
    ) -> Result<AggregatedTrace, Failure> {
        AggregatedTrace::of_input(&Input::open(path)?, options, onlooker)
    }

    /// Reads one trace.
    pub(crate) fn of_input(
        input: &Input,
        mut options: Options,
        onlooker: &impl Onlooker,
    ) -> Result<AggregatedTrace, Failure> {
        input.make_repeatable()?;
        options.lifespans = lifespans_of(input, options.selection.lifetime)?;
        let info = input.in_file_order()?.info().clone();
        let fresh =
            || (ParallelAggregator::new(&info, options.clone()), Lives::new(Lives::MEMORY), 0_u32);
        let mut state = fresh();
        let reader = in_time_order(
            input,
            fresh,
            &mut state,
            |(aggregator, lives, events), event, table| {
                lives.event(event);
                aggregator.event(event, table);
                *events = events.wrapping_add(1);
                if events.is_multiple_of(EVENTS_PER_LOOK) && onlooker.is_waiting() {
                    let (aggregate, blocks) = aggregator.so_far();
                    onlooker.show(&FiguresSoFar {
                        info: &info,
                        aggregate,
                        blocks,
                        locations: table,
                    });
                }
            },
        )?;
        input.end_progress();
        let (aggregator, mut lives, _) = state;
        let (lines, verdict) = input.findings(&*reader, &mut lives, &outcome_in_reports);
        let mut findings = Findings::default();
        findings.add(lines, verdict);
        let (aggregate, blocks) = aggregator.finish_with_blocks();
        Ok(AggregatedTrace {
            aggregate,
            blocks,
            name: input.name().to_owned(),
            parts: Vec::new(),
            cut_short: reader.losses().cut_short.as_ref().map(notices::cut_short),
            incomplete: notices::incomplete(reader.losses()),
            events: reader,
            findings,
        })
    }

    fn read_several(
        traces: TraceSet,
        arguments: &[PathBuf],
        mut options: Options,
    ) -> Result<AggregatedTrace, Failure> {
        let name = traces.name(arguments);
        let span = options.selection.lifetime;
        if !span.is_all() {
            options.lifespans = Some(traces.lifespans(span, &name)?);
        }
        options.rates = traces.rates().clone();
        let mut aggregator = ParallelAggregator::new(traces.info(), options);
        let merged = traces.merge(
            &mut aggregator,
            ParallelAggregator::event_at,
            ParallelAggregator::end_trace,
        )?;
        let (aggregate, blocks) = aggregator.finish_with_blocks();
        Ok(AggregatedTrace {
            aggregate,
            blocks,
            name,
            parts: traces.parts(),
            cut_short: traces.cut_short(),
            incomplete: traces.incomplete(),
            events: Box::new(merged),
            findings: traces.into_findings(),
        })
    }

    /// What the figures of a report come from. `selected`: filters left blocks out.
    pub(crate) fn figures(&self, selected: bool) -> TraceFigures<'_> {
        TraceFigures {
            name: self.name(),
            info: self.info(),
            cut_short: self.cut_short(),
            incomplete: self.incomplete(),
            aggregate: &self.aggregate,
            locations: self.locations(),
            selected,
        }
    }

    /// What to call the traces.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Each of several traces that were read as one; none of a single one.
    pub(crate) fn parts(&self) -> &[TracePart] {
        &self.parts
    }

    pub(crate) fn locations(&self) -> &LocationTable {
        self.events.locations()
    }

    /// If a trace says that its end is missing: why, and until when it covers the
    /// program.
    pub(crate) fn cut_short(&self) -> Option<&str> {
        self.cut_short.as_deref()
    }

    /// Why a trace does not have all that its program did, if that is so.
    pub(crate) fn incomplete(&self) -> Option<&str> {
        self.incomplete.as_deref()
    }

    pub(crate) fn info(&self) -> &TraceInfo {
        self.events.info()
    }

    /// What [`AggregatedTrace::verdict`] reports, without the name of the trace.
    pub(crate) fn notices(&self) -> Vec<String> {
        let name = format!("{}: ", self.name);
        let nameless = |line: &String| line.strip_prefix(&name).unwrap_or(line).to_owned();
        self.findings.lines().map(nameless).collect()
    }

    /// Reports on standard error what is missing, and which events were ignored. For
    /// the end of a verb.
    pub(crate) fn verdict(&self) -> Verdict {
        self.findings.report()
    }
}

/// Which blocks of a trace live so long, if that is restricted. A reading of its own; the input must be repeatable.
pub(crate) fn lifespans_of(input: &Input, span: Span) -> Result<Option<Rc<Lifespans>>, Failure> {
    if span.is_all() {
        return Ok(None);
    }
    let mut found = Lifespans::new(span);
    in_time_order(input, || Lifespans::new(span), &mut found, Lifespans::event)?;
    finished(found, input.name()).map(Some)
}

impl TraceSet {
    /// The same of several traces, which messages call `name`.
    pub(crate) fn lifespans(&self, span: Span, name: &str) -> Result<Rc<Lifespans>, Failure> {
        let mut found = Lifespans::new(span);
        let event = |found: &mut Lifespans, event: &Event<'_>, table: &LocationTable, _| {
            found.event(event, table);
        };
        self.merge(&mut found, event, Lifespans::end_trace)?;
        finished(found, name)
    }
}

/// The lifespans of all blocks, unless there are too many.
fn finished(mut found: Lifespans, name: &str) -> Result<Rc<Lifespans>, Failure> {
    if !found.finish() {
        return Err(Failure::Trouble(format!(
            "{name}: too many blocks are alive at once to select them by lifetime; \
             make a smaller trace first: heaptap thin FILE small.ctf --rate …"
        )));
    }
    Ok(Rc::new(found))
}
