//! Folders in which stations publish, one for each name.

use std::path::{Path, PathBuf};

/// Parent of the folders of all stations that are services.
const RUN: &str = "/run/hairspring";

/// The folders that a name may mean, best first: `/run/hairspring/NAME`, and `hairspring/NAME` in the user's
/// `XDG_RUNTIME_DIR`. A name with a slash is a folder. An empty name has none.
pub fn folders(name: &Path) -> Vec<PathBuf> {
    if name.as_os_str().is_empty() {
        return Vec::new();
    }
    if name.components().count() > 1 || name.is_absolute() {
        return vec![name.to_owned()];
    }
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    let own = own.map(|folder| PathBuf::from(folder).join("hairspring").join(name));
    [PathBuf::from(RUN).join(name)].into_iter().chain(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_below_run_and_a_path_is_itself() {
        assert_eq!(folders(Path::new("shutter"))[0], Path::new("/run/hairspring/shutter"));
        for path in ["/tmp/x", "a/b", "./x"] {
            assert_eq!(folders(Path::new(path)), [Path::new(path)]);
        }
        assert!(folders(Path::new("")).is_empty());
    }
}
