//! Adding sheets.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

use hairspring_sheet::{Figure, SCHEMA, Sheet, Value};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use serde::Deserialize;
use zstd::stream::Decoder;

use crate::identity::{build_of, conditions_of};
use crate::packed::{compressed, decompressed, in_columns};
use crate::query::{document, number_of_sheet};
use crate::remove::forget;
use crate::{Archive, ArchiveError, machine_id, sheet_id};

/// No sheet is larger: the largest ones have 5 MB.
pub const SHEET_BYTES_MAX: u64 = 32 << 20;
/// Limit of a decompressed form, which is a little longer than its text.
pub(crate) const FORM_BYTES_MAX: u64 = 2 * SHEET_BYTES_MAX;
/// A sheet that takes more than this share of its base when compressed beside it becomes the base of later ones.
const UNLIKE: f64 = 0.9;

/// Outcome of adding a sheet. Both variants hold its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is new, or its stored document could not be read any more.
    New(String),
    /// The archive has it already, and can read it.
    Known(String),
}

impl Added {
    /// The id of the sheet.
    pub fn id(&self) -> &str {
        match self {
            Self::New(id) | Self::Known(id) => id,
        }
    }
}

/// The first bytes of a file that zstd compressed.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Opens a file for reading. A file that zstd compressed is decompressed on the way.
///
/// # Errors
/// The file cannot be opened or read.
pub fn open_sheet(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut file = File::open(path)?;
    let mut start = Vec::new();
    file.by_ref().take(ZSTD_MAGIC.len() as u64).read_to_end(&mut start)?;
    let is_compressed = start == ZSTD_MAGIC;
    let whole = Cursor::new(start).chain(file);
    Ok(if is_compressed { Box::new(Decoder::new(whole)?) } else { Box::new(whole) })
}

/// Reads a file that should be a sheet, compressed by zstd or not, in bounded memory: rubbish of any size is refused
/// after its first bytes, or at the greatest size that a sheet has.
///
/// # Errors
/// The file cannot be read, is too large, or does not begin as JSON does.
pub fn read_sheet_text(path: &Path) -> Result<String, ArchiveError> {
    let failed = |error| ArchiveError::Io(format!("read {}", path.display()), error);
    let length = std::fs::metadata(path).map_err(failed)?.len();
    if length > SHEET_BYTES_MAX {
        return Err(ArchiveError::TooLarge(length));
    }
    let file = open_sheet(path).map_err(failed)?;
    let mut bytes = Vec::new();
    let mut limited = file.take(SHEET_BYTES_MAX + 1);
    limited.by_ref().take(4096).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(ArchiveError::NotASheet(
            "it does not begin as JSON; give a sheet that was written with --format json".to_owned(),
        ));
    }
    limited.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > SHEET_BYTES_MAX {
        return Err(ArchiveError::TooLarge(bytes.len() as u64));
    }
    String::from_utf8(bytes).map_err(|_| ArchiveError::NotASheet("it is no text in UTF-8".to_owned()))
}

/// The sheet in a text. Reads the version first, without keeping anything else, so that no other document takes memory.
pub(crate) fn parsed(json: &str) -> Result<Sheet, ArchiveError> {
    #[derive(Deserialize)]
    struct Head {
        schema: Option<String>,
    }
    if json.len() as u64 > SHEET_BYTES_MAX {
        return Err(ArchiveError::TooLarge(json.len() as u64));
    }
    let not_json =
        |error| ArchiveError::NotASheet(format!("{error}; give a sheet that was written with --format json"));
    let head: Head = serde_json::from_str(json).map_err(not_json)?;
    match head.schema.as_deref() {
        Some(SCHEMA) => {}
        Some(other) => {
            return Err(ArchiveError::NotASheet(format!(
                "it is a document {other}, and the archive keeps {SCHEMA}; give a sheet"
            )));
        }
        None => {
            return Err(ArchiveError::NotASheet(format!(
                "there is no \"schema\": \"{SCHEMA}\" at its top; give a sheet that was written with --format json"
            )));
        }
    }
    serde_json::from_str(json)
        .map_err(|error| ArchiveError::NotASheet(format!("{error}; take or copy the sheet again")))
}

/// Checks whether an archive can keep a text as a sheet.
///
/// # Errors
/// The text is no valid sheet; the error gives the reason.
pub fn check(json: &str) -> Result<(), ArchiveError> {
    taken_ns(&parsed(json)?).map(drop)
}

/// When a sheet was taken, in nanoseconds since 1970.
fn taken_ns(sheet: &Sheet) -> Result<i64, ArchiveError> {
    let taken: Timestamp = sheet.taken.start.parse().map_err(|_| {
        ArchiveError::NotASheet(format!("its start {:?} is not a time such as 2026-01-31T12:00:00Z", sheet.taken.start))
    })?;
    i64::try_from(taken.as_nanosecond())
        .map_err(|_| ArchiveError::NotASheet(format!("its start {taken} is before 1678 or after 2262")))
}

impl Archive {
    /// Adds a sheet, given as its JSON. When this returns, the sheet is on the disk.
    ///
    /// # Errors
    /// The text is no sheet, or cannot be written. Then the archive is unchanged.
    pub fn add(&mut self, json: &str) -> Result<Added, ArchiveError> {
        self.add_after_for_tests(json, || {})
    }

    /// Adds a sheet, and calls `meanwhile` when it is compressed and not written. For tests.
    #[doc(hidden)]
    pub fn add_after_for_tests(&mut self, json: &str, meanwhile: impl FnOnce()) -> Result<Added, ArchiveError> {
        let sheet = parsed(json)?;
        let id = sheet_id(json);
        if is_stored(&self.connection, &id)? {
            return Ok(Added::Known(id));
        }
        let form = in_columns(json);
        let (machine, effort) = (machine_id(&sheet.conditions), sheet.taken.effort.as_str());
        let pack = |base: &str| compressed(&form, base).map_err(|error| ArchiveError::Io("compress".to_owned(), error));
        // Compressing takes a second: other processes may write meanwhile.
        let beside = self.base(&machine, effort)?;
        let packed = match &beside {
            Some((_, text, _)) => pack(text)?,
            None => pack(&form)?,
        };
        let alike = beside.filter(|(_, _, base)| packed.len() as f64 <= UNLIKE * base.len() as f64);
        meanwhile();
        let transaction = self.writing()?;
        if is_stored(&transaction, &id)? {
            return Ok(Added::Known(id));
        }
        // The sheet is listed, but its stored document cannot be read: replace it.
        if let Some(number) = number_of_sheet(&transaction, &id)? {
            forget(&transaction, number)?;
        }
        // The base may have gone with its last sheet, and its number may be that of a later base.
        let same = "SELECT count(*) FROM base WHERE number = ?1 AND packed = ?2";
        let is_same = |number, base: &Vec<u8>| {
            transaction.query_row(same, params![number, base], |row| row.get::<_, i64>(0)).map(|count| count == 1)
        };
        let alike = match alike {
            Some((number, _, base)) if is_same(number, &base)? => Some((number, packed)),
            _ => None,
        };
        let (base, packed) = match alike {
            Some(alike) => alike,
            None => {
                let insert = "INSERT INTO base(machine, effort, packed) VALUES (?1, ?2, ?3)";
                transaction.execute(insert, params![machine, effort, pack("")?])?;
                (transaction.last_insert_rowid(), pack(&form)?)
            }
        };
        let insert = "INSERT INTO document(bytes, base, packed) VALUES (?1, ?2, ?3)";
        transaction.execute(insert, params![json.len() as i64, base, packed])?;
        derive(&transaction, transaction.last_insert_rowid(), &id, &sheet)?;
        transaction.commit()?;
        Ok(Added::New(id))
    }

    /// The newest base of a machine: its number, its text, and the same compressed. None, too, if it cannot be
    /// decompressed: then the sheet becomes the next one.
    fn base(&self, machine: &str, effort: &str) -> Result<Option<(i64, String, Vec<u8>)>, ArchiveError> {
        let query = "SELECT number, packed FROM base WHERE machine = ?1 AND effort = ?2 ORDER BY number DESC LIMIT 1";
        let found = self.connection.query_row(query, [machine, effort], |row| Ok((row.get(0)?, row.get(1)?)));
        let Some((number, packed)): Option<(i64, Vec<u8>)> = found.optional()? else { return Ok(None) };
        Ok(decompressed(&packed, "", FORM_BYTES_MAX).ok().map(|text| (number, text, packed)))
    }
}

/// Whether the tables list a sheet.
pub(crate) fn is_known(connection: &Connection, id: &str) -> Result<bool, ArchiveError> {
    Ok(number_of_sheet(connection, id)?.is_some())
}

/// Whether a sheet is listed and can be read.
fn is_stored(connection: &Connection, id: &str) -> Result<bool, ArchiveError> {
    let Some(number) = number_of_sheet(connection, id)? else { return Ok(false) };
    match document(connection, number) {
        Ok(json) => Ok(sheet_id(&json) == id),
        Err(ArchiveError::Damaged(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Enters a document into the derived tables.
pub(crate) fn derive(connection: &Connection, number: i64, id: &str, sheet: &Sheet) -> Result<(), ArchiveError> {
    let taken_ns = taken_ns(sheet)?;
    let (host, cpu) = (sheet.conditions.value("host.name"), sheet.conditions.value("cpu.model"));
    let machine_id = machine_id(&sheet.conditions);
    connection
        .prepare("INSERT OR IGNORE INTO machine(id, host, cpu) VALUES (?1, ?2, ?3)")?
        .execute(params![machine_id, host, cpu])?;
    let machine = number_of(connection, "SELECT number FROM machine WHERE id = ?1", &machine_id)?;
    let conditions = conditions(connection, sheet)?;
    let (mut figures, mut absent) = (0, 0);
    for row in sheet.rows() {
        match &row.value {
            Value::Figure(_) => figures += 1,
            Value::Absent(_) => absent += 1,
        }
    }
    connection
        .prepare(
            "INSERT INTO sheet(number, id, taken_ns, taken, machine, conditions, version, build, effort, interrupted, figures, absent)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            number,
            id,
            taken_ns,
            sheet.taken.when(),
            machine,
            conditions,
            sheet.hairspring.version,
            build_of(sheet),
            sheet.taken.effort,
            sheet.taken.interrupted,
            figures,
            absent
        ])?;
    let mut find = connection.prepare("SELECT number FROM quantity WHERE id = ?1 AND unit = ?2")?;
    let mut name = connection.prepare("INSERT INTO quantity(id, unit, label) VALUES (?1, ?2, ?3)")?;
    let mut enter = connection
        .prepare("INSERT OR IGNORE INTO figure(sheet, quantity, n, median, half_width) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for row in sheet.rows() {
        let Some(figure) = row.figure() else { continue };
        let Some(median) = figure.median.filter(|median| median.is_finite()) else { continue };
        let unit = figure.unit.name();
        let quantity = match find.query_row([&row.id, unit], |found| found.get(0)).optional()? {
            Some(quantity) => quantity,
            None => {
                name.execute([&row.id, unit, &row.label])?;
                connection.last_insert_rowid()
            }
        };
        let n = i64::try_from(figure.n).unwrap_or(i64::MAX);
        enter.execute(params![number, quantity, n, median, half_width(figure)])?;
    }
    Ok(())
}

/// Half of the width of the interval that holds the median.
fn half_width(figure: &Figure) -> Option<f64> {
    figure.median_interval.map(|[low, high]| (high - low) / 2.0).filter(|half| half.is_finite())
}

/// The number of a sheet's conditions, which are entered if they are new.
fn conditions(connection: &Connection, sheet: &Sheet) -> Result<i64, ArchiveError> {
    let (id, facts) = conditions_of(sheet);
    let new = connection.prepare("INSERT OR IGNORE INTO conditions(id) VALUES (?1)")?.execute([&id])? > 0;
    let number = number_of(connection, "SELECT number FROM conditions WHERE id = ?1", &id)?;
    if new {
        let insert = "INSERT INTO fact(conditions, place, id, label, value) VALUES (?1, ?2, ?3, ?4, ?5)";
        let mut enter = connection.prepare(insert)?;
        for (place, (id, label, value)) in facts.iter().enumerate() {
            enter.execute(params![number, place as i64, id, label, value])?;
        }
    }
    Ok(number)
}

fn number_of(connection: &Connection, query: &str, id: &str) -> Result<i64, ArchiveError> {
    Ok(connection.prepare(query)?.query_row([id], |row| row.get(0))?)
}
