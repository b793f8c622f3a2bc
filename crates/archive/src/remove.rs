//! Removing sheets.

use rusqlite::Connection;

use crate::query::number_of_sheet;
use crate::{Archive, ArchiveError};

/// Counts of a removal.
#[derive(Debug)]
pub struct Removed {
    /// Number of sheets that existed and were removed.
    pub sheets: usize,
    /// Why the file is as large as before, if it is: SQLite writes a smaller copy of it first, and a full disk has no
    /// room for that. Sheets that are added later use the space.
    pub not_smaller: Option<ArchiveError>,
}

impl Archive {
    /// Removes sheets by their whole ids, and gives their space back where the disk has room for a copy of the file.
    ///
    /// # Errors
    /// The archive cannot be written. Then it is unchanged.
    pub fn remove<T: AsRef<str>>(&mut self, ids: &[T]) -> Result<Removed, ArchiveError> {
        let transaction = self.writing()?;
        let mut sheets = 0;
        for id in ids {
            let Some(number) = number_of_sheet(&transaction, id.as_ref())? else { continue };
            forget(&transaction, number)?;
            sheets += 1;
        }
        transaction.execute_batch(
            "DELETE FROM base WHERE number NOT IN (SELECT base FROM document WHERE base IS NOT NULL);
             DELETE FROM fact WHERE conditions NOT IN (SELECT conditions FROM sheet);
             DELETE FROM conditions WHERE number NOT IN (SELECT conditions FROM sheet);
             DELETE FROM machine WHERE number NOT IN (SELECT machine FROM sheet);",
        )?;
        transaction.commit()?;
        let not_smaller = if sheets > 0 { self.connection.execute_batch("VACUUM").err() } else { None };
        Ok(Removed { sheets, not_smaller: not_smaller.map(ArchiveError::from) })
    }
}

/// Removes a document and the rows that were derived from it alone.
pub(crate) fn forget(connection: &Connection, number: i64) -> Result<(), ArchiveError> {
    connection.execute("DELETE FROM figure WHERE sheet = ?1", [number])?;
    connection.execute("DELETE FROM sheet WHERE number = ?1", [number])?;
    connection.execute("DELETE FROM document WHERE sheet = ?1", [number])?;
    Ok(())
}
