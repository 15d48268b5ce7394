//! The one reading that `report` and its kin are made from.
//!
//! Live sizes need the order of time. A trace of one domain has it already, so
//! it is read as it is; when a second domain appears, the reading begins again
//! with the domains merged. A pipe is kept in a temporary file, since it cannot
//! be read again.

use std::path::Path;
use std::rc::Rc;

use heaptap_report::{Aggregate, Aggregator, Lifespans, Options};
use heaptap_trace::{Event, LocationTable, Mode};

use crate::exit_status::{Failure, Verdict};
use crate::io::input::{Events, Input};

/// What a reading leaves behind.
pub(crate) struct Gathered {
    pub(crate) aggregate: Aggregate,
    pub(crate) input: Input,
    reader: Box<dyn Events>,
}

impl Gathered {
    /// Reads the whole trace. What the selection says of lifetimes takes a
    /// reading before.
    pub(crate) fn read(path: &Path, mut options: Options) -> Result<Gathered, Failure> {
        let input = Input::open(path)?;
        input.make_repeatable()?;
        let span = options.selection.lifetime;
        if !span.is_all() {
            let mut found = Lifespans::new(span);
            in_time_order(&input, || Lifespans::new(span), &mut found, Lifespans::see)?;
            if !found.finish() {
                return Err(Failure::Trouble(format!(
                    "{}: too many blocks are alive at once to select them by lifetime; \
                     make a smaller trace first: heaptap thin FILE small.ctf --rate …",
                    input.name()
                )));
            }
            options.lifespans = Some(Rc::new(found));
        }
        let info = input.in_file_order(Mode::Lenient)?.info().clone();
        let fresh = || Aggregator::new(&info, options.clone());
        let mut aggregator = fresh();
        let reader = in_time_order(&input, fresh, &mut aggregator, Aggregator::event)?;
        input.end_progress();
        Ok(Gathered { aggregate: aggregator.finish(), input, reader })
    }

    pub(crate) fn locations(&self) -> &LocationTable {
        self.reader.locations()
    }

    pub(crate) fn info(&self) -> &heaptap_trace::TraceInfo {
        self.reader.info()
    }

    /// Says on standard error what is missing.
    pub(crate) fn verdict(&self) -> Verdict {
        self.input.report(self.reader.losses())
    }
}

/// Shows every event to `state`, in the order of time; `fresh` makes another
/// one when it turns out that the order of the file is not that.
fn in_time_order<S>(
    input: &Input,
    fresh: impl Fn() -> S,
    state: &mut S,
    see: impl Fn(&mut S, &Event<'_>, &LocationTable),
) -> Result<Box<dyn Events>, Failure> {
    let mut reader = input.in_file_order(Mode::Lenient)?;
    let mut domain = None;
    loop {
        let next = reader.next_located().map_err(|error| input.failure(error))?;
        let Some((event, table)) = next else { return Ok(Box::new(reader)) };
        if *domain.get_or_insert(event.domain) != event.domain {
            break;
        }
        see(state, &event, table);
    }
    *state = fresh();
    let mut reader = input.in_time_order()?;
    while let Some((event, table)) = reader.next_located().map_err(|error| input.failure(error))? {
        see(state, &event, table);
    }
    Ok(Box::new(reader))
}
