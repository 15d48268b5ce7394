//! The bytes of a trace: a slice, a file or a pipe.
//!
//! A reader looks at one stretch of the file at a time, such as a packet, and never
//! goes back, so any [`Read`] will do, and the buffer does not depend on the size of
//! the file.

use std::io::{self, Read};

/// The most bytes that a reader may ask for at once.
pub(crate) const MAX_FILL: usize = 128 << 10;

/// Bytes with a position that moves forward.
pub trait Input {
    /// Makes `want` bytes from the current position visible, or fewer if the input
    /// ends before. `want` is at most 128 KiB.
    fn fill(&mut self, want: usize) -> io::Result<()>;

    /// The bytes visible from the current position.
    fn visible(&self) -> &[u8];

    /// Advances the position by `count` visible bytes.
    fn consume(&mut self, count: usize);
}

impl Input for &[u8] {
    fn fill(&mut self, _want: usize) -> io::Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn visible(&self) -> &[u8] {
        self
    }

    fn consume(&mut self, count: usize) {
        *self = self.get(count..).unwrap_or(&[]);
    }
}

/// A buffer over any [`Read`].
pub struct Stream<R> {
    read: R,
    buffer: Box<[u8]>,
    /// `buffer[start..end]` is visible.
    start: usize,
    end: usize,
    ended: bool,
}

impl<R: Read> Stream<R> {
    /// Reads from `read`, which need not be buffered.
    pub fn new(read: R) -> Self {
        Stream { read, buffer: vec![0; MAX_FILL].into(), start: 0, end: 0, ended: false }
    }

    /// Reads as much as one call gives.
    fn read_some(&mut self) -> io::Result<()> {
        let room = self.buffer.get_mut(self.end..).unwrap_or(&mut []);
        match self.read.read(room) {
            Ok(0) => self.ended = true,
            Ok(count) => self.end += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl<R: Read> Input for Stream<R> {
    fn fill(&mut self, want: usize) -> io::Result<()> {
        debug_assert!(want <= MAX_FILL);
        if self.start + want > MAX_FILL {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        while self.end - self.start < want && !self.ended {
            self.read_some()?;
        }
        Ok(())
    }

    #[inline(always)]
    fn visible(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or(&[])
    }

    fn consume(&mut self, count: usize) {
        self.start = self.end.min(self.start + count);
    }
}
