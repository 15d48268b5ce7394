//! A Parquet file: row groups, one after the other, and the footer.
//!
//! From the description in `parquet-format` (`parquet.thrift`, `Encodings.md`). Each column of a
//! row group is one data page, after a dictionary page if its values are words. Pages are
//! compressed by gzip, which the program has anyway and every reader of Parquet knows. The crate
//! `parquet` without arrow adds 1.0 MB to the program, all of this some 30 KB.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::column::{Column, Values, schema};
use super::thrift::Struct;

const MAGIC: &[u8; 4] = b"PAR1";

// Numbers of parquet.thrift.
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const RLE_DICTIONARY: i32 = 8;
const GZIP: i32 = 2;
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;

/// The rows of a row group: as many as `DuckDB` takes at a time.
const MOST_ROWS: usize = 122_880;
/// The bytes of a row group before it is compressed, about.
const MOST_BYTES: usize = 16 << 20;

/// A file being written.
pub(super) struct FileWriter<W> {
    out: W,
    offset: u64,
    columns: &'static [Column],
    values: Vec<Values>,
    /// Rows in `values`, and in all row groups.
    rows: usize,
    all_rows: usize,
    groups: Vec<Struct>,
}

/// Where a column of a row group is in the file.
struct Chunk {
    metadata: Struct,
    plain_size: i64,
    offset: u64,
}

impl<W: Write> FileWriter<W> {
    pub(super) fn new(mut out: W, columns: &'static [Column]) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        Ok(FileWriter {
            out,
            offset: MAGIC.len() as u64,
            columns,
            values: fresh(columns, 0),
            rows: 0,
            all_rows: 0,
            groups: Vec::new(),
        })
    }

    /// Begins a row.
    pub(super) fn row(&mut self) -> Row<'_, W> {
        Row { file: self, column: 0 }
    }

    fn end_row(&mut self) -> io::Result<()> {
        self.rows += 1;
        let size: usize = self.values.iter().map(Values::size).sum();
        if self.rows >= MOST_ROWS || size >= MOST_BYTES { self.end_group() } else { Ok(()) }
    }

    fn end_group(&mut self) -> io::Result<()> {
        let next = self.groups.len() + 1;
        let values = std::mem::replace(&mut self.values, fresh(self.columns, next));
        let start = self.offset;
        let mut chunks = Vec::with_capacity(values.len());
        for (column, values) in self.columns.iter().zip(&values) {
            chunks.push(self.write_chunk(column, values)?);
        }
        let size = chunks.iter().map(|chunk| chunk.plain_size).sum();
        let columns = chunks.into_iter().map(|chunk| {
            Struct::default().i64(2, chunk.offset as i64).structure(3, chunk.metadata)
        });
        let group = Struct::default().structures(1, columns).i64(2, size).i64(3, self.rows as i64);
        self.groups.push(group.i64(5, start as i64).i64(6, (self.offset - start) as i64));
        self.all_rows += self.rows;
        self.rows = 0;
        Ok(())
    }

    fn write_chunk(&mut self, column: &Column, values: &Values) -> io::Result<Chunk> {
        let start = self.offset;
        let mut plain_size = 0;
        if let Some(words) = values.dictionary() {
            let header = Struct::default().i32(1, words as i32).i32(2, PLAIN);
            plain_size += self.write_page(DICTIONARY_PAGE, &values.plain, (7, header))?;
        }
        let data = self.offset;
        let encoding = if values.dictionary().is_some() { RLE_DICTIONARY } else { PLAIN };
        let header = Struct::default().i32(1, values.count as i32).i32(2, encoding);
        let header = header.i32(3, RLE).i32(4, RLE);
        plain_size += self.write_page(DATA_PAGE, &values.page(), (5, header))?;
        let metadata = Struct::default()
            .i32(1, column.kind.physical())
            .i32s(2, &[PLAIN, RLE, encoding])
            .binaries(3, column.path().into_iter())
            .i32(4, GZIP)
            .i64(5, values.count as i64)
            .i64(6, plain_size)
            .i64(7, (self.offset - start) as i64)
            .i64(9, data as i64);
        let metadata = match values.dictionary() {
            Some(_) => metadata.i64(11, start as i64),
            None => metadata,
        };
        let metadata = metadata.structure(12, values.statistics());
        Ok(Chunk { metadata, plain_size, offset: start })
    }

    /// Writes a page with the header of its kind, which is this field of the page's header.
    /// Returns its size before it was compressed.
    fn write_page(&mut self, kind: i32, page: &[u8], header: (u8, Struct)) -> io::Result<i64> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(page)?;
        let compressed = gzip.finish()?;
        let size = |bytes: &[u8]| {
            i32::try_from(bytes.len()).map_err(|_| io::Error::other("a name is too long"))
        };
        let (field, of_kind) = header;
        let header = Struct::default()
            .i32(1, kind)
            .i32(2, size(page)?)
            .i32(3, size(&compressed)?)
            .structure(field, of_kind)
            .finish();
        self.put(&header)?;
        self.put(&compressed)?;
        Ok((header.len() + page.len()) as i64)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.offset += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Writes the last row group and the footer.
    pub(super) fn finish(mut self) -> io::Result<W> {
        if self.rows > 0 {
            self.end_group()?;
        }
        // So that the least and largest values count: by the order of the type.
        let orders = self.columns.iter().map(|_| Struct::default().structure(1, Struct::default()));
        let footer = Struct::default()
            .i32(1, 2)
            .structures(2, schema(self.columns).into_iter())
            .i64(3, self.all_rows as i64)
            .structures(4, std::mem::take(&mut self.groups).into_iter())
            .binary(6, concat!("heaptap version ", env!("CARGO_PKG_VERSION")).as_bytes())
            .structures(7, orders)
            .finish();
        self.put(&footer)?;
        self.put(&(footer.len() as u32).to_le_bytes())?;
        self.put(MAGIC)?;
        Ok(self.out)
    }
}

/// A row being written, column by column.
pub(super) struct Row<'a, W> {
    file: &'a mut FileWriter<W>,
    column: usize,
}

impl<W: Write> Row<'_, W> {
    fn next(&mut self) -> &mut Values {
        self.column += 1;
        &mut self.file.values[self.column - 1]
    }

    pub(super) fn integer(mut self, value: i64) -> Self {
        self.next().integer(value);
        self
    }

    pub(super) fn double(mut self, value: f64) -> Self {
        self.next().double(value);
        self
    }

    pub(super) fn text(mut self, value: &str) -> Self {
        self.next().text(value);
        self
    }

    pub(super) fn optional_integer(mut self, value: Option<i64>) -> Self {
        match value {
            Some(value) => self.next().integer(value),
            None => self.next().null(),
        }
        self
    }

    pub(super) fn optional_double(mut self, value: Option<f64>) -> Self {
        match value {
            Some(value) => self.next().double(value),
            None => self.next().null(),
        }
        self
    }

    pub(super) fn optional_text(mut self, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.next().text(value),
            None => self.next().null(),
        }
        self
    }

    /// A list of structures, whose fields are the next columns.
    pub(super) fn list<T>(mut self, items: &[T], fields: &[fn(&T, &mut Values)]) -> Self {
        for field in fields {
            let values = self.next();
            if items.is_empty() {
                values.empty_list();
            }
            for (at, item) in items.iter().enumerate() {
                values.in_list(at > 0);
                field(item, values);
            }
        }
        self
    }

    /// After the last column.
    pub(super) fn end(self) -> io::Result<()> {
        debug_assert_eq!(self.column, self.file.columns.len(), "a column is missing");
        self.file.end_row()
    }
}

fn fresh(columns: &[Column], group: usize) -> Vec<Values> {
    columns.iter().map(|&column| Values::new(column, group)).collect()
}
