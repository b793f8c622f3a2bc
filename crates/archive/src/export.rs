//! Parquet files: a long table, one row for each row of each sheet.
//!
//! The files lie in folders `machine=ID/year=YYYY`, which DuckDB, polars and Spark read as columns. Rows are sorted by
//! id and time. Times are microseconds in UTC, as Spark reads no others, and `taken_ns` has them in full. Numbers are
//! signed; nothing is nested.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use hairspring_file::NewFile;
use hairspring_sheet::{Figure, Value};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::{Archive, ArchiveError, ArchivedSheet};

/// Sheets in one file. All of them are in memory at once.
const SHEETS_PER_FILE: usize = 200;

const MESSAGE: &str = "message figures {
    REQUIRED BYTE_ARRAY id (UTF8);
    REQUIRED INT64 taken (TIMESTAMP(MICROS, true));
    REQUIRED INT64 taken_ns;
    REQUIRED BYTE_ARRAY sheet (UTF8);
    OPTIONAL BYTE_ARRAY host (UTF8);
    OPTIONAL BYTE_ARRAY cpu (UTF8);
    REQUIRED BYTE_ARRAY version (UTF8);
    REQUIRED BYTE_ARRAY effort (UTF8);
    REQUIRED BYTE_ARRAY label (UTF8);
    OPTIONAL BYTE_ARRAY unit (UTF8);
    OPTIONAL BYTE_ARRAY method (UTF8);
    OPTIONAL INT64 n;
    OPTIONAL DOUBLE min;
    OPTIONAL DOUBLE p1;
    OPTIONAL DOUBLE q1;
    OPTIONAL DOUBLE median;
    OPTIONAL DOUBLE q3;
    OPTIONAL DOUBLE p99;
    OPTIONAL DOUBLE p999;
    OPTIONAL DOUBLE max;
    OPTIONAL DOUBLE mad;
    OPTIONAL DOUBLE mean;
    OPTIONAL DOUBLE low;
    OPTIONAL DOUBLE high;
    OPTIONAL BYTE_ARRAY absent (UTF8);
}";

/// Files and counts of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Sheets.
    pub sheets: usize,
    /// Rows of the table.
    pub rows: usize,
    /// Files.
    pub files: usize,
}

/// One row of the table: its sheet, its id and label, and its value.
type Line<'a> = (&'a ArchivedSheet, String, String, Value);

impl Archive {
    /// Writes all sheets as Parquet files below a folder, which must be new or empty. Every file is complete when it
    /// has its name.
    ///
    /// # Errors
    /// The folder has something in it, a sheet is damaged, or the system refuses.
    pub fn export(&self, folder: &Path) -> Result<Exported, ArchiveError> {
        let failed = |error| ArchiveError::Io(format!("write to {}", folder.display()), error);
        fs::create_dir_all(folder).map_err(failed)?;
        if fs::read_dir(folder).map_err(failed)?.next().is_some() {
            let error = std::io::Error::other("the folder is not empty; name a new one");
            return Err(failed(error));
        }
        let mut parts: BTreeMap<(String, String), Vec<ArchivedSheet>> = BTreeMap::new();
        for sheet in self.list()? {
            let year = sheet.taken.get(..4).unwrap_or("0000").to_owned();
            parts.entry((sheet.machine.clone(), year)).or_default().push(sheet);
        }
        let mut exported = Exported::default();
        for ((machine, year), sheets) in parts {
            let part = folder.join(format!("machine={machine}")).join(format!("year={year}"));
            fs::create_dir_all(&part).map_err(failed)?;
            for (number, sheets) in sheets.chunks(SHEETS_PER_FILE).enumerate() {
                exported.rows += self.write(sheets, &part.join(format!("part-{number:04}.parquet")))?;
                exported.files += 1;
                exported.sheets += sheets.len();
            }
        }
        Ok(exported)
    }

    /// Writes a file; returns the number of its rows.
    fn write(&self, sheets: &[ArchivedSheet], path: &Path) -> Result<usize, ArchiveError> {
        let mut lines: Vec<Line<'_>> = Vec::new();
        for archived in sheets {
            let rows = self.sheet(archived)?.chapters.into_iter().flat_map(|chapter| chapter.tables);
            let rows = rows.flat_map(|table| table.rows);
            lines.extend(rows.map(|row| (archived, row.id, row.label, without_histogram(row.value))));
        }
        lines.sort_by(|a, b| (&a.1, a.0.taken_ns).cmp(&(&b.1, b.0.taken_ns)));
        let failed = |error| ArchiveError::Io(format!("write {}", path.display()), error);
        let mut file = NewFile::begin(path).map_err(failed)?;
        columns(&lines, &mut file).map_err(|error| failed(std::io::Error::other(error)))?;
        file.replace().map_err(failed)?;
        Ok(lines.len())
    }
}

/// Histograms are most of a sheet, and not exported.
fn without_histogram(mut value: Value) -> Value {
    if let Value::Figure(figure) = &mut value {
        figure.histogram = None;
        figure.rounds = Vec::new();
    }
    value
}

fn figure<'l>(line: &'l Line<'_>) -> Option<&'l Figure> {
    match &line.3 {
        Value::Figure(figure) => Some(figure),
        Value::Absent(_) => None,
    }
}

/// The columns in the order of [`MESSAGE`].
fn columns(lines: &[Line<'_>], file: &mut NewFile) -> Result<(), ParquetError> {
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let schema = Arc::new(parse_message_type(MESSAGE)?);
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    let text = |group: &mut _, of: &dyn Fn(&Line<'_>) -> Option<ByteArray>, required| {
        column::<ByteArrayType, _>(group, lines, of, required)
    };
    text(&mut group, &|line| Some(line.1.as_str().into()), true)?;
    column::<Int64Type, _>(&mut group, lines, &|line| Some(line.0.taken_ns.div_euclid(1000)), true)?;
    column::<Int64Type, _>(&mut group, lines, &|line| Some(line.0.taken_ns), true)?;
    text(&mut group, &|line| Some(line.0.id.as_str().into()), true)?;
    text(&mut group, &|line| line.0.host.as_deref().map(ByteArray::from), false)?;
    text(&mut group, &|line| line.0.cpu.as_deref().map(ByteArray::from), false)?;
    text(&mut group, &|line| Some(line.0.version.as_str().into()), true)?;
    text(&mut group, &|line| Some(line.0.effort.as_str().into()), true)?;
    text(&mut group, &|line| Some(line.2.as_str().into()), true)?;
    text(&mut group, &|line| Some(figure(line)?.unit.name().into()), false)?;
    text(&mut group, &|line| Some(figure(line)?.method.name().into()), false)?;
    column::<Int64Type, _>(&mut group, lines, &|line| i64::try_from(figure(line)?.n).ok(), false)?;
    let statistics: [fn(&Figure) -> Option<f64>; 12] = [
        |figure| figure.min,
        |figure| figure.p1,
        |figure| figure.q1,
        |figure| figure.median,
        |figure| figure.q3,
        |figure| figure.p99,
        |figure| figure.p999,
        |figure| figure.max,
        |figure| figure.mad,
        |figure| figure.mean,
        |figure| figure.median_interval.map(|[low, _]| low),
        |figure| figure.median_interval.map(|[_, high]| high),
    ];
    for statistic in statistics {
        column::<DoubleType, _>(&mut group, lines, &|line| statistic(figure(line)?), false)?;
    }
    let absent = |line: &Line<'_>| match &line.3 {
        Value::Absent(absent) => Some(absent.reason.as_str().into()),
        Value::Figure(_) => None,
    };
    text(&mut group, &absent, false)?;
    group.close()?;
    writer.close().map(drop)
}

/// Writes the next column of a group.
fn column<T: DataType, W: std::io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    lines: &[Line<'_>],
    of: &dyn Fn(&Line<'_>) -> Option<T::T>,
    required: bool,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = lines.iter().map(of).collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has too few columns".to_owned()));
    };
    column.typed::<T>().write_batch(&values, (!required).then_some(&levels), None)?;
    column.close()
}
