//! Zarr, version 3: a folder with a group of one array `samples` of frames × channels, in shards of compressed chunks.
//!
//! ```text
//! x.zarr/zarr.json           the group: first frame, rate, channels, gaps
//! x.zarr/samples/zarr.json   the array: shape, type, shards, codecs
//! x.zarr/samples/c/N/0       shard N: chunks, compressed by zstd, then their places and a CRC-32C of the places
//! x.zarr/valid/…             with filled gaps: a boolean for each frame, whether it was recorded
//! ```
//!
//! **Own writer.** A store of Zarr is JSON and files of chunks; the crate for it brings some sixty others. This writer
//! supports only its own output: one array, sharded, with the codecs `bytes` and `zstd`.
//!
//! A sample is the code that was recorded, or a value in the unit of its channel. The attributes have the facts of
//! [`array_facts`](super::array_facts), state which of the two it is, and list the gaps. A chunk whose frames are all
//! missing is not stored: a reader returns the fill value. The folder gets its name when it is whole.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::rows::{RowPiece, Rows};
use super::values::Number;
use super::{ArrayCut, ExportError, ExportedPiece, array_facts};
use hairspring_recording::Recording;
use hairspring_recording::verify::ReadProgress;
use hairspring_store::Store;

/// Approximate bytes of a chunk before compression: small enough to read a short piece, large enough to compress.
const CHUNK_BYTES: u64 = 1 << 20;
/// Chunks in a shard, which is a file.
const SHARD_CHUNKS: u64 = 128;
/// Frames in a chunk of the array `valid`, a byte each before compression.
const VALID_FRAMES: u64 = 1 << 22;
/// The place of a chunk that is not stored.
const NOWHERE: u64 = u64::MAX;
/// zstd's usual level.
const LEVEL: i32 = 3;

/// Writes a cut as Zarr. Complex samples of other programs become complex numbers, as in [`npy`](super::npy()).
///
/// # Errors
/// See [`ExportError`].
pub fn zarr(
    store: &mut dyn Store,
    recording: &Recording,
    options: ArrayCut,
    path: &Path,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<ExportedPiece, ExportError> {
    let rows = Rows::of(recording, options, true)?;
    let mut folder = NewFolder::begin(path)?;
    let array = folder.begun.join("samples");
    folder.make(&array.join("c"))?;
    let grid = Grid::of(&rows);
    folder.put(
        &folder.begun.join("zarr.json"),
        &json!({
            "zarr_format": 3,
            "node_type": "group",
            "attributes": array_facts::facts(recording, &rows),
        }),
    )?;
    folder.put(&array.join("zarr.json"), &array_facts(&rows, &grid))?;
    if rows.is_filled() {
        valid(&folder, &rows)?;
    }
    let mut shards = Shards::new(array.join("c"), grid, rows.fill_bytes(), rows.columns);
    rows.read(store, recording, progress, &mut |piece| {
        let taken = match piece {
            RowPiece::Recorded(bytes) => shards.rows(bytes),
            RowPiece::Missing(frames) => shards.missing(frames.0),
        };
        taken.map_err(|error| ExportError::Output(path.to_owned(), error))
    })?;
    shards.finish().map_err(|error| ExportError::Output(path.to_owned(), error))?;
    folder.publish()?;
    Ok(rows.exported())
}

/// Writes the array `valid`. Chunks without a frame that was recorded are not stored.
fn valid(folder: &NewFolder, rows: &Rows) -> Result<(), ExportError> {
    let array = folder.begun.join("valid");
    folder.make(&array.join("c"))?;
    let chunk = VALID_FRAMES.min(rows.frames.0.max(1));
    folder.put(
        &array.join("zarr.json"),
        &json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": [rows.frames.0],
            "data_type": "bool",
            "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [chunk] } },
            "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
            "fill_value": false,
            "codecs": [{ "name": "bytes" }, { "name": "zstd", "configuration": { "level": LEVEL, "checksum": false } }],
            "dimension_names": ["frame"],
            "attributes": {},
        }),
    )?;
    let mut flags = vec![0_u8; chunk as usize];
    let mut number = None;
    let write = |number: Option<u64>, flags: &mut [u8]| -> Result<(), ExportError> {
        let Some(number) = number else { return Ok(()) };
        let packed = zstd::bulk::compress(flags, LEVEL);
        flags.fill(0);
        let written = packed.and_then(|packed| {
            let mut file = File::create_new(array.join("c").join(number.to_string()))?;
            file.write_all(&packed)?;
            file.sync_all()
        });
        written.map_err(|error| ExportError::Output(folder.path.clone(), error))
    };
    for run in rows.piece.runs() {
        let (mut at, end) = (run.start - rows.first.0, run.end - rows.first.0);
        while at < end {
            if number != Some(at / chunk) {
                write(number, &mut flags)?;
                number = Some(at / chunk);
            }
            let to = end.min((at / chunk + 1) * chunk);
            flags[(at % chunk) as usize..][..(to - at) as usize].fill(1);
            at = to;
        }
    }
    write(number, &mut flags)
}

/// How rows are cut.
#[derive(Clone, Copy, Debug)]
struct Grid {
    row_bytes: u64,
    chunk_rows: u64,
}

impl Grid {
    fn of(rows: &Rows) -> Self {
        let row_bytes = rows.row_bytes();
        Self { row_bytes, chunk_rows: (CHUNK_BYTES / row_bytes).clamp(1, rows.frames.0.max(1)) }
    }

    fn chunk_bytes(&self) -> usize {
        (self.chunk_rows * self.row_bytes) as usize
    }
}

fn array_facts(rows: &Rows, grid: &Grid) -> Value {
    let channels = rows.columns;
    let kind = match rows.number {
        Number::I8 => "int8",
        Number::U8 => "uint8",
        Number::I16 => "int16",
        Number::U16 => "uint16",
        Number::I32 => "int32",
        Number::U32 => "uint32",
        Number::F32 => "float32",
        Number::F64 => "float64",
        Number::Complex64 => "complex64",
        Number::Complex128 => "complex128",
    };
    let bytes = match rows.number {
        Number::I8 | Number::U8 => json!({ "name": "bytes" }),
        _ => json!({ "name": "bytes", "configuration": { "endian": "little" } }),
    };
    let zstd = json!({ "name": "zstd", "configuration": { "level": LEVEL, "checksum": false } });
    let index = json!([{ "name": "bytes", "configuration": { "endian": "little" } }, { "name": "crc32c" }]);
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": [rows.frames.0, channels],
        "data_type": kind,
        "chunk_grid": {
            "name": "regular",
            "configuration": { "chunk_shape": [grid.chunk_rows * SHARD_CHUNKS, channels] },
        },
        "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
        "fill_value": fill_value(rows),
        "codecs": [{
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [grid.chunk_rows, channels],
                "codecs": [bytes, zstd],
                "index_codecs": index,
                "index_location": "end",
            },
        }],
        "dimension_names": ["frame", "channel"],
        "attributes": {},
    })
}

/// The value of a missing sample, as JSON.
fn fill_value(rows: &Rows) -> Value {
    let bytes = rows.fill_bytes();
    let mut parts = Vec::new();
    rows.number.each(&bytes, &mut |part| parts.push(part));
    match (rows.number, &parts[..]) {
        (Number::Complex64 | Number::Complex128, parts) => parts.iter().copied().map(float).collect(),
        (Number::F32 | Number::F64, [value]) => float(*value),
        (_, [value]) => json!(*value as i64),
        (_, _) => unreachable!("one value"),
    }
}

/// Floats that JSON lacks are written as words.
fn float(value: f64) -> Value {
    match value {
        value if value.is_nan() => json!("NaN"),
        value if value.is_infinite() => json!(if value > 0.0 { "Infinity" } else { "-Infinity" }),
        value => json!(value),
    }
}

/// The shards, one after the other.
struct Shards {
    folder: PathBuf,
    grid: Grid,
    /// A row of missing samples.
    missing_row: Vec<u8>,
    chunk: Vec<u8>,
    /// Whether the chunk has a frame that was recorded.
    has_data: bool,
    number: u64,
    file: Option<BufWriter<File>>,
    at: u64,
    /// Place and length of each chunk of the shard.
    places: Vec<[u64; 2]>,
}

impl Shards {
    fn new(folder: PathBuf, grid: Grid, sample: Vec<u8>, channels: u32) -> Self {
        let missing_row = sample.repeat(channels as usize);
        let chunk = Vec::with_capacity(grid.chunk_bytes());
        Self { folder, grid, missing_row, chunk, has_data: false, number: 0, file: None, at: 0, places: Vec::new() }
    }

    fn rows(&mut self, mut bytes: &[u8]) -> std::io::Result<()> {
        while !bytes.is_empty() {
            let length = bytes.len().min(self.grid.chunk_bytes() - self.chunk.len());
            self.chunk.extend_from_slice(&bytes[..length]);
            self.has_data = true;
            bytes = &bytes[length..];
            self.end_full_chunk()?;
        }
        Ok(())
    }

    fn missing(&mut self, mut rows: u64) -> std::io::Result<()> {
        while rows > 0 {
            if self.chunk.is_empty() && rows >= self.grid.chunk_rows {
                self.place([NOWHERE; 2])?;
                rows -= self.grid.chunk_rows;
                continue;
            }
            self.chunk.extend_from_slice(&self.missing_row);
            rows -= 1;
            self.end_full_chunk()?;
        }
        Ok(())
    }

    fn end_full_chunk(&mut self) -> std::io::Result<()> {
        if self.chunk.len() < self.grid.chunk_bytes() {
            return Ok(());
        }
        let place = if std::mem::take(&mut self.has_data) {
            let packed = zstd::bulk::compress(&self.chunk, LEVEL)?;
            let file = match &mut self.file {
                Some(file) => file,
                empty => {
                    let folder = self.folder.join(self.number.to_string());
                    fs::create_dir(&folder)?;
                    empty.insert(BufWriter::with_capacity(1 << 20, File::create_new(folder.join("0"))?))
                }
            };
            file.write_all(&packed)?;
            let place = [self.at, packed.len() as u64];
            self.at += place[1];
            place
        } else {
            [NOWHERE; 2]
        };
        self.chunk.clear();
        self.place(place)
    }

    /// Notes the place of a chunk, and ends the shard after its last one.
    fn place(&mut self, place: [u64; 2]) -> std::io::Result<()> {
        self.places.push(place);
        if self.places.len() as u64 == SHARD_CHUNKS { self.end_shard() } else { Ok(()) }
    }

    fn end_shard(&mut self) -> std::io::Result<()> {
        self.places.resize(SHARD_CHUNKS as usize, [NOWHERE; 2]);
        let index: Vec<u8> = self.places.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        self.places.clear();
        self.at = 0;
        self.number += 1;
        // A shard without a chunk is no file.
        let Some(mut file) = self.file.take() else { return Ok(()) };
        file.write_all(&index)?;
        file.write_all(&crc32c::crc32c(&index).to_le_bytes())?;
        file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()
    }

    /// The last chunk is as long as the others, and filled.
    fn finish(mut self) -> std::io::Result<()> {
        if !self.chunk.is_empty() {
            while self.chunk.len() < self.grid.chunk_bytes() {
                self.chunk.extend_from_slice(&self.missing_row);
            }
            self.end_full_chunk()?;
        }
        if self.places.is_empty() { Ok(()) } else { self.end_shard() }
    }
}

/// A folder that gets its name when it is whole.
struct NewFolder {
    begun: PathBuf,
    path: PathBuf,
    whole: bool,
    /// Descriptors reserved for removing the folder: one for each level of folders. Without them, files could be made
    /// that cannot be removed.
    kept_back: Vec<File>,
}

/// Levels of folders, and some more.
const LEVELS: usize = 8;

impl NewFolder {
    fn begin(path: &Path) -> Result<Self, ExportError> {
        let told = |error| ExportError::Output(path.to_owned(), error);
        if path.symlink_metadata().is_ok() {
            return Err(told(std::io::ErrorKind::AlreadyExists.into()));
        }
        let name = path.file_name().ok_or_else(|| told(std::io::ErrorKind::InvalidInput.into()))?;
        let begun = path.with_file_name(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
        let kept_back = (0..LEVELS).map(|_| File::open("/")).collect::<std::io::Result<_>>().map_err(told)?;
        fs::create_dir(&begun).map_err(told)?;
        Ok(Self { begun, path: path.to_owned(), whole: false, kept_back })
    }

    fn make(&self, folder: &Path) -> Result<(), ExportError> {
        fs::create_dir_all(folder).map_err(|error| ExportError::Output(self.path.clone(), error))
    }

    fn put(&self, file: &Path, content: &Value) -> Result<(), ExportError> {
        let written = File::create_new(file).and_then(|mut file| {
            file.write_all(format!("{content:#}\n").as_bytes())?;
            file.sync_all()
        });
        written.map_err(|error| ExportError::Output(self.path.clone(), error))
    }

    fn publish(&mut self) -> Result<(), ExportError> {
        let told = |error| ExportError::Output(self.path.clone(), error);
        hairspring_store::sync_folder(&self.begun.join("x")).map_err(told)?;
        // An empty folder of that name would be replaced.
        if self.path.symlink_metadata().is_ok() {
            return Err(told(std::io::ErrorKind::AlreadyExists.into()));
        }
        fs::rename(&self.begun, &self.path).map_err(told)?;
        self.whole = true;
        hairspring_store::sync_folder(&self.path).map_err(told)
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if !self.whole {
            self.kept_back.clear();
            // Files that cannot be removed stay under the temporary name.
            drop(fs::remove_dir_all(&self.begun));
        }
    }
}
