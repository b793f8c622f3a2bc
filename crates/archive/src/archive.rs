//! [`Archive`]: the file, opened and checked.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::ArchiveError;
use crate::schema::{APPLICATION_ID, ARCHIVE_VERSION, DERIVED, TRUTH};

/// Longest wait for another process that writes.
const WAIT: Duration = Duration::from_secs(30);

/// An archive of sheets. Every process opens its own.
#[derive(Debug)]
pub struct Archive {
    pub(crate) connection: Connection,
}

impl Archive {
    /// Opens an archive.
    ///
    /// # Errors
    /// There is no such file, it is no archive, or a later version wrote it.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        if !path.exists() {
            return Err(ArchiveError::NotFound(path.display().to_string()));
        }
        let archive = Self::connected(path, OpenFlags::empty())?;
        match archive.is_new(path)? {
            false => Ok(archive),
            true => Err(ArchiveError::NotAnArchive(path.display().to_string())),
        }
    }

    /// Opens an archive, and makes it with its folder if there is none.
    ///
    /// # Errors
    /// As [`Self::open`], and if the system refuses to make the file.
    pub fn create(path: &Path) -> Result<Self, ArchiveError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|error| ArchiveError::Io(format!("make the folder {}", folder.display()), error))?;
        }
        let mut archive = Self::connected(path, OpenFlags::SQLITE_OPEN_CREATE)?;
        if archive.is_new(path)? {
            let transaction = archive.connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
            // Another process may have made it meanwhile.
            if is_empty(&transaction)? {
                transaction.execute_batch(TRUTH)?;
                transaction.execute_batch(DERIVED)?;
                transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
                transaction.pragma_update(None, "user_version", ARCHIVE_VERSION)?;
            }
            transaction.commit()?;
        }
        Ok(archive)
    }

    fn connected(path: &Path, more: OpenFlags) -> Result<Self, ArchiveError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(WAIT)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        Ok(Self { connection })
    }

    /// Whether the file has no table yet. A file that is no archive of this version is refused.
    fn is_new(&self, path: &Path) -> Result<bool, ArchiveError> {
        let not_one = || ArchiveError::NotAnArchive(path.display().to_string());
        let number = |name| self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let application = number("application_id").map_err(|error| match ArchiveError::from(error) {
            ArchiveError::NotAnArchive(_) => not_one(),
            other => other,
        })?;
        match (application, number("user_version")?) {
            (APPLICATION_ID, ARCHIVE_VERSION) => Ok(false),
            (APPLICATION_ID, version) => Err(ArchiveError::LaterVersion(version, ARCHIVE_VERSION)),
            _ if is_empty(&self.connection)? => Ok(true),
            _ => Err(not_one()),
        }
    }

    /// Limits the growth of the file to a page, as on a disk that is nearly full. For tests.
    #[doc(hidden)]
    pub fn limit_pages_for_tests(&self) {
        let pages = |name| self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap_or(0);
        let most = pages("page_count") + 1;
        let _ = self.connection.pragma_update(None, "max_page_count", most);
    }

    /// Begins to write.
    pub(crate) fn writing(&mut self) -> Result<Transaction<'_>, ArchiveError> {
        Ok(self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?)
    }

    /// Begins to read in several steps, which all see the archive as it is now.
    pub(crate) fn reading(&self) -> Result<Transaction<'_>, ArchiveError> {
        Ok(self.connection.unchecked_transaction()?)
    }
}

fn is_empty(connection: &Connection) -> Result<bool, rusqlite::Error> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))
}
