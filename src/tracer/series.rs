//! Starting a session whose trace is a series of files.
//!
//! On the host's threads, outside of hooks, except for what says otherwise.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::sampling::Rate;
use crate::sys::part_files::PartFiles;
use crate::tracer::counting_output::CountingOutput;
use crate::tracer::failure::Failure;
use crate::tracer::info::{entropy, new_file};
use crate::tracer::options::Options;
use crate::tracer::start_error::StartError;
use crate::tracer::state::State;
use crate::writer::{
    ClaimedPart, MakePart, RotationLimits, Series, SeriesParts, SharedFiles, TraceOutput,
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

/// The first part of a series: its output, and how the series goes on.
pub(super) fn begin(
    options: &Options,
    limits: RotationLimits,
    state: &Arc<State>,
    current: &CurrentFile,
) -> Result<(CountingOutput, SeriesParts<CountingOutput>), StartError> {
    let pattern = OsStr::from_bytes(&options.file);
    let files = PartFiles::new(pattern, limits.keep).map_err(|error| {
        let message = format!("cannot trace into {}: {error}", pattern.display());
        StartError::new(Failure::File, message)
    })?;
    let refused = |error| StartError::new(Failure::File, format!("{error}; not tracing"));
    let series = Series::new(SharedFiles::new(files, limits), limits, series_id());
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
    Ok((out, SeriesParts { first: Some((Box::new(series), claimed)), make }))
}

fn series_id() -> [u8; 16] {
    let mut id = [0; 16];
    for half in id.chunks_mut(8) {
        half.copy_from_slice(&entropy().to_le_bytes());
    }
    id
}
