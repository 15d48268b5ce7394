//! The columns of a Parquet file: their descriptions, and their values in a row group.

use std::cell::Cell;
use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::levels;
use super::thrift::Struct;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Int32,
    Int64,
    /// Microseconds since the epoch, in UTC.
    Time,
    Double,
    /// Text that is mostly different in each row.
    Text,
    /// Text of which there are few different ones.
    Word,
}

/// How often a column has a value in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Required,
    Optional,
    /// A field of the structures in a list of this name.
    InList(&'static str),
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) presence: Presence,
}

// Numbers of parquet.thrift.
const TYPE_INT32: i32 = 1;
const TYPE_INT64: i32 = 2;
const TYPE_DOUBLE: i32 = 5;
const TYPE_BYTE_ARRAY: i32 = 6;
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
const REPEATED: i32 = 2;
const CONVERTED_UTF8: i32 = 0;
const CONVERTED_LIST: i32 = 3;
const CONVERTED_TIMESTAMP_MICROS: i32 = 10;

impl Kind {
    pub(super) fn physical(self) -> i32 {
        match self {
            Kind::Int32 => TYPE_INT32,
            Kind::Int64 | Kind::Time => TYPE_INT64,
            Kind::Double => TYPE_DOUBLE,
            Kind::Text | Kind::Word => TYPE_BYTE_ARRAY,
        }
    }

    fn logical(self) -> Option<(i32, Struct)> {
        match self {
            Kind::Int32 | Kind::Int64 | Kind::Double => None,
            Kind::Text | Kind::Word => {
                let string = Struct::default().structure(1, Struct::default());
                Some((CONVERTED_UTF8, string))
            }
            Kind::Time => {
                let micros = Struct::default().structure(2, Struct::default());
                let timestamp = Struct::default().bool(1, true).structure(2, micros);
                let logical = Struct::default().structure(8, timestamp);
                Some((CONVERTED_TIMESTAMP_MICROS, logical))
            }
        }
    }
}

impl Column {
    pub(super) const fn new(name: &'static str, kind: Kind) -> Self {
        Column { name, kind, presence: Presence::Required }
    }

    pub(super) const fn optional(name: &'static str, kind: Kind) -> Self {
        Column { name, kind, presence: Presence::Optional }
    }

    pub(super) const fn in_list(list: &'static str, name: &'static str, kind: Kind) -> Self {
        Column { name, kind, presence: Presence::InList(list) }
    }

    /// Its names from the root.
    pub(super) fn path(&self) -> Vec<&'static str> {
        match self.presence {
            Presence::InList(list) => vec![list, "list", "element", self.name],
            Presence::Required | Presence::Optional => vec![self.name],
        }
    }

    fn schema(&self) -> Struct {
        let optional = if self.presence == Presence::Optional { OPTIONAL } else { REQUIRED };
        let element = Struct::default()
            .i32(1, self.kind.physical())
            .i32(3, optional)
            .binary(4, self.name.as_bytes());
        match self.kind.logical() {
            Some((converted, logical)) => element.i32(6, converted).structure(10, logical),
            None => element,
        }
    }
}

/// The schema of these columns, as Parquet lists it: the root, then each group before its fields.
/// The columns of a list follow each other.
pub(super) fn schema(columns: &[Column]) -> Vec<Struct> {
    let same_list = |one: &Column, other: &Column| match (one.presence, other.presence) {
        (Presence::InList(list), Presence::InList(other)) => list == other,
        _ => false,
    };
    let group = |name: &str, repetition: i32, children: usize| {
        Struct::default().i32(3, repetition).binary(4, name.as_bytes()).i32(5, children as i32)
    };
    let top: Vec<&[Column]> = columns.chunk_by(same_list).collect();
    let mut elements = vec![Struct::default().binary(4, b"schema").i32(5, top.len() as i32)];
    for fields in top {
        if let [Column { presence: Presence::InList(list), .. }, ..] = fields {
            let is_list = Struct::default().structure(3, Struct::default());
            elements.push(group(list, REQUIRED, 1).i32(6, CONVERTED_LIST).structure(10, is_list));
            elements.push(group("list", REPEATED, 1));
            elements.push(group("element", REQUIRED, fields.len()));
        }
        elements.extend(fields.iter().map(Column::schema));
    }
    elements
}

/// Where a word is in the dictionary of a row group, so that a word which comes again and again
/// is not looked up each time. It belongs to one column.
#[derive(Default)]
pub(super) struct WordPlace(Cell<Option<(usize, u32)>>);

/// A word of a dictionary.
#[derive(Clone, Copy)]
struct WordEntry {
    /// Where its length begins in the plain values.
    start: usize,
    len: usize,
    number: u32,
}

impl WordEntry {
    fn word<'a>(&self, plain: &'a [u8]) -> &'a [u8] {
        let start = self.start + size_of::<u32>();
        plain.get(start..start + self.len).unwrap_or(&[])
    }
}

/// The values of a column in a row group that is being filled.
pub(super) struct Values {
    column: Column,
    /// The number of the row group.
    group: usize,
    /// In Parquet's plain encoding; of [`Kind::Word`], each once.
    pub(super) plain: Vec<u8>,
    words: HashTable<WordEntry>,
    hasher: DefaultHashBuilder,
    /// The number of each value in `words`.
    numbers: Vec<u32>,
    /// Whether each value is there, unless it must be: of a list, whether it has any.
    present: Vec<u32>,
    /// In a list, whether each value goes on with the list of the value before it.
    repeated: Vec<u32>,
    /// Values, with those that are missing.
    pub(super) count: usize,
    pub(super) missing: usize,
    /// The least and the largest value, of whole numbers.
    pub(super) range: Option<(i64, i64)>,
}

impl Values {
    pub(super) fn new(column: Column, group: usize) -> Self {
        Values {
            column,
            group,
            plain: Vec::new(),
            words: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            numbers: Vec::new(),
            present: Vec::new(),
            repeated: Vec::new(),
            count: 0,
            missing: 0,
            range: None,
        }
    }

    pub(super) fn integer(&mut self, value: i64) {
        match self.column.kind {
            Kind::Int32 => self.plain.extend_from_slice(&(value as i32).to_le_bytes()),
            _ => self.plain.extend_from_slice(&value.to_le_bytes()),
        }
        let (least, most) = self.range.unwrap_or((value, value));
        self.range = Some((least.min(value), most.max(value)));
        self.add_present();
    }

    pub(super) fn double(&mut self, value: f64) {
        self.plain.extend_from_slice(&value.to_le_bytes());
        self.add_present();
    }

    pub(super) fn text(&mut self, value: &str) {
        if self.column.kind == Kind::Word {
            let number = self.number(value.as_bytes());
            self.numbers.push(number);
        } else {
            self.add_bytes(value.as_bytes());
        }
        self.add_present();
    }

    /// The number of a word, which is added on first use.
    fn number(&mut self, value: &[u8]) -> u32 {
        let Values { words, hasher, plain, .. } = self;
        let hash = hasher.hash_one(value);
        if let Some(entry) = words.find(hash, |entry| entry.word(plain) == value) {
            return entry.number;
        }
        let entry = WordEntry { start: plain.len(), len: value.len(), number: words.len() as u32 };
        self.add_bytes(value);
        let Values { words, hasher, plain, .. } = self;
        words.insert_unique(hash, entry, |entry| hasher.hash_one(entry.word(plain)));
        entry.number
    }

    /// The same for a word whose place is remembered.
    pub(super) fn word(&mut self, value: &str, place: &WordPlace) {
        if let Some((group, number)) = place.0.get()
            && group == self.group
        {
            self.numbers.push(number);
            self.add_present();
            return;
        }
        self.text(value);
        place.0.set(self.numbers.last().map(|&number| (self.group, number)));
    }

    fn add_bytes(&mut self, value: &[u8]) {
        self.plain.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.plain.extend_from_slice(value);
    }

    pub(super) fn null(&mut self) {
        self.present.push(0);
        self.count += 1;
        self.missing += 1;
    }

    /// An empty list.
    pub(super) fn empty_list(&mut self) {
        self.repeated.push(0);
        self.null();
    }

    /// The next value goes on with the list, or begins another one.
    pub(super) fn in_list(&mut self, goes_on: bool) {
        self.repeated.push(u32::from(goes_on));
    }

    fn add_present(&mut self) {
        if self.column.presence != Presence::Required {
            self.present.push(1);
        }
        self.count += 1;
    }

    /// How many bytes it takes, about.
    pub(super) fn size(&self) -> usize {
        self.plain.len() + 4 * (self.numbers.len() + self.present.len() + self.repeated.len())
    }

    /// How many different words there are, if they are numbered.
    pub(super) fn dictionary(&self) -> Option<usize> {
        (self.column.kind == Kind::Word).then_some(self.words.len())
    }

    /// The data page: levels, then the values or the numbers of words.
    pub(super) fn page(&self) -> Vec<u8> {
        let mut page = Vec::new();
        let mut add_levels = |levels: &[u32]| {
            let encoded = levels::encode(levels, 1);
            page.extend_from_slice(&(encoded.len() as u32).to_le_bytes());
            page.extend(encoded);
        };
        if matches!(self.column.presence, Presence::InList(_)) {
            add_levels(&self.repeated);
        }
        if self.column.presence != Presence::Required {
            add_levels(&self.present);
        }
        match self.dictionary() {
            Some(words) => {
                let width = levels::width((words as u32).saturating_sub(1)).max(1);
                page.push(width as u8);
                page.extend(levels::encode(&self.numbers, width));
            }
            None => page.extend_from_slice(&self.plain),
        }
        page
    }

    /// The statistics of a column chunk.
    pub(super) fn statistics(&self) -> Struct {
        let statistics = Struct::default().i64(3, self.missing as i64);
        let Some((least, most)) = self.range else { return statistics };
        let len = if self.column.kind == Kind::Int32 { 4 } else { 8 };
        statistics.binary(5, &most.to_le_bytes()[..len]).binary(6, &least.to_le_bytes()[..len])
    }
}
