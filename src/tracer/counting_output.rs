//! An output whose bytes are counted for the session's statistics.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use heaptap_trace::Completion;

use crate::tracer::state::State;
use crate::writer::TraceOutput;

/// Counts the bytes written to any output.
pub(crate) struct CountingOutput {
    pub(crate) output: Box<dyn TraceOutput>,
    pub(crate) state: Arc<State>,
}

impl Write for CountingOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.output.write(bytes)?;
        self.state.bytes.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

impl TraceOutput for CountingOutput {
    fn name(&self) -> &OsStr {
        self.output.name()
    }

    fn set_completion(&mut self, completion: Completion) {
        self.output.set_completion(completion);
    }

    fn is_file(&self) -> bool {
        self.output.is_file()
    }

    fn was_truncated(&mut self) -> bool {
        self.output.was_truncated()
    }

    fn restart(&mut self) -> io::Result<()> {
        self.output.restart()
    }
}
