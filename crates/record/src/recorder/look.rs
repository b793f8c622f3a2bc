//! Checks at the end whether the paths of a recording still lead to the files that were written.
//!
//! **Problem.** `rm`, `mv` or another program can remove, replace or shorten a file while it is recorded. Writes to the
//! open file still succeed, so a recorder that trusts them reports a complete recording that cannot be found.
//!
//! **Solution.** The recorder compares device, inode and length of the file at each path with those of the open file
//! and with its own counts: once before the journal gets its end, once before the metadata are written, and for the
//! metadata themselves afterwards. If any differ, the recording is not complete, and the reason names the file and the
//! difference. A file that was cut and has grown since is shorter than the space reserved for it; this is checked
//! before more is reserved and at the end.
//!
//! **Not promised.** Bytes that another program has overwritten in place are found by `verify`. Further names of a file
//! (hard links) are no difference.

use std::path::Path;

use hairspring_ring::units::Bytes;
use hairspring_store::owner::PathFacts;
use hairspring_store::{Store, StoreError};

use super::Recorder;
use super::member::files_of;

impl Recorder {
    /// Compares the data and journal files with the open ones. Blocks.
    pub(super) fn look(&mut self) {
        let mut astray = Vec::new();
        for member in &self.members {
            let [data_path, _, journal_path] = files_of(member.base());
            let data_bytes = member.cut_bytes();
            let paths = [&data_path, &journal_path].into_iter().zip(member.shortened());
            astray.extend(paths.filter(|(_, shortened)| *shortened).map(|(path, _)| {
                format!("{} was shortened while it was recorded: another program has changed it", path.display())
            }));
            let files = [
                (data_path, member.data, data_bytes, data_bytes),
                (journal_path, member.journal, Some(member.journal_bytes()), None),
            ];
            for (path, file, least, most) in files {
                let found = self.store.look_at(file).and_then(|written| differs(&*self.store, &path, &written));
                let length = |size: u64| {
                    let is_other = least.is_some_and(|least| size < least) || most.is_some_and(|most| size > most);
                    least.filter(|_| is_other).map(|least| wrong_length(&path, size, least))
                };
                astray.extend(match found {
                    Ok(Ok(size)) => length(size),
                    Ok(Err(astray)) => Some(astray.how),
                    Err(error) => Some(format!("failed to {error}")),
                });
            }
        }
        self.astray = astray;
    }

    /// Whether another file is in the place of the metadata that this recorder has written; it is not replaced. Blocks.
    pub(super) fn strange_metadata(&self, path: &Path) -> Option<String> {
        let written = self.ownership.facts(path)?;
        match differs(&*self.store, path, &written) {
            Ok(Err(Astray { how, is_replaced: true })) => Some(format!("{how}: it was left as it is")),
            // What is gone is written anew.
            _ => None,
        }
    }

    /// Compares the metadata file at `path` with the one of `size` bytes that was put in place. Blocks.
    pub(super) fn look_at_metadata(&self, path: &Path, size: u64) -> Option<String> {
        let found = match self.ownership.facts(path) {
            Some(written) => differs(&*self.store, path, &written),
            // Without locks only the length is known.
            None => self.store.look(path).map(|now| Ok(now.size)),
        };
        match found {
            Ok(Ok(now)) => (now != size).then(|| wrong_length(path, now, size)),
            Ok(Err(astray)) => Some(astray.how),
            Err(error) => Some(format!("failed to {error}")),
        }
    }
}

/// How a path leads to another file than the one that was written.
struct Astray {
    how: String,
    /// Whether another file has its place; otherwise there is none.
    is_replaced: bool,
}

/// Whether a path leads to another file than the one that was written: its size, or how it differs.
fn differs(store: &dyn Store, path: &Path, written: &PathFacts) -> Result<Result<u64, Astray>, StoreError> {
    let is_replaced = match store.look(path) {
        Ok(now) if now.is_same_file(written) => return Ok(Ok(now.size)),
        Ok(_) => true,
        Err(error) if error.errno.0 == libc::ENOENT => false,
        Err(error) => return Err(error),
    };
    let how = match (is_replaced, written.links == 0) {
        (true, true) => "was replaced by another file, and what was recorded is gone",
        (true, false) => "is another file now; the one that was recorded has another name",
        (false, true) => "was removed while it was recorded",
        (false, false) => "was moved while it was recorded",
    };
    Ok(Err(Astray { how: format!("{} {how}", path.display()), is_replaced }))
}

fn wrong_length(path: &Path, now: u64, written: u64) -> String {
    let (now, written) = (Bytes(now), Bytes(written));
    format!("{} has {now}, and {written} were written: another program has changed it", path.display())
}
