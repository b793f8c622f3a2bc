//! Lists of the sheets and machines of an archive.

use hairspring_sheet::Sheet;
use rusqlite::{Connection, OptionalExtension, Params, Row};

use crate::add::FORM_BYTES_MAX;
use crate::packed::{decompressed, from_columns};
use crate::{Archive, ArchiveError};

/// One sheet of an archive, without its figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedSheet {
    pub(crate) number: i64,
    /// Its id: 32 hexadecimal digits.
    pub id: String,
    /// When it was taken, for people.
    pub taken: String,
    /// The same in nanoseconds since 1970.
    pub taken_ns: i64,
    /// Its machine.
    pub machine: String,
    /// The name of the machine, if the sheet states it.
    pub host: Option<String>,
    /// The model of the processor.
    pub cpu: Option<String>,
    /// Equal numbers, equal conditions. The numbers mean nothing else, and are those of this archive.
    pub conditions: i64,
    /// The version of the build that took it.
    pub version: String,
    /// `quick`, `normal` or `thorough`.
    pub effort: String,
    /// Whether it was interrupted before its end.
    pub interrupted: bool,
    /// Number of rows with a figure.
    pub figures: u32,
    /// Number of absent rows.
    pub absent: u32,
}

/// One machine of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownMachine {
    /// Its id: `m` and 16 hexadecimal digits.
    pub id: String,
    /// Its name, if its sheets state it.
    pub host: Option<String>,
    /// The model of its processor.
    pub cpu: Option<String>,
    /// Number of its sheets.
    pub sheets: u32,
}

impl KnownMachine {
    /// Name for people: the machine's name with the beginning of its id.
    pub fn name(&self) -> String {
        let name = self.host.as_deref().or(self.cpu.as_deref()).unwrap_or("unknown");
        format!("{name} [{}]", self.id.get(..7).unwrap_or(&self.id))
    }
}

const SHEETS: &str = "SELECT sheet.number, sheet.id, taken, taken_ns, machine.id, host, cpu, conditions, version, effort, interrupted, figures,
    absent FROM sheet JOIN machine ON machine.number = sheet.machine";

impl ArchivedSheet {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            number: row.get(0)?,
            id: row.get(1)?,
            taken: row.get(2)?,
            taken_ns: row.get(3)?,
            machine: row.get(4)?,
            host: row.get(5)?,
            cpu: row.get(6)?,
            conditions: row.get(7)?,
            version: row.get(8)?,
            effort: row.get(9)?,
            interrupted: row.get(10)?,
            figures: row.get(11)?,
            absent: row.get(12)?,
        })
    }

    /// The beginning of its id, for people.
    pub fn short_id(&self) -> &str {
        self.id.get(..8).unwrap_or(&self.id)
    }
}

impl Archive {
    /// All sheets, the oldest first.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn list(&self) -> Result<Vec<ArchivedSheet>, ArchiveError> {
        self.sheets("ORDER BY taken_ns, sheet.number", [])
    }

    /// The sheets of a machine, the oldest first.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn sheets_of(&self, machine: &KnownMachine) -> Result<Vec<ArchivedSheet>, ArchiveError> {
        // By its id: another process can give the number to another machine.
        self.sheets("WHERE machine.id = ?1 ORDER BY taken_ns, sheet.number", [&machine.id])
    }

    fn sheets(&self, which: &str, parameters: impl Params) -> Result<Vec<ArchivedSheet>, ArchiveError> {
        let mut query = self.connection.prepare(&format!("{SHEETS} {which}"))?;
        let found = query.query_map(parameters, ArchivedSheet::of)?.collect::<Result<_, _>>()?;
        Ok(found)
    }

    /// The one sheet whose id begins with this.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn find(&self, beginning: &str) -> Result<ArchivedSheet, ArchiveError> {
        let beginning = beginning.to_ascii_lowercase();
        let none = || ArchiveError::NoSuchSheet(beginning.clone());
        if beginning.is_empty() || !beginning.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(none());
        }
        // `g` sorts after every digit.
        let found = self.sheets("WHERE sheet.id >= ?1 AND sheet.id < ?1 || 'g' ORDER BY sheet.id", [&beginning])?;
        match found.len() {
            0 => Err(none()),
            1 => found.into_iter().next().ok_or_else(none),
            _ => {
                let ids = found.iter().take(3).map(|sheet| sheet.id[..sheet.id.len().min(16)].to_owned());
                Err(ArchiveError::Ambiguous(beginning, ids.collect()))
            }
        }
    }

    /// The JSON of a sheet, byte for byte as it was added.
    ///
    /// # Errors
    /// The stored document is damaged, or another process has removed the sheet.
    pub fn json(&self, sheet: &ArchivedSheet) -> Result<String, ArchiveError> {
        let _moment = self.reading()?;
        let number = number_of_sheet(&self.connection, &sheet.id)?;
        document(&self.connection, number.ok_or_else(|| ArchiveError::NoSuchSheet(sheet.id.clone()))?)
    }

    /// A sheet as a document.
    ///
    /// # Errors
    /// As [`Self::json`].
    pub fn sheet(&self, sheet: &ArchivedSheet) -> Result<Sheet, ArchiveError> {
        let json = self.json(sheet)?;
        serde_json::from_str(&json).map_err(|error| ArchiveError::Damaged(format!("sheet {}: {error}", sheet.id)))
    }

    /// All machines, that with the most sheets first.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn machines(&self) -> Result<Vec<KnownMachine>, ArchiveError> {
        let query = "SELECT machine.id, host, cpu, count(*) FROM machine JOIN sheet ON sheet.machine = machine.number
             GROUP BY machine.number ORDER BY count(*) DESC, machine.number";
        let mut query = self.connection.prepare(query)?;
        let machine = |row: &Row<'_>| {
            Ok(KnownMachine { id: row.get(0)?, host: row.get(1)?, cpu: row.get(2)?, sheets: row.get(3)? })
        };
        let found = query.query_map([], machine)?.collect::<Result<_, _>>()?;
        Ok(found)
    }

    /// The machine of this name, or whose id begins so; the only one without a name.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn machine(&self, named: Option<&str>) -> Result<KnownMachine, ArchiveError> {
        let all = self.machines()?;
        let names: Vec<String> = all.iter().map(KnownMachine::name).collect();
        let is_named = |machine: &KnownMachine| {
            named.is_none_or(|named| machine.host.as_deref() == Some(named) || machine.id.starts_with(named))
        };
        let mut found = all.into_iter().filter(is_named);
        match (found.next(), found.next()) {
            (Some(machine), None) => Ok(machine),
            _ => Err(ArchiveError::WhichMachine(named.map(str::to_owned), names)),
        }
    }
}

/// The values of a column.
pub(crate) fn column(connection: &Connection, query: &str, parameters: impl Params) -> Result<Vec<i64>, ArchiveError> {
    let mut query = connection.prepare(query)?;
    let found = query.query_map(parameters, |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(found)
}

/// The number of the sheet with this whole id, if it is there.
pub(crate) fn number_of_sheet(connection: &Connection, id: &str) -> Result<Option<i64>, ArchiveError> {
    Ok(connection.prepare("SELECT number FROM sheet WHERE id = ?1")?.query_row([id], |row| row.get(0)).optional()?)
}

/// The text of a document.
pub(crate) fn document(connection: &Connection, number: i64) -> Result<String, ArchiveError> {
    let damaged = |why: String| ArchiveError::Damaged(format!("document {number} cannot be read ({why})"));
    let query = "SELECT bytes, document.packed, base.packed FROM document LEFT JOIN base ON base.number = document.base WHERE sheet = ?1";
    let found = connection.prepare(query)?.query_row([number], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, Option<Vec<u8>>>(2)?))
    });
    let (bytes, packed, base) = found.optional()?.ok_or_else(|| damaged("it is gone".to_owned()))?;
    let base = match base {
        Some(base) => decompressed(&base, "", FORM_BYTES_MAX).map_err(|error| damaged(error.to_string()))?,
        None => String::new(),
    };
    let form = decompressed(&packed, &base, FORM_BYTES_MAX).map_err(|error| damaged(error.to_string()))?;
    let text = from_columns(&form).ok_or_else(|| damaged("its columns do not fit its text".to_owned()))?;
    match text.len() as i64 == bytes {
        true => Ok(text),
        false => Err(damaged("it has another length".to_owned())),
    }
}
