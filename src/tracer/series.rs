//! A session whose trace is a series of parts: its first part, and how the others are made.
//!
//! On the host's threads, outside of hooks, except for what says otherwise.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::sampling::Rate;
use crate::sys::part_files::PartFiles;
use crate::tracer::counting_output::CountingOutput;
use crate::tracer::failure::Failure;
use crate::tracer::flight_recorder::FlightRecorder;
use crate::tracer::info::{entropy, new_file};
use crate::tracer::options::Options;
use crate::tracer::start_error::StartError;
use crate::tracer::state::State;
use crate::writer::{
    ClaimedPart, MakePart, RotationLimits, Series, SeriesParts, SharedFiles, Store, TraceOutput,
};

/// The file that is being written. The writer thread says so when a series goes on.
#[derive(Clone, Default)]
pub(crate) struct CurrentFile(Arc<Mutex<PathBuf>>);

impl CurrentFile {
    pub(super) fn set(&self, file: &OsStr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = PathBuf::from(file);
    }

    pub(super) fn get(&self) -> PathBuf {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What a session is a series for.
pub(super) enum Parts<'a> {
    /// The trace goes on in other files.
    Files(RotationLimits),
    /// The last parts are kept in memory.
    Memory(&'a FlightRecorder),
}

impl Parts<'_> {
    /// Where they are, and when the next one begins.
    fn store(&self, options: &Options) -> Result<(Store, RotationLimits), StartError> {
        match *self {
            Parts::Files(limits) => {
                let pattern = OsStr::from_bytes(&options.file);
                let files = PartFiles::new(pattern, limits.keep).map_err(|error| {
                    let message = format!("cannot trace into {}: {error}", pattern.display());
                    StartError::new(Failure::File, message)
                })?;
                Ok((Store::Files(SharedFiles::new(files, limits)), limits))
            }
            Parts::Memory(recorder) => {
                let (bytes, age) = (recorder.limits.part_bytes(), recorder.limits.part_time());
                let limits = RotationLimits { bytes: Some(bytes), age: Some(age), keep: 0 };
                Ok((Store::Memory(Arc::clone(&recorder.recording)), limits))
            }
        }
    }
}

/// The first part of a series: its output, and how the series goes on.
pub(super) fn begin(
    options: &Options,
    parts: &Parts<'_>,
    state: &Arc<State>,
    current: &CurrentFile,
) -> Result<(CountingOutput, SeriesParts<CountingOutput>), StartError> {
    let (store, limits) = parts.store(options)?;
    let refused = |error| StartError::new(Failure::File, format!("{error}; not tracing"));
    let series = Series::new(store, limits, series_id());
    let claimed: ClaimedPart = series.claim().map_err(refused)?;
    let output: Box<dyn TraceOutput> = Box::new(series.open(&claimed.trace).map_err(refused)?);
    let (options, state, current) = (options.clone(), Arc::clone(state), current.clone());
    let out = CountingOutput { output, state: Arc::clone(&state) };
    let make: MakePart<CountingOutput> = Box::new(move |output, rate, start_us| {
        current.set(output.name());
        let out = CountingOutput { output, state: Arc::clone(&state) };
        // A part is begun at a rate that the session has.
        let rate = Rate::new(rate).unwrap_or(options.rate);
        new_file(out, &options, rate, start_us)
    });
    Ok((out, SeriesParts { first: Some((Box::new(series), claimed)), make: Some(make) }))
}

/// The series of one file that a trace at many rates is.
pub(super) fn begin_of_one_file(
    out: &CountingOutput,
) -> Result<SeriesParts<CountingOutput>, StartError> {
    let refused = |why: String| StartError::new(Failure::File, format!("{why}; not tracing"));
    let name = out.name();
    if !out.is_file() {
        let name = name.display();
        return Err(refused(format!(
            "a budget changes the rate, and {name} is no file, beside which others could be written: \
             name a file, or trace at one rate"
        )));
    }
    let made = Series::beside(Path::new(name), series_id());
    let (series, claimed) = made.map_err(|error| refused(error.to_string()))?;
    Ok(SeriesParts { first: Some((Box::new(series), claimed)), make: None })
}

/// The id of a new series.
pub(super) fn series_id() -> [u8; 16] {
    let mut id = [0; 16];
    for half in id.chunks_mut(8) {
        half.copy_from_slice(&entropy().to_le_bytes());
    }
    id
}
