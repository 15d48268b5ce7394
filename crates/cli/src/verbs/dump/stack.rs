//! Backtraces as text, most of which was there before.
//!
//! A backtrace shares most of its frames with the one before it. The text of
//! the shared ones is kept and copied; only the others are formatted. That
//! makes half a gigabyte of text out of two megabytes of trace in a second.

use std::io::{self, Write};

use heaptap_trace::{Code, LocationTable};

/// Appends the text of a frame to a line; the flag is true for the first frame.
pub(crate) type PutFrame = fn(&mut Vec<u8>, bool, Code, &LocationTable);

/// The last backtrace and its text.
pub(crate) struct StackText {
    put: PutFrame,
    frames: Vec<Code>,
    /// Where the text of each frame ends.
    ends: Vec<usize>,
    text: Vec<u8>,
    /// Room for a frame that is too much to keep.
    spare: Vec<u8>,
}

/// Text beyond this is not kept: a hostile trace can make gigabytes of it.
const MOST_KEPT: usize = 4 << 20;

impl StackText {
    pub(crate) fn new(put: PutFrame) -> Self {
        StackText { put, frames: Vec::new(), ends: Vec::new(), text: Vec::new(), spare: Vec::new() }
    }

    /// Writes the frames of a backtrace.
    pub(crate) fn write(
        &mut self,
        out: &mut impl Write,
        frames: &[Code],
        table: &LocationTable,
    ) -> io::Result<()> {
        self.keep_common(frames);
        let mut rest = frames[self.frames.len()..].iter();
        while self.text.len() < MOST_KEPT
            && let Some(&code) = rest.next()
        {
            (self.put)(&mut self.text, self.frames.is_empty(), code, table);
            self.frames.push(code);
            self.ends.push(self.text.len());
        }
        out.write_all(&self.text)?;
        for &code in rest {
            self.spare.clear();
            (self.put)(&mut self.spare, false, code, table);
            out.write_all(&self.spare)?;
        }
        Ok(())
    }

    /// Drops all but the frames that the last backtrace and this one share.
    fn keep_common(&mut self, frames: &[Code]) {
        let pairs = self.frames.iter().zip(frames);
        let common = pairs.take_while(|(last, this)| last == this).count();
        self.frames.truncate(common);
        self.ends.truncate(common);
        self.text.truncate(self.ends.last().copied().unwrap_or(0));
    }
}
