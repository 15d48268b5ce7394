//! A Parquet file: row groups, one after the other, and the footer.
//!
//! The crate `parquet` writes it, without arrow, column by column: the rows of a row group are
//! kept until it is complete. Pages are compressed by gzip, which the program has anyway and every
//! reader of Parquet knows.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, GzipLevel, Type as PhysicalType};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;

use super::column::Values;

/// The rows of a row group: as many as `DuckDB` takes at a time.
const MOST_ROWS: usize = 122_880;
/// The bytes of a row group before it is written, about.
const MOST_BYTES: usize = 24 << 20;

/// The column of texts that are mostly different in each row.
const DIFFERENT: &str = "text";

/// A file being written.
pub(super) struct FileWriter<W: Write + Send> {
    file: SerializedFileWriter<Destination<W>>,
    values: Vec<Values>,
    /// Rows in `values`.
    rows: usize,
}

impl<W: Write + Send> FileWriter<W> {
    /// With the columns of a schema in Parquet's notation.
    pub(super) fn new(out: W, schema: &str) -> io::Result<Self> {
        let start = || {
            let schema = Arc::new(parse_message_type(schema)?);
            let columns = SchemaDescriptor::new(Arc::clone(&schema));
            let properties = Arc::new(properties(&columns)?);
            let file = SerializedFileWriter::new(Destination(Some(out)), schema, properties)?;
            let values = columns.columns().iter().map(|column| Values::new(column)).collect();
            Ok(FileWriter { file, values, rows: 0 })
        };
        start().map_err(io_error)
    }

    /// Begins a row.
    pub(super) fn row(&mut self) -> Row<'_, W> {
        Row { file: self, column: 0 }
    }

    fn end_row(&mut self) -> io::Result<()> {
        self.rows += 1;
        let size: usize = self.values.iter().map(Values::size).sum();
        if self.rows < MOST_ROWS && size < MOST_BYTES {
            return Ok(());
        }
        self.end_group().map_err(io_error)
    }

    fn end_group(&mut self) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        for values in &mut self.values {
            if let Some(mut column) = group.next_column()? {
                values.write(&mut column)?;
                column.close()?;
            }
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    /// Writes the last row group and the footer.
    pub(super) fn finish(mut self) -> io::Result<W> {
        if self.rows > 0 {
            self.end_group().map_err(io_error)?;
        }
        self.file.finish().map_err(io_error)?;
        let Destination(out) = self.file.inner_mut();
        out.take().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

/// Words are numbered by a dictionary, however many there are. Numbers have their least and largest
/// one in the footer.
fn properties(columns: &SchemaDescriptor) -> Result<WriterProperties> {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("heaptap version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::GZIP(GzipLevel::try_new(1)?))
        .set_dictionary_enabled(false)
        .set_dictionary_page_size_limit(MOST_BYTES)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_data_page_row_count_limit(MOST_ROWS)
        .set_offset_index_disabled(true);
    for column in columns.columns() {
        if column.physical_type() == PhysicalType::BYTE_ARRAY {
            let path = column.path();
            properties = properties
                .set_column_dictionary_enabled(path.clone(), column.name() != DIFFERENT)
                .set_column_statistics_enabled(path.clone(), EnabledStatistics::None);
        }
    }
    Ok(properties.build())
}

/// Where the file goes, which the library does not give back otherwise without hiding why the last
/// bytes could not be written.
struct Destination<W>(Option<W>);

impl<W: Write> Write for Destination<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_mut().map_or(Ok(0), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// The error of the destination, if it is one.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => other.into(),
    }
}

/// A row being written, column by column.
pub(super) struct Row<'a, W: Write + Send> {
    file: &'a mut FileWriter<W>,
    column: usize,
}

impl<W: Write + Send> Row<'_, W> {
    fn next(&mut self) -> &mut Values {
        self.column += 1;
        &mut self.file.values[self.column - 1]
    }

    fn optional<T>(mut self, value: Option<T>, put: impl Fn(&mut Values, T)) -> Self {
        match value {
            Some(value) => put(self.next(), value),
            None => self.next().null(),
        }
        self
    }

    pub(super) fn integer(mut self, value: i64) -> Self {
        self.next().integer(value);
        self
    }

    pub(super) fn double(mut self, value: f64) -> Self {
        self.next().double(value);
        self
    }

    pub(super) fn text(mut self, value: impl Into<ByteArray>) -> Self {
        self.next().text(value);
        self
    }

    pub(super) fn word(mut self, value: &ByteArray) -> Self {
        self.next().word(value);
        self
    }

    pub(super) fn optional_integer(self, value: Option<i64>) -> Self {
        self.optional(value, Values::integer)
    }

    pub(super) fn optional_double(self, value: Option<f64>) -> Self {
        self.optional(value, Values::double)
    }

    pub(super) fn optional_text(self, value: Option<&str>) -> Self {
        self.optional(value, Values::text)
    }

    pub(super) fn optional_word(self, value: Option<&ByteArray>) -> Self {
        self.optional(value, Values::word)
    }

    /// An integer of each structure in a list.
    pub(super) fn integers(mut self, list: impl ExactSizeIterator<Item = i64>) -> Self {
        self.next().integers(list);
        self
    }

    /// A word of each structure in a list.
    pub(super) fn words<'b>(mut self, list: impl ExactSizeIterator<Item = &'b ByteArray>) -> Self {
        self.next().words(list);
        self
    }

    /// After the last column.
    pub(super) fn end(self) -> io::Result<()> {
        debug_assert_eq!(self.column, self.file.values.len(), "a column is missing");
        self.file.end_row()
    }
}
