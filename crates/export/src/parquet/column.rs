//! The values of a column in a row group, as the crate `parquet` takes them.

use std::iter::repeat_n;

use parquet::basic::Type as PhysicalType;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::ColumnDescriptor;

/// The values of a column in a row group that is being filled.
pub(super) struct Values {
    data: Data,
    /// Whether each value is there, unless it must be: of a list, whether it has any.
    present: Option<Vec<i16>>,
    /// In a list, whether each value goes on with the list of the value before it.
    repeated: Option<Vec<i16>>,
    /// Bytes of texts that nobody else holds.
    text_bytes: usize,
}

enum Data {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Double(Vec<f64>),
    Text(Vec<ByteArray>),
}

impl Values {
    pub(super) fn new(column: &ColumnDescriptor) -> Self {
        Values {
            data: match column.physical_type() {
                PhysicalType::INT32 => Data::Int32(Vec::new()),
                PhysicalType::INT64 => Data::Int64(Vec::new()),
                PhysicalType::DOUBLE => Data::Double(Vec::new()),
                _ => Data::Text(Vec::new()),
            },
            present: (column.max_def_level() > 0).then(Vec::new),
            repeated: (column.max_rep_level() > 0).then(Vec::new),
            text_bytes: 0,
        }
    }

    pub(super) fn integer(&mut self, value: i64) {
        match &mut self.data {
            Data::Int32(values) => values.push(value as i32),
            Data::Int64(values) => values.push(value),
            Data::Double(_) | Data::Text(_) => debug_assert!(false, "an integer in its column"),
        }
        self.add_present(1);
    }

    pub(super) fn double(&mut self, value: f64) {
        match &mut self.data {
            Data::Double(values) => values.push(value),
            _ => debug_assert!(false, "a double in its column"),
        }
        self.add_present(1);
    }

    pub(super) fn text(&mut self, value: impl Into<ByteArray>) {
        let value = value.into();
        self.text_bytes += value.len();
        self.add_text(value);
    }

    /// A text that comes again and again, and is kept elsewhere.
    pub(super) fn word(&mut self, value: &ByteArray) {
        self.add_text(value.clone());
    }

    fn add_text(&mut self, value: ByteArray) {
        match &mut self.data {
            Data::Text(values) => values.push(value),
            _ => debug_assert!(false, "a text in its column"),
        }
        self.add_present(1);
    }

    pub(super) fn null(&mut self) {
        self.add_present(0);
    }

    /// The integers of a list.
    pub(super) fn integers(&mut self, list: impl ExactSizeIterator<Item = i64>) {
        self.add_list(list.len());
        match &mut self.data {
            Data::Int32(values) => values.extend(list.map(|value| value as i32)),
            Data::Int64(values) => values.extend(list),
            Data::Double(_) | Data::Text(_) => debug_assert!(false, "an integer in its column"),
        }
    }

    /// The words of a list.
    pub(super) fn words<'a>(&mut self, list: impl ExactSizeIterator<Item = &'a ByteArray>) {
        self.add_list(list.len());
        match &mut self.data {
            Data::Text(values) => values.extend(list.cloned()),
            _ => debug_assert!(false, "a text in its column"),
        }
    }

    /// An empty list has one entry, which says so.
    fn add_list(&mut self, len: usize) {
        if let Some(levels) = &mut self.repeated {
            levels.push(0);
            levels.extend(repeat_n(1, len.saturating_sub(1)));
        }
        if let Some(levels) = &mut self.present {
            levels.extend(repeat_n(i16::from(len > 0), len.max(1)));
        }
    }

    fn add_present(&mut self, level: i16) {
        self.present.iter_mut().for_each(|levels| levels.push(level));
    }

    /// How many bytes it takes, about.
    pub(super) fn size(&self) -> usize {
        let data = match &self.data {
            Data::Int32(values) => size_of_val(&**values),
            Data::Int64(values) => size_of_val(&**values),
            Data::Double(values) => size_of_val(&**values),
            Data::Text(values) => size_of_val(&**values) + self.text_bytes,
        };
        let levels = [&self.present, &self.repeated].into_iter().flatten();
        data + levels.map(|levels| size_of_val(&**levels)).sum::<usize>()
    }

    /// Writes the values, and forgets them.
    pub(super) fn write(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let levels = [self.present.as_deref(), self.repeated.as_deref()];
        match &mut self.data {
            Data::Int32(values) => write::<Int32Type>(column, values, levels)?,
            Data::Int64(values) => write::<Int64Type>(column, values, levels)?,
            Data::Double(values) => write::<DoubleType>(column, values, levels)?,
            Data::Text(values) => write::<ByteArrayType>(column, values, levels)?,
        }
        [&mut self.present, &mut self.repeated].into_iter().flatten().for_each(Vec::clear);
        self.text_bytes = 0;
        Ok(())
    }
}

fn write<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    values: &mut Vec<T::T>,
    [present, repeated]: [Option<&[i16]>; 2],
) -> Result<()> {
    column.typed::<T>().write_batch(values, present, repeated)?;
    values.clear();
    Ok(())
}
