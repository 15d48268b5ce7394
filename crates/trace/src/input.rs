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

    /// Whether more bytes may be written after those that [`Input::fill`] finds. While this
    /// is true, a reader that lacks bytes keeps its position and returns that there is
    /// nothing yet.
    fn may_grow(&self) -> bool {
        false
    }
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
    /// The source has no more bytes. Not set while it grows.
    ended: bool,
    growth: Growth,
}

/// Whether a source has all of its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// A read waits for bytes, or there are none.
    Complete,
    /// The end of the source is only the end of what is written so far.
    Growing,
    /// The same, but nothing more will be written.
    Stopped,
}

impl<R: Read> Stream<R> {
    /// Reads from `read`, which need not be buffered.
    pub fn new(read: R) -> Self {
        let buffer = vec![0; MAX_FILL].into();
        Stream { read, buffer, start: 0, end: 0, ended: false, growth: Growth::Complete }
    }

    /// Reads from a source that is still being written. A read of 0 bytes, or one that
    /// would block, means that there are no more bytes yet.
    pub fn growing(read: R) -> Self {
        Stream { growth: Growth::Growing, ..Stream::new(read) }
    }

    /// Nothing more will be written: what is there now, read or not, is all.
    pub fn stop_growing(&mut self) {
        self.growth = Growth::Stopped;
    }

    /// The source.
    pub fn source(&self) -> &R {
        &self.read
    }

    /// Reads as much as one call gives; false if that is nothing.
    fn read_some(&mut self) -> io::Result<bool> {
        let room = self.buffer.get_mut(self.end..).unwrap_or(&mut []);
        let read = match self.read.read(room) {
            Err(error)
                if self.growth != Growth::Complete && error.kind() == io::ErrorKind::WouldBlock =>
            {
                Ok(0)
            }
            read => read,
        };
        match read {
            Ok(0) => {
                self.ended = !self.may_grow();
                Ok(false)
            }
            Ok(count) => {
                self.end += count;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
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
        while self.end - self.start < want && !self.ended && self.read_some()? {}
        Ok(())
    }

    #[inline(always)]
    fn visible(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or(&[])
    }

    fn consume(&mut self, count: usize) {
        self.start = self.end.min(self.start + count);
    }

    fn may_grow(&self) -> bool {
        self.growth == Growth::Growing
    }
}
