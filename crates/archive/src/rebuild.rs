//! Making the derived tables again.

use rusqlite::{Connection, OptionalExtension};

use crate::add::{derive, is_known, parsed};
use crate::query::{column, document};
use crate::schema::{BEFORE, DERIVED, DROP_BEFORE, KEEP};
use crate::{Archive, ArchiveError, sheet_id};

/// Counts of a rebuild.
#[derive(Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// Number of sheets read from their documents.
    pub sheets: usize,
    /// The sheets whose documents cannot be read: which, and why. Their figures and their places in the list stay as
    /// they were.
    pub unreadable: Vec<String>,
}

impl Archive {
    /// Makes all derived tables again from the documents. A document that cannot be read keeps the rows that were
    /// derived from it before.
    ///
    /// # Errors
    /// The archive cannot be written. Then nothing changes.
    pub fn rebuild(&mut self) -> Result<Rebuilt, ArchiveError> {
        let transaction = self.writing()?;
        let numbers = column(&transaction, "SELECT sheet FROM document ORDER BY sheet", [])?;
        transaction.execute_batch("PRAGMA defer_foreign_keys = ON")?;
        transaction.execute_batch(BEFORE)?;
        transaction.execute_batch(DERIVED)?;
        let mut bad = Vec::new();
        for number in &numbers {
            match again(&transaction, *number) {
                Ok(()) => {}
                Err(error @ (ArchiveError::Damaged(_) | ArchiveError::NotASheet(_) | ArchiveError::TooLarge(_))) => {
                    bad.push((*number, error));
                }
                Err(error) => return Err(error),
            }
        }
        let mut unreadable = Vec::new();
        for (number, error) in &bad {
            let name = id_before(&transaction, *number)?;
            if name.as_ref().is_some_and(|id| !is_known(&transaction, id).unwrap_or(true)) {
                for statement in KEEP {
                    transaction.execute(statement, [number])?;
                }
            }
            let name = name.map_or_else(|| "a sheet without a name".to_owned(), |id| format!("sheet {id}"));
            unreadable.push(format!("{name}: failed to {error}"));
        }
        transaction.execute_batch(DROP_BEFORE)?;
        transaction.commit()?;
        Ok(Rebuilt { sheets: numbers.len() - unreadable.len(), unreadable })
    }
}

/// Derives the rows of one document again.
fn again(connection: &Connection, number: i64) -> Result<(), ArchiveError> {
    let json = document(connection, number)?;
    let id = sheet_id(&json);
    if id_before(connection, number)?.is_some_and(|before| before != id) {
        return Err(ArchiveError::Damaged("it holds the text of another sheet".to_owned()));
    }
    if is_known(connection, &id)? {
        return Err(ArchiveError::Damaged(format!("it holds sheet {id} a second time")));
    }
    derive(connection, number, &id, &parsed(&json)?)
}

/// The id of a document's sheet in the tables before the rebuild.
fn id_before(connection: &Connection, number: i64) -> Result<Option<String>, ArchiveError> {
    let query = "SELECT id FROM before_sheet WHERE number = ?1";
    Ok(connection.prepare(query)?.query_row([number], |row| row.get(0)).optional()?)
}
