//! Timing data sheets: the command takes them, this file reads them.
//!
//! The command takes the sheet in a process of its own. In the caller's process the threads, the memory and the
//! settings of the caller would be measured along with the machine, and some of its chapters start the command anyway;
//! and the library stays small.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::{CString, c_char, c_int};
use std::process::{Command, Stdio};

use hairspring_sheet::{Row, Sheet, Value, render};

use crate::error::{Failure, HS_E_COMMAND, HS_E_IO, HS_E_NOT_FOUND, HS_E_SHEET, HS_E_TEXT, door};
use crate::handle::{Kind, Shared, free, make};
use crate::pointer::{Place, optional_text, text};

/// The environment variable that names the command if it is not in PATH.
const VARIABLE: &str = "HAIRSPRING";
const COMMAND: &str = "hairspring";
const REMEDY: &str = "install it, or name it in the environment variable HAIRSPRING";

/// A sheet that was read. Never changes; any number of threads may use it.
pub struct hs_sheet(());

pub(crate) struct OwnedSheet {
    json: CString,
    host: CString,
    sheet: Sheet,
    rows: Vec<OwnedRow>,
}

/// The texts of a row, and its numbers.
struct OwnedRow {
    id: CString,
    label: CString,
    unit: Option<CString>,
    method: Option<CString>,
    reason: Option<CString>,
    remedy: Option<CString>,
    n: u64,
    /// Minimum, first quartile, median, third quartile, 99th percentile, maximum.
    numbers: [Option<f64>; 6],
}

impl OwnedRow {
    fn new(row: &Row) -> Self {
        // JSON may contain a NUL, which would end the C text.
        let text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
        let (id, label) = (text(&row.id), text(&row.label));
        match &row.value {
            Value::Figure(figure) => Self {
                id,
                label,
                unit: Some(text(figure.unit.name())),
                method: Some(text(figure.method.name())),
                reason: None,
                remedy: None,
                n: figure.n,
                numbers: [figure.min, figure.q1, figure.median, figure.q3, figure.p99, figure.max],
            },
            Value::Absent(absent) => Self {
                id,
                label,
                unit: None,
                method: None,
                reason: Some(text(&absent.reason)),
                remedy: absent.remedy.as_deref().map(text),
                n: 0,
                numbers: [None; 6],
            },
        }
    }

    fn row(&self) -> hs_row {
        let pointer = |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
        let [min, q1, median, q3, p99, max] = self.numbers.map(|number| number.unwrap_or(f64::NAN));
        hs_row {
            id: self.id.as_ptr(),
            label: self.label.as_ptr(),
            unit: pointer(&self.unit),
            method: pointer(&self.method),
            n: self.n,
            min,
            q1,
            median,
            q3,
            p99,
            max,
            reason: pointer(&self.reason),
            remedy: pointer(&self.remedy),
        }
    }
}

impl Kind for hs_sheet {
    type Owned = OwnedSheet;
    const WORD: u64 = u64::from_le_bytes(*b"timsheet");
    const NAME: &'static str = "sheet";
}

/// The contents of a sheet in numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_contents {
    /// The name of the host; its CPU if the name was left out; or "unknown". Lives as long as the sheet.
    pub host: *const c_char,
    /// Chapters.
    pub chapters: u32,
    /// Rows,
    pub rows: u32,
    /// and how many of them are absent.
    pub absent: u32,
}

/// Takes a sheet of this machine. Runs the command `hairspring` (in PATH, or named by the environment variable
/// HAIRSPRING) in a process of its own, so that the caller's threads, memory and settings do not disturb it, and waits
/// a minute or more. `only` lists the prefixes of the ids to measure, separated by commas, or is NULL for all rows. A
/// nonzero `quick` takes a quarter of the time. HS_E_COMMAND, HS_E_SHEET.
#[unsafe(no_mangle)]
pub extern "C" fn hs_sheet_take(only: *const c_char, quick: c_int, sheet: *mut *mut hs_sheet) -> c_int {
    door(|| {
        let place = Place::new(sheet)?;
        let program = std::env::var_os(VARIABLE).unwrap_or_else(|| COMMAND.into());
        let mut command = Command::new(&program);
        command.args(["sheet", "--format", "json"]).args((quick != 0).then_some("--quick")).stdin(Stdio::null());
        if let Some(only) = optional_text(only)? {
            // As one word, so that it cannot be read as another option.
            command.arg(format!("--only={only}"));
        }
        let shown = program.to_string_lossy();
        let ended = command.output();
        let ended = ended.map_err(|error| Failure::new(HS_E_COMMAND, format!("run {shown}: {error}; {REMEDY}")))?;
        if !ended.status.success() {
            let said = String::from_utf8_lossy(&ended.stderr);
            let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
            return Err(Failure::new(HS_E_COMMAND, format!("take a sheet: {shown}: {}: {last}", ended.status)));
        }
        place.put(make(parse(ended.stdout)?));
        Ok(())
    })
}

/// Reads a sheet that was written as JSON. HS_E_IO, HS_E_TEXT, HS_E_SHEET.
#[unsafe(no_mangle)]
pub extern "C" fn hs_sheet_read(path: *const c_char, sheet: *mut *mut hs_sheet) -> c_int {
    door(|| {
        let place = Place::new(sheet)?;
        let path = text(path)?;
        let bytes = std::fs::read(path).map_err(|error| Failure::new(HS_E_IO, format!("read {path}: {error}")))?;
        place.put(make(parse(bytes)?));
        Ok(())
    })
}

/// The JSON of the sheet, as written; lives as long as the sheet.
#[unsafe(no_mangle)]
pub extern "C" fn hs_sheet_json(sheet: *const hs_sheet, json: *mut *const c_char) -> c_int {
    door(|| {
        let place = Place::new(json)?;
        place.put(Shared::of(sheet)?.json.as_ptr());
        Ok(())
    })
}

/// Contents of a sheet.
#[unsafe(no_mangle)]
pub extern "C" fn hs_sheet_contents(sheet: *const hs_sheet, contents: *mut hs_contents) -> c_int {
    door(|| {
        let place = Place::new(contents)?;
        let owned = Shared::of(sheet)?;
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let absent = owned.sheet.rows().filter(|row| matches!(row.value, Value::Absent(_))).count();
        place.put(hs_contents {
            host: owned.host.as_ptr(),
            chapters: number(owned.sheet.chapters.len()),
            rows: number(owned.sheet.rows().count()),
            absent: number(absent),
        });
        Ok(())
    })
}

/// A row of a sheet: a figure with its unit, its number of samples and their spread, or the reason for its absence.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_row {
    /// Its id, such as "delays.minimum.fifo.2us.late". This and the other texts live as long as the sheet.
    pub id: *const c_char,
    /// Its label, for people.
    pub label: *const c_char,
    /// The unit of all numbers, as in the sheet's JSON: "ns", "bytes_per_s"; NULL if the figure is absent.
    pub unit: *const c_char,
    /// The method of the samples: "stamp", "diff", "rate", "count", "derived"; NULL if the figure is absent.
    pub method: *const c_char,
    /// The number of samples,
    pub n: u64,
    /// the minimum; this and the following are NaN if there are too few samples or the figure is absent.
    pub min: f64,
    /// The first quartile,
    pub q1: f64,
    /// the median,
    pub median: f64,
    /// the third quartile,
    pub q3: f64,
    /// the 99th percentile,
    pub p99: f64,
    /// and the maximum.
    pub max: f64,
    /// Why the figure is absent; NULL if it is present.
    pub reason: *const c_char,
    /// How to get it; NULL if nothing helps or the figure is present.
    pub remedy: *const c_char,
}

/// The row with this number, from 0, in reading order. HS_E_NOT_FOUND after the last.
#[unsafe(no_mangle)]
pub extern "C" fn hs_sheet_row(sheet: *const hs_sheet, index: u32, row: *mut hs_row) -> c_int {
    door(|| {
        let place = Place::new(row)?;
        let owned = Shared::of(sheet)?;
        let found = usize::try_from(index).ok().and_then(|index| owned.rows.get(index));
        place.put(found.ok_or_else(|| missing(&format!("row {index}")))?.row());
        Ok(())
    })
}

/// The row with this id. An absent one is found, with its reason. HS_E_NOT_FOUND.
#[unsafe(no_mangle)]
pub extern "C" fn hs_sheet_find(sheet: *const hs_sheet, id: *const c_char, row: *mut hs_row) -> c_int {
    door(|| {
        let place = Place::new(row)?;
        let (owned, id) = (Shared::of(sheet)?, text(id)?);
        let found = owned.rows.iter().find(|row| row.id.to_bytes() == id.as_bytes());
        place.put(found.ok_or_else(|| missing(id))?.row());
        Ok(())
    })
}

fn missing(what: &str) -> Failure {
    Failure::new(HS_E_NOT_FOUND, format!("find {what}: the sheet has no such row"))
}

/// Frees a sheet. NULL is allowed. HS_E_FREED, HS_E_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn hs_sheet_free(sheet: *mut hs_sheet) -> c_int {
    door(|| free(sheet))
}

fn parse(bytes: Vec<u8>) -> Result<OwnedSheet, Failure> {
    let json = String::from_utf8(bytes).map_err(|_| Failure::new(HS_E_TEXT, "read a sheet: it is not UTF-8"))?;
    let sheet = render::from_json(&json).map_err(|error| Failure::new(HS_E_SHEET, error.to_string()))?;
    let facts = &sheet.conditions;
    let host = facts.value("host.name").or(facts.value("cpu.model")).unwrap_or("unknown");
    let host = CString::new(host).unwrap_or_default();
    let rows = sheet.rows().map(OwnedRow::new).collect();
    // The parser refuses a NUL in JSON.
    Ok(OwnedSheet { json: CString::new(json).unwrap_or_default(), host, sheet, rows })
}
