//! The file, with its bytes counted.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::sys::output::Output;
use crate::tracer::state::State;

/// Counts what is written, for the statistics.
pub(crate) struct CountingOutput {
    pub(crate) out: Output,
    pub(crate) state: Arc<State>,
}

impl Write for CountingOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.state.bytes.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
