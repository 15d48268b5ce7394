//! Values as the compiler writes them (`runtime/caml/intext.h`, the same from 4.12 to 5.4).
//!
//! Enough of the format for lists of names and digests: numbers, strings, blocks, and references
//! to what came before. Compressed values are measured, and not read.

/// A value, whose parts are numbers of other values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Number(i64),
    Text(&'a [u8]),
    Block(u32, Vec<usize>),
}

/// All values that one value is made of. The first one is the whole.
#[derive(Debug)]
pub(crate) struct Marshalled<'a> {
    values: Vec<Value<'a>>,
}

/// More values are not read.
const MOST_VALUES: usize = 1 << 22;

/// The lengths of a value's header and of what follows it.
pub(crate) fn length(bytes: &[u8]) -> Option<(usize, u64)> {
    let magic = bytes.get(..4)?;
    match magic {
        b"\x84\x95\xa6\xbe" => {
            let data = u32::from_be_bytes(bytes.get(4..8)?.try_into().ok()?);
            Some((20, data.into()))
        }
        b"\x84\x95\xa6\xbf" => Some((32, u64::from_be_bytes(bytes.get(8..16)?.try_into().ok()?))),
        // Compressed: numbers of seven bits to a byte.
        b"\x84\x95\xa6\xbd" => {
            let header = usize::from(*bytes.get(4)? & 0x3f);
            let mut data: u64 = 0;
            for byte in bytes.get(5..header)? {
                data = data.checked_mul(128)? | u64::from(byte & 0x7f);
                if byte & 0x80 == 0 {
                    return Some((header, data));
                }
            }
            None
        }
        _ => None,
    }
}

impl<'a> Marshalled<'a> {
    /// Reads a value that is not compressed.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Marshalled<'a>> {
        let (header, size) = length(bytes)?;
        if bytes.get(3) == Some(&0xbd) {
            return None;
        }
        let data = bytes.get(header..header.checked_add(usize::try_from(size).ok()?)?)?;
        Reader { data, at: 0, values: Vec::new(), objects: Vec::new() }.read()
    }

    /// The whole.
    pub(crate) fn root(&self) -> &Value<'a> {
        self.get(0)
    }

    pub(crate) fn get(&self, index: usize) -> &Value<'a> {
        self.values.get(index).unwrap_or(&Value::Number(0))
    }

    /// The elements of a list.
    pub(crate) fn list(&self, list: &Value<'a>) -> Option<Vec<&Value<'a>>> {
        let mut elements = Vec::new();
        let mut at = list;
        loop {
            match at {
                Value::Number(0) => return Some(elements),
                // A reference may lead back.
                Value::Block(0, fields) if elements.len() < self.values.len() => {
                    let &[head, tail] = fields.as_slice() else { return None };
                    elements.push(self.get(head));
                    at = self.get(tail);
                }
                _ => return None,
            }
        }
    }
}

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
    values: Vec<Value<'a>>,
    /// The values that references count: blocks and strings.
    objects: Vec<usize>,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let bytes = self.data.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// Depth first, the fields of a block from the first to the last.
    fn read(mut self) -> Option<Marshalled<'a>> {
        // Blocks with fields that are still to come, and how many those are.
        let mut open: Vec<(usize, usize)> = Vec::new();
        self.next(&mut open)?;
        while let Some((block, left)) = open.pop() {
            if left == 0 {
                continue;
            }
            open.push((block, left - 1));
            let index = self.next(&mut open)?;
            if let Some(Value::Block(_, fields)) = self.values.get_mut(block) {
                fields.push(index);
            }
        }
        Some(Marshalled { values: self.values })
    }

    /// Reads a value; the number it has.
    fn next(&mut self, open: &mut Vec<(usize, usize)>) -> Option<usize> {
        if self.values.len() >= MOST_VALUES {
            return None;
        }
        let code = *self.take(1)?.first()?;
        let value = match code {
            0x80.. => return self.block(u32::from(code & 0xf), u64::from(code >> 4 & 7), open),
            0x40.. => Value::Number((code & 0x3f).into()),
            0x20.. => Value::Text(self.take((code & 0x1f).into())?),
            0x00 => Value::Number(i8::from_be_bytes(self.number()?).into()),
            0x01 => Value::Number(i16::from_be_bytes(self.number()?).into()),
            0x02 => Value::Number(i32::from_be_bytes(self.number()?).into()),
            0x03 => Value::Number(i64::from_be_bytes(self.number()?)),
            0x04 => {
                let back = u8::from_be_bytes(self.number()?);
                return self.shared(back.into());
            }
            0x05 => {
                let back = u16::from_be_bytes(self.number()?);
                return self.shared(back.into());
            }
            0x06 => {
                let back = u32::from_be_bytes(self.number()?);
                return self.shared(back as usize);
            }
            0x08 => {
                let header = u32::from_be_bytes(self.number()?);
                return self.block(header & 0xff, u64::from(header >> 10), open);
            }
            0x09 => {
                let size = u8::from_be_bytes(self.number()?);
                Value::Text(self.take(size.into())?)
            }
            0x0a => {
                let size = u32::from_be_bytes(self.number()?);
                Value::Text(self.take(size as usize)?)
            }
            _ => return None,
        };
        let is_object = matches!(value, Value::Text(_));
        self.values.push(value);
        let index = self.values.len() - 1;
        if is_object {
            self.objects.push(index);
        }
        Some(index)
    }

    fn shared(&self, back: usize) -> Option<usize> {
        self.objects.get(self.objects.len().checked_sub(back)?).copied()
    }

    fn block(&mut self, tag: u32, size: u64, open: &mut Vec<(usize, usize)>) -> Option<usize> {
        let size = usize::try_from(size).ok()?;
        // Each field takes a byte at least.
        if size > self.data.len().saturating_sub(self.at) {
            return None;
        }
        self.values.push(Value::Block(tag, Vec::with_capacity(size)));
        let index = self.values.len() - 1;
        // Blocks without fields are not counted.
        if size > 0 {
            self.objects.push(index);
            open.push((index, size));
        }
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value with its header.
    fn marshalled(data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x84\x95\xa6\xbe".to_vec();
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend([0; 12]);
        bytes.extend(data);
        bytes
    }

    #[test]
    fn lists_with_references_are_read() {
        // `let a = "a" in [ ("a", Some a); (a, None) ]`, as OCaml 4.13.1 writes it with `a` shared.
        let bytes = marshalled(b"\xa0\xa0\x21a\x90\x04\x02\xa0\xa0\x04\x04\x40\x40");
        let value = Marshalled::read(&bytes).unwrap();
        let list = value.list(value.root()).unwrap();
        assert_eq!(list.len(), 2);
        for pair in list {
            let Value::Block(0, fields) = pair else { panic!("{pair:?}") };
            assert_eq!(value.get(fields[0]), &Value::Text(b"a"));
        }
    }

    #[test]
    fn nothing_hostile_is_believed() {
        for data in [
            &b""[..],
            b"\xa0",
            b"\x04\x01",
            b"\x08\xff\xff\xff\x00",
            b"\x0a\xff\xff\xff\xff",
            b"\x12",
        ] {
            assert!(Marshalled::read(&marshalled(data)).is_none(), "{data:?}");
        }
        // A list that is its own end.
        let bytes = marshalled(b"\xa0\x41\x04\x01");
        let value = Marshalled::read(&bytes).unwrap();
        assert!(value.list(value.root()).is_none());
        // All prefixes of a value.
        let whole = marshalled(b"\xa0\xa0\x21a\x90\x04\x02\xa0\xa0\x04\x04\x40\x40");
        for end in 0..whole.len() {
            assert!(Marshalled::read(&whole[..end]).is_none());
        }
    }

    #[test]
    fn compressed_values_are_measured() {
        let bytes = b"\x84\x95\xa6\xbd\x0a\x81\x00\x82\x00\x05rest";
        assert_eq!(length(bytes), Some((10, 128)));
        assert!(Marshalled::read(bytes).is_none());
    }
}
