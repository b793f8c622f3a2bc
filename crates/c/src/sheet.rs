//! Timing data sheets: taken by the command, read here, handed on as JSON.
//!
//! The command takes the sheet in a process of its own. In the caller's process the threads, the memory and the settings of the caller
//! would be measured along with the machine, and some of its chapters start the command anyway; and the library stays small.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::{CString, c_char, c_int};
use std::process::{Command, Stdio};

use hairspring_sheet::{Sheet, Value, render};

use crate::error::{Failure, HS_E_COMMAND, HS_E_IO, HS_E_NOT_FOUND, HS_E_SHEET, HS_E_TEXT, door};
use crate::handle::{Kind, Shared, free, make};
use crate::pointer::{Place, optional_text, text};

/// The variable that names the command, where it is not in PATH.
const VARIABLE: &str = "HAIRSPRING";
const COMMAND: &str = "hairspring";
const REMEDY: &str = "install it, or name it in the environment variable HAIRSPRING";

/// A sheet that was read. Never changes; any number of threads may use it.
pub struct hs_sheet(());

pub(crate) struct OwnedSheet {
    json: CString,
    host: CString,
    sheet: Sheet,
}

impl Kind for hs_sheet {
    type Owned = OwnedSheet;
    const WORD: u64 = u64::from_le_bytes(*b"timsheet");
    const NAME: &'static str = "sheet";
}

/// What is in a sheet.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_contents {
    /// The host's name, or its CPU's where the name was left out, or "unknown"; lives as long as the sheet.
    pub host: *const c_char,
    /// Chapters.
    pub chapters: u32,
    /// Rows,
    pub rows: u32,
    /// and how many of them are absent, with their reason.
    pub absent: u32,
}

/// Takes a sheet of this machine: runs the command `hairspring` (in PATH, or named by the environment variable HAIRSPRING) and waits
/// for it, a minute or more. `only` has the beginnings of the ids of the rows to measure, with commas between them, or is NULL for all;
/// `quick` not 0 takes a quarter of the time. HS_E_COMMAND, HS_E_SHEET.
#[unsafe(no_mangle)]
pub extern "C" fn hs_sheet_take(only: *const c_char, quick: c_int, sheet: *mut *mut hs_sheet) -> c_int {
    door(|| {
        let place = Place::new(sheet)?;
        let program = std::env::var_os(VARIABLE).unwrap_or_else(|| COMMAND.into());
        let mut command = Command::new(&program);
        command.args(["sheet", "--format", "json"]).args((quick != 0).then_some("--quick")).stdin(Stdio::null());
        if let Some(only) = optional_text(only)? {
            // In one word, so that it cannot be taken for another option.
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

/// The sheet as JSON, as it was written; lives as long as the sheet.
#[unsafe(no_mangle)]
pub extern "C" fn hs_sheet_json(sheet: *const hs_sheet, json: *mut *const c_char) -> c_int {
    door(|| {
        let place = Place::new(json)?;
        place.put(Shared::of(sheet)?.json.as_ptr());
        Ok(())
    })
}

/// What is in a sheet.
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

/// The median of the figure with this id, in the unit of the sheet, as "delays.minimum.fifo.2us.late"; NaN where it has none.
/// HS_E_NOT_FOUND (no such row, or it is absent: hs_last_error() has the reason).
#[unsafe(no_mangle)]
pub extern "C" fn hs_sheet_median(sheet: *const hs_sheet, id: *const c_char, median: *mut f64) -> c_int {
    door(|| {
        let place = Place::new(median)?;
        let (owned, id) = (Shared::of(sheet)?, text(id)?);
        let missing = |why: &str| Failure::new(HS_E_NOT_FOUND, format!("find a figure under {id}: {why}"));
        let row = owned.sheet.row(id).ok_or_else(|| missing("the sheet has no such row"))?;
        match &row.value {
            Value::Figure(figure) => place.put(figure.median.unwrap_or(f64::NAN)),
            Value::Absent(absent) => return Err(missing(&absent.reason)),
        }
        Ok(())
    })
}

/// Gives a sheet back. NULL is allowed. HS_E_FREED, HS_E_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn hs_sheet_free(sheet: *mut hs_sheet) -> c_int {
    door(|| free(sheet))
}

fn parse(bytes: Vec<u8>) -> Result<OwnedSheet, Failure> {
    let json = String::from_utf8(bytes).map_err(|_| Failure::new(HS_E_TEXT, "read a sheet: it is no UTF-8"))?;
    let sheet = render::from_json(&json).map_err(|error| Failure::new(HS_E_SHEET, error.to_string()))?;
    let facts = &sheet.conditions;
    let host = facts.value("host.name").or(facts.value("cpu.model")).unwrap_or("unknown");
    let host = CString::new(host).unwrap_or_default();
    // JSON has no NUL; the parser has seen to it.
    Ok(OwnedSheet { json: CString::new(json).unwrap_or_default(), host, sheet })
}
