//! Checks name and folder of a new recording before a file is created.

use std::path::Path;

use hairspring_recording::Files;
use hairspring_recording::series::{collection_of, index_of};

use hairspring_store::owner::holder;

use crate::exit::{Exit, Failure};

/// Checks that this can be the name of a recording.
pub(crate) fn check_name(to: &Path) -> Result<(), Failure> {
    let shown = to.display();
    let text = to.as_os_str().as_encoded_bytes();
    if text.is_empty() || text.ends_with(b"/") || to.file_name().is_none() {
        return Err(Failure::bad_request(format!(
            "--to '{shown}' is not a name: write a folder and a name, for instance /data/run1"
        )));
    }
    let bare = Files::base_of(to);
    if bare != to {
        return Err(Failure::bad_request(format!(
            "--to {shown}: the endings are added automatically; write {}",
            bare.display()
        )));
    }
    if to.is_dir() {
        return Err(Failure::bad_request(format!(
            "--to {shown} is a folder: add a name for the recording, for instance {}",
            to.join("run1").display()
        )));
    }
    Ok(())
}

/// Checks that the folder is there.
pub(crate) fn check_folder(target: &Path) -> Result<(), Failure> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Failure::bad_request(format!("{} is not a folder: choose another", folder.display()))),
        Err(error) => Err(Failure::bad_request(match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("the folder {0} does not exist: create it (mkdir -p {0}), or choose another", folder.display())
            }
            _ => format!("cannot read the folder {}: {error}; choose another", folder.display()),
        })),
    }
}

/// Whether there is a series of this name.
pub(crate) fn is_series(target: &Path) -> bool {
    [index_of(target), collection_of(target)].iter().any(|file| exists(file))
}

/// Counts a dangling link as existing.
fn exists(file: &Path) -> bool {
    std::fs::symlink_metadata(file).is_ok()
}

/// Checks that a recording can be created there. Does not check the permission to write, which the first write shows.
pub(crate) fn check(target: &Path) -> Result<(), Failure> {
    check_folder(target)?;
    let Files { data, meta, journal } = Files::of(target);
    // A series of this name would hide the recording.
    let (index, collection) = (index_of(target), collection_of(target));
    match [data, meta, journal, index, collection].into_iter().find(|file| exists(file)) {
        None => Ok(()),
        Some(file) => Err(match holder(&file) {
            Some(holder) => Failure {
                exit: Exit::Owned,
                text: format!("{} exists already, and {holder}: choose another name", file.display()),
            },
            None => Failure::bad_request(format!(
                "{} exists already, and recordings are never overwritten: choose another name",
                file.display()
            )),
        }),
    }
}
