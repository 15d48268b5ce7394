//! Numbers and strings of an archive.

use std::fmt;

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
    /// Seven bits a byte, the low ones first.
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// A difference, which may be negative and wraps.
    pub(super) fn step(&mut self, from: u64, to: u64) {
        let step = to.wrapping_sub(from) as i64;
        self.number((step << 1 ^ step >> 63) as u64);
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
    all: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(all: &'a [u8]) -> Self {
        Reader { all, at: 0 }
    }

    pub(super) fn error(&self, problem: &'static str) -> ArchiveError {
        ArchiveError { at: self.at, problem }
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], ArchiveError> {
        let end = self.at.checked_add(length);
        let taken = end.and_then(|end| self.all.get(self.at..end));
        let taken = taken.ok_or(self.error("the data ends too early"))?;
        self.at += length;
        Ok(taken)
    }

    pub(super) fn number(&mut self) -> Result<u64, ArchiveError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let &byte = self.all.get(self.at).ok_or(self.error("the data ends too early"))?;
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.error("a number is too long"))
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
        let coded = self.number()?;
        Ok(from.wrapping_add(coded >> 1 ^ (coded & 1).wrapping_neg()))
    }

    pub(super) fn float(&mut self) -> Result<f64, ArchiveError> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(f64::from_le_bytes(bytes))
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
        let left = self.all.len() - self.at;
        self.below(left + 1)
    }

    /// A list of `length` items.
    pub(super) fn list<T>(
        &mut self,
        length: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, ArchiveError>,
    ) -> Result<Vec<T>, ArchiveError> {
        (0..length).map(|_| item(self)).collect()
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.all.len()
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
