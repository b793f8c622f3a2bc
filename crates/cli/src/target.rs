//! Where a recording is to come into being: its name and its folder, checked before anything is made.

use std::path::Path;

use hairspring_stream::recording::Files;

use crate::exit::Failure;

/// Whether this can be the name of a recording.
pub(crate) fn check_name(to: &Path) -> Result<(), Failure> {
    let shown = to.display();
    let text = to.as_os_str().as_encoded_bytes();
    if text.is_empty() || text.ends_with(b"/") || to.file_name().is_none() {
        return Err(Failure::bad_request(format!(
            "--to '{shown}' names no recording: write a folder and a name, for instance /data/run1"
        )));
    }
    let bare = Files::base_of(to);
    if bare != to {
        return Err(Failure::bad_request(format!(
            "--to {shown}: the files get their endings by themselves; write {}",
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

/// Whether a recording can come to be there. That it can be written is found out by doing it.
pub(crate) fn check(target: &Path) -> Result<(), Failure> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(Failure::bad_request(format!("{} is no folder: choose another", folder.display()))),
        Err(error) => {
            return Err(Failure::bad_request(match error.kind() {
                std::io::ErrorKind::NotFound => format!(
                    "the folder {0} does not exist: make it (mkdir -p {0}), or choose another",
                    folder.display()
                ),
                _ => format!("the folder {} cannot be looked at: {error}; choose another", folder.display()),
            }));
        }
    }
    let Files { data, meta, journal } = Files::of(target);
    // A link that leads nowhere is in the way, too.
    match [data, meta, journal].into_iter().find(|file| std::fs::symlink_metadata(file).is_ok()) {
        None => Ok(()),
        Some(file) => Err(Failure::bad_request(format!(
            "{} exists already: recordings are never overwritten, choose another name",
            file.display()
        ))),
    }
}
