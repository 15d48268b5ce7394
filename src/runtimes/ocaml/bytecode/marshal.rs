//! Values in OCaml's marshalled form.
//!
//! As `runtime/intern.c` reads them and `runtime/caml/intext.h` (4.14.1) lists
//! the codes. Only what data made of blocks, strings and integers needs; code
//! and most custom blocks are refused. Iterative, so that no list is too long.

use super::tree::Tree;

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Int(i64),
    /// An index among the objects.
    Object(usize),
}

#[derive(Clone, Copy, Debug)]
enum Object {
    /// The first of the fields, and how many there are.
    Block(usize, usize),
    /// From and to in the input.
    String(usize, usize),
    /// Something that has no use here.
    Opaque,
}

/// A value with all that it refers to.
pub(super) struct Values<'a> {
    input: &'a [u8],
    objects: Vec<Object>,
    fields: Vec<Value>,
    pub(super) root: Value,
}

/// What reading one item gives.
enum Item {
    Done(Value),
    /// An object that has this many fields still to read.
    Open(usize, usize),
}

struct Reader<'a> {
    input: &'a [u8],
    at: usize,
    objects: Vec<Object>,
    fields: Vec<Value>,
}

/// The lengths of header and data at the start of the input.
pub(super) fn lengths(input: &[u8]) -> Option<(usize, usize)> {
    let word = |at: usize| input.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    let long = |at: usize| input.get(at..at + 8)?.try_into().ok().map(u64::from_be_bytes);
    match word(0)? {
        0x8495_A6BE => Some((20, word(4)? as usize)),
        0x8495_A6BF => Some((32, usize::try_from(long(8)?).ok()?)),
        _ => None,
    }
}

impl<'a> Values<'a> {
    /// Reads the value at the start of the input.
    pub(super) fn read(input: &'a [u8]) -> Option<Values<'a>> {
        let (header, data) = lengths(input)?;
        let input = input.get(header..header.checked_add(data)?)?;
        let mut reader = Reader { input, at: 0, objects: Vec::new(), fields: Vec::new() };
        let root = reader.value()?;
        Some(Values { input, objects: reader.objects, fields: reader.fields, root })
    }
}

impl Tree for Values<'_> {
    type Value = Value;

    fn field(&self, value: Value, index: usize) -> Option<Value> {
        let Value::Object(object) = value else { return None };
        match *self.objects.get(object)? {
            Object::Block(first, count) if index < count => self.fields.get(first + index).copied(),
            _ => None,
        }
    }

    fn string(&self, value: Value) -> Option<&[u8]> {
        let Value::Object(object) = value else { return None };
        match *self.objects.get(object)? {
            Object::String(from, to) => self.input.get(from..to),
            _ => None,
        }
    }

    fn int(&self, value: Value) -> Option<i64> {
        if let Value::Int(int) = value { Some(int) } else { None }
    }
}

impl Reader<'_> {
    /// A value and everything inside it, outer before inner, first before last.
    fn value(&mut self) -> Option<Value> {
        let mut open = Vec::new();
        let root = match self.item()? {
            Item::Done(value) => return Some(value),
            Item::Open(first, count) => {
                open.push((first, first + count));
                Value::Object(self.objects.len() - 1)
            }
        };
        while let Some((next, end)) = open.pop() {
            if next == end {
                continue;
            }
            open.push((next + 1, end));
            let value = match self.item()? {
                Item::Done(value) => value,
                Item::Open(first, count) => {
                    open.push((first, first + count));
                    Value::Object(self.objects.len() - 1)
                }
            };
            *self.fields.get_mut(next)? = value;
        }
        Some(root)
    }

    fn item(&mut self) -> Option<Item> {
        let code = self.bytes::<1>()?[0];
        Some(match code {
            0x80.. => self.block(usize::from(code >> 4 & 7))?,
            0x40..0x80 => Item::Done(Value::Int(i64::from(code & 0x3F))),
            0x20..0x40 => self.string(usize::from(code & 0x1F))?,
            0x00 => Item::Done(Value::Int(i64::from(i8::from_be_bytes(self.bytes()?)))),
            0x01 => Item::Done(Value::Int(i64::from(i16::from_be_bytes(self.bytes()?)))),
            0x02 => Item::Done(Value::Int(i64::from(i32::from_be_bytes(self.bytes()?)))),
            0x03 => Item::Done(Value::Int(i64::from_be_bytes(self.bytes()?))),
            0x04 | 0x05 | 0x06 | 0x14 => {
                let distance = self.count(match code {
                    0x04 => 1,
                    0x05 => 2,
                    0x06 => 4,
                    _ => 8,
                })?;
                let object = self.objects.len().checked_sub(distance)?;
                Item::Done(Value::Object(object))
            }
            // Header: the size is above tag and colour.
            0x08 => {
                let header = self.count(4)?;
                self.block(header >> 10)?
            }
            0x13 => {
                let header = self.count(8)?;
                self.block(header >> 10)?
            }
            0x09 | 0x0A | 0x15 => {
                let length = self.count(match code {
                    0x09 => 1,
                    0x0A => 4,
                    _ => 8,
                })?;
                self.string(length)?
            }
            0x0B | 0x0C => self.opaque(8)?,
            0x0D | 0x0E => {
                let count = self.count(1)?;
                self.opaque(count.checked_mul(8)?)?
            }
            0x0F | 0x07 => {
                let count = self.count(4)?;
                self.opaque(count.checked_mul(8)?)?
            }
            // A custom block of fixed size: boxed integers.
            0x19 => {
                let length = match self.bytes::<3>()? {
                    [b'_', b'i', 0] => 4,
                    [b'_', b'j', 0] => 8,
                    [b'_', b'n', 0] => match self.bytes::<1>()?[0] {
                        1 => 4,
                        2 => 8,
                        _ => return None,
                    },
                    _ => return None,
                };
                self.opaque(length)?
            }
            _ => return None,
        })
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.input.get(self.at..self.at.checked_add(N)?)?.try_into().ok()?;
        self.at += N;
        Some(bytes)
    }

    /// A number of this width.
    fn count(&mut self, width: usize) -> Option<usize> {
        let bytes = self.input.get(self.at..self.at.checked_add(width)?)?;
        self.at += width;
        let number = bytes.iter().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
        usize::try_from(number).ok()
    }

    fn block(&mut self, size: usize) -> Option<Item> {
        if size == 0 {
            // One of the runtime's constants, which are not numbered.
            return Some(Item::Done(Value::Int(0)));
        }
        // Every field takes a byte at least.
        if size > self.input.len() - self.at {
            return None;
        }
        let first = self.fields.len();
        self.fields.resize(first + size, Value::Int(0));
        self.objects.push(Object::Block(first, size));
        Some(Item::Open(first, size))
    }

    fn string(&mut self, length: usize) -> Option<Item> {
        let end = self.skip(length)?;
        self.objects.push(Object::String(end - length, end));
        Some(Item::Done(Value::Object(self.objects.len() - 1)))
    }

    fn opaque(&mut self, length: usize) -> Option<Item> {
        self.skip(length)?;
        self.objects.push(Object::Opaque);
        Some(Item::Done(Value::Object(self.objects.len() - 1)))
    }

    /// Skips this many bytes and returns where they end.
    fn skip(&mut self, length: usize) -> Option<usize> {
        let end = self.at.checked_add(length).filter(|&end| end <= self.input.len())?;
        self.at = end;
        Some(end)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// With the small header.
    pub(in super::super) fn marshalled(data: &[u8]) -> Vec<u8> {
        let mut all = 0x8495_A6BEu32.to_be_bytes().to_vec();
        all.extend((data.len() as u32).to_be_bytes());
        all.extend([0; 12]);
        all.extend(data);
        all
    }

    /// `Marshal.to_string ([ "ab"; "ab" ], 300, -2, [||])` with both strings the
    /// same: a pair of shared strings behind each other.
    #[test]
    fn what_ocaml_writes_is_read() {
        let data = [
            0xC0, // a block of 4 fields, tag 0
            0xA0, 0x22, b'a', b'b', // a cons cell and its string
            0xA0, 0x04, 0x02, 0x40, // another, the string two objects before, []
            0x01, 0x01, 0x2C, // 300
            0x00, 0xFE, // -2
            0x80, // an empty block
        ];
        let input = marshalled(&data);
        let values = Values::read(&input).unwrap();
        let list = values.field(values.root, 0).unwrap();
        assert_eq!(values.string(values.field(list, 0).unwrap()), Some(&b"ab"[..]));
        let rest = values.field(list, 1).unwrap();
        assert_eq!(values.string(values.field(rest, 0).unwrap()), Some(&b"ab"[..]));
        assert_eq!(values.field(rest, 1), Some(Value::Int(0)));
        let int = |index| values.int(values.field(values.root, index).unwrap());
        assert_eq!((int(1), int(2), int(3)), (Some(300), Some(-2), Some(0)));
        assert_eq!(values.field(values.root, 4), None);
    }

    #[test]
    fn what_is_not_data_is_refused() {
        for data in [&[0x10][..], &[0x12, b'x', 0], &[0xFF, 0x40], &[0x04, 1], &[]] {
            assert!(Values::read(&marshalled(data)).is_none(), "{data:?}");
        }
        assert!(Values::read(b"no header at all....").is_none());
    }

    proptest! {
        /// Whatever the bytes are, there is an answer.
        #[test]
        fn nothing_makes_it_fall(data in prop::collection::vec(any::<u8>(), 0..200)) {
            let input = marshalled(&data);
            if let Some(values) = Values::read(&input) {
                let _ = values.field(values.root, 0).and_then(|field| values.string(field));
            }
        }
    }
}
