//! Numbers and strings of an archive.

use std::fmt;

use heaptap_codec::Cursor;
use heaptap_codec::varint::{fold, put_varint, unfold};

const TOO_SHORT: &str = "the data ends too early";

/// Why an archive cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveError {
    /// Bytes from the start of the archive.
    pub at: usize,
    /// What is wrong there.
    pub problem: &'static str,
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {} of the page's data)", self.problem, self.at)
    }
}

impl std::error::Error for ArchiveError {}

/// Appends numbers and strings.
#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn number(&mut self, number: u64) {
        put_varint(&mut self.0, number);
    }

    /// A difference, which may be negative and wraps.
    pub(super) fn step(&mut self, from: u64, to: u64) {
        self.number(fold(to.wrapping_sub(from)));
    }

    /// A list, its length first.
    pub(super) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
        mut put: impl FnMut(&mut Writer, T),
    ) {
        let items = items.into_iter();
        self.number(items.len() as u64);
        items.for_each(|item| put(self, item));
    }

    pub(super) fn float(&mut self, number: f64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

/// Takes numbers and strings off the front.
pub(super) struct Reader<'a> {
    cursor: Cursor<'a>,
    length: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(all: &'a [u8]) -> Self {
        Reader { cursor: Cursor::new(all), length: all.len() }
    }

    pub(super) fn error(&self, problem: &'static str) -> ArchiveError {
        ArchiveError { at: self.length - self.cursor.remaining(), problem }
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], ArchiveError> {
        self.cursor.take(length).ok_or(self.error(TOO_SHORT))
    }

    pub(super) fn number(&mut self) -> Result<u64, ArchiveError> {
        self.cursor.varint().ok_or_else(|| {
            let ends = self.cursor.is_empty();
            self.error(if ends { TOO_SHORT } else { "a number is too long" })
        })
    }

    /// A number that must be less than `limit`.
    pub(super) fn below(&mut self, limit: usize) -> Result<usize, ArchiveError> {
        let number = self.number()?;
        let found = usize::try_from(number).ok().filter(|&number| number < limit);
        found.ok_or(self.error("a number is out of range"))
    }

    pub(super) fn small<T: TryFrom<u64>>(&mut self) -> Result<T, ArchiveError> {
        T::try_from(self.number()?).map_err(|_| self.error("a number is out of range"))
    }

    pub(super) fn step(&mut self, from: u64) -> Result<u64, ArchiveError> {
        Ok(from.wrapping_add(unfold(self.number()?)))
    }

    pub(super) fn float(&mut self) -> Result<f64, ArchiveError> {
        self.cursor.f64().ok_or(self.error(TOO_SHORT))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], ArchiveError> {
        let length = self.below(usize::MAX)?;
        self.take(length)
    }

    pub(super) fn text(&mut self) -> Result<String, ArchiveError> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    /// The length of a list, each item of which takes a byte at least.
    pub(super) fn length(&mut self) -> Result<usize, ArchiveError> {
        self.below(self.cursor.remaining() + 1)
    }

    /// A list, its length first.
    pub(super) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, ArchiveError>,
    ) -> Result<Vec<T>, ArchiveError> {
        (0..self.length()?).map(|_| item(self)).collect()
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.cursor.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let numbers = [0, 1, 127, 128, 1 << 35, u64::MAX];
        let mut writer = Writer::default();
        for number in numbers {
            writer.number(number);
            writer.step(77, number);
        }
        writer.float(-0.1);
        writer.bytes(b"abc");
        let mut reader = Reader::new(&writer.0);
        for number in numbers {
            assert_eq!(reader.number(), Ok(number));
            assert_eq!(reader.step(77), Ok(number));
        }
        assert_eq!(reader.float(), Ok(-0.1));
        assert_eq!(reader.text().as_deref(), Ok("abc"));
        assert!(reader.is_at_end() && reader.number().is_err());
    }
}
