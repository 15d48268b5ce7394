//! The one reading of a trace behind `report`, `leaks`, `hot`, `diff` and `export`.
//!
//! Live sizes need the order of time. The file of a single domain is in that order
//! and is read as it is; when a second domain appears, the reading begins again
//! with the domains merged. A pipe cannot be read again, so it is first copied
//! into a temporary file.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;

use heaptap_report::{Aggregate, Aggregator, Lifespans, Options};
use heaptap_trace::{CutShort, Event, EventSource, LocationTable};

use crate::exit_status::{Failure, Verdict};
use crate::io::input::Input;
use crate::io::lifecycle::Lives;

/// A trace that was read to its end, and its aggregate.
pub(crate) struct AggregatedTrace {
    pub(crate) aggregate: Aggregate,
    pub(crate) input: Input,
    reader: Box<dyn EventSource>,
    lives: RefCell<Lives>,
}

impl AggregatedTrace {
    /// Reads the whole trace. A selection by lifetime takes a reading of its own,
    /// before the one that counts.
    pub(crate) fn read(path: &Path, mut options: Options) -> Result<AggregatedTrace, Failure> {
        let input = Input::open(path)?;
        input.make_repeatable()?;
        let span = options.selection.lifetime;
        if !span.is_all() {
            let mut found = Lifespans::new(span);
            in_time_order(&input, || Lifespans::new(span), &mut found, Lifespans::event)?;
            if !found.finish() {
                return Err(Failure::Trouble(format!(
                    "{}: too many blocks are alive at once to select them by lifetime; \
                     make a smaller trace first: heaptap thin FILE small.ctf --rate …",
                    input.name()
                )));
            }
            options.lifespans = Some(Rc::new(found));
        }
        let info = input.in_file_order()?.info().clone();
        let fresh = || (Aggregator::new(&info, options.clone()), Lives::new(Lives::MEMORY));
        let mut state = fresh();
        let reader =
            in_time_order(&input, fresh, &mut state, |(aggregator, lives), event, table| {
                lives.event(event);
                aggregator.event(event, table);
            })?;
        input.end_progress();
        let (aggregator, lives) = state;
        let lives = RefCell::new(lives);
        Ok(AggregatedTrace { aggregate: aggregator.finish(), input, reader, lives })
    }

    pub(crate) fn locations(&self) -> &LocationTable {
        self.reader.locations()
    }

    /// Whether the trace says that its end is missing, and until when it covers the
    /// program.
    pub(crate) fn cut_short(&self) -> Option<CutShort> {
        self.reader.losses().cut_short
    }

    pub(crate) fn info(&self) -> &heaptap_trace::TraceInfo {
        self.reader.info()
    }

    /// Reports on standard error what is missing, and which events were ignored. For
    /// the end of a verb.
    pub(crate) fn verdict(&self) -> Verdict {
        self.input.report(&*self.reader, &mut self.lives.borrow_mut())
    }
}

/// Passes every event to `state`, in the order of time. `fresh` makes another state
/// if it turns out that the file is not in that order.
fn in_time_order<S>(
    input: &Input,
    fresh: impl Fn() -> S,
    state: &mut S,
    event: impl Fn(&mut S, &Event<'_>, &LocationTable),
) -> Result<Box<dyn EventSource>, Failure> {
    let mut reader = input.in_file_order()?;
    let mut domain = None;
    let read = reader.for_each(&mut |next, table| {
        if *domain.get_or_insert(next.domain) != next.domain {
            return ControlFlow::Break(());
        }
        event(state, next, table);
        ControlFlow::Continue(())
    });
    if read.map_err(|error| input.failure(error))?.is_continue() {
        return Ok(reader);
    }
    *state = fresh();
    let mut reader = input.in_time_order()?;
    let read = reader.for_each(&mut |next, table| {
        event(state, next, table);
        ControlFlow::Continue(())
    });
    // Never broken off.
    let _ = read.map_err(|error| input.failure(error))?;
    Ok(reader)
}
