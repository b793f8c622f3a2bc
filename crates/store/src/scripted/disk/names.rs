//! The blocking calls that make, change and remove names of files. A name is durable when its folder was synced.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use hairspring_machine::Nanos;

use super::super::content::{Change, Content, Inode};
use super::super::script::OpKind;
use super::{Done, GONE, State};
use crate::StoreError;

impl State {
    pub(in super::super) fn put(&mut self, path: &Path, content: &[u8]) -> Result<Nanos, StoreError> {
        let (stall, done) = self.act(OpKind::Put, "write", path)?;
        if self.free_bytes().is_some_and(|free| free < content.len() as u64) {
            return Err(StoreError::new("write", path, &io::Error::from_raw_os_error(libc::ENOSPC)));
        }
        if done != Done::Nothing {
            let mut inode = if done == Done::All { Inode::durable(Content::of(content)) } else { Inode::default() };
            if done == Done::InMemory {
                inode.change(Change::Write { at: 0, bytes: content.into() });
            }
            let place = self.place_of(inode);
            self.names.insert(path.to_owned(), place);
        }
        if done == Done::All {
            self.make_names_durable(hairspring_file::folder_of(path));
        }
        self.acted(stall, "write", path)
    }

    pub(in super::super) fn remove(&mut self, path: &Path) -> Result<Nanos, StoreError> {
        let (stall, done) = self.act(OpKind::Remove, "remove", path)?;
        if done != Done::Nothing && self.names.remove(path).is_none() {
            return Err(StoreError::new("remove", path, &io::Error::from_raw_os_error(libc::ENOENT)));
        }
        self.acted(stall, "remove", path)
    }

    /// The names of the files in a folder.
    pub(in super::super) fn names_in(&mut self, folder: &Path) -> Result<Vec<OsString>, StoreError> {
        if self.is_crashed {
            return Err(StoreError { attempted: "list".to_owned(), path: folder.to_owned(), errno: GONE });
        }
        let within = self.names.keys().filter(|path| hairspring_file::folder_of(path) == folder);
        Ok(within.filter_map(|path| path.file_name().map(OsStr::to_owned)).collect())
    }

    pub(in super::super) fn rename(&mut self, from: &Path, to: &Path) -> Result<Nanos, StoreError> {
        let (stall, done) = self.act(OpKind::Rename, "rename", from)?;
        if done != Done::Nothing {
            let missing = || StoreError::new("rename", from, &io::Error::from_raw_os_error(libc::ENOENT));
            let inode = self.names.remove(from).ok_or_else(missing)?;
            self.names.insert(to.to_owned(), inode);
        }
        self.acted(stall, "rename", from)
    }

    pub(in super::super) fn sync_folder(&mut self, path: &Path) -> Result<Nanos, StoreError> {
        let attempted = "make durable the names in";
        let (stall, done) = self.act(OpKind::SyncFolder, attempted, path)?;
        if done == Done::All {
            self.make_names_durable(if path.as_os_str().is_empty() { Path::new(".") } else { path });
        }
        self.acted(stall, attempted, path)
    }

    fn make_names_durable(&mut self, path: &Path) {
        self.durable_names.retain(|name, _| hairspring_file::folder_of(name) != path);
        let here = self.names.iter().filter(|(name, _)| hairspring_file::folder_of(name) == path);
        self.durable_names.extend(here.map(|(name, inode)| (name.clone(), *inode)));
    }
}
