//! Places to look for the other members of a recording, and which of them certainly belong to it and may be
//! changed.
//!
//! **Problem.** Metadata list the paths of all members as they were recorded. In a copy these paths lead to the
//! original, which a command on the copy must not change, and must not take for the copy.
//!
//! **Solution.** A member is first looked for beside the named one: at the same place relative to it as the metadata
//! list, also under the present name of the named one, and then in the same folder. Only then the listed path itself is
//! tried. A member found there may be read. It may be changed only if the named member is where the metadata list it,
//! in that very folder: then this is no copy.
//!
//! A place beside the named member that is reached through a symbolic link below their common folder may be another
//! recording's, and is treated like the listed path. A link above that folder leads both to the same tree.

use std::fs::{canonicalize, metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hairspring_file::folder_of;

/// A place where a member may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Its base path.
    pub(super) base: PathBuf,
    /// Whether a member found there may be changed.
    pub(super) is_ours: bool,
}

/// The places of the member with this number, the surest first. `named` are the numbers and base paths of those that
/// the caller named.
pub(super) fn candidates(listed: &[PathBuf], named: &[(usize, PathBuf)], number: usize) -> Vec<Place> {
    let Some(there) = listed.get(number) else { return Vec::new() };
    let (mut beside_it, mut as_listed) = (Vec::new(), Vec::new());
    let mut is_home = false;
    for (here, found) in named.iter().filter_map(|(number, found)| Some((listed.get(*number)?, found))) {
        is_home |= is_same_place(here, found);
        let absolute = std::path::absolute(found).ok().filter(|absolute| absolute != found);
        for found in std::iter::once(found.clone()).chain(absolute) {
            for (root, below) in beside(here, &found, there) {
                let base = root.join(&below);
                match is_same_place(there, &base) {
                    true => as_listed.push(base),
                    false => beside_it.push(Place { base, is_ours: !leads_out(&root, &below) }),
                }
            }
        }
    }
    as_listed.extend(there.is_absolute().then(|| there.clone()));
    as_listed.dedup();
    let as_listed = as_listed.into_iter().map(|base| Place { base, is_ours: is_home });
    match is_home {
        true => as_listed.chain(beside_it).collect(),
        false => beside_it.into_iter().chain(as_listed).collect(),
    }
}

/// The place of a member that was moved together with the named one: a folder of both, and the path below it.
fn beside(listed_here: &Path, found_here: &Path, listed_there: &Path) -> Vec<(PathBuf, PathBuf)> {
    let (here, there): (Vec<_>, Vec<_>) = (listed_here.components().collect(), listed_there.components().collect());
    let common = here.iter().zip(&there).take_while(|(a, b)| a == b).count();
    let (folders, name): (PathBuf, _) = (here[common..].iter().collect(), found_here.file_name());
    let folders = folders.parent().map(Path::to_owned).unwrap_or_default();
    let folder = folder_of(found_here);
    let mut all = Vec::new();
    if folder.ends_with(&folders)
        && let Some(root) = found_here.ancestors().nth(1 + folders.components().count())
    {
        let below: PathBuf = there[common..].iter().collect();
        // Both may have been given another name.
        let renamed = name.filter(|name| {
            listed_here.file_name() == listed_there.file_name() && listed_here.file_name() != Some(*name)
        });
        let renamed = renamed.map(|name| below.with_file_name(name));
        all.extend(renamed.into_iter().chain([below]).map(|below| (root.to_owned(), below)));
    }
    all.extend(listed_there.file_name().map(|name| (folder.to_owned(), PathBuf::from(name))));
    all.dedup();
    all
}

/// Whether two base paths are one name in one folder, even if its two paths differ.
fn is_same_place(listed: &Path, found: &Path) -> bool {
    let identity = |base: &Path| metadata(folder_of(base)).ok().map(|folder| (folder.dev(), folder.ino()));
    listed == found
        || listed.is_absolute()
            && listed.file_name() == found.file_name()
            && identity(listed).is_some_and(|listed| Some(listed) == identity(found))
}

/// Whether a symbolic link lies between a folder and a base path below it.
fn leads_out(root: &Path, below: &Path) -> bool {
    let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
    match (canonicalize(root), canonicalize(folder_of(&root.join(below)))) {
        (Ok(root), Ok(folder)) => folder != folder_of(&root.join(below)),
        // There is no such file; or the disk is simulated.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sought(here: &str, found: &str, there: &str) -> Vec<String> {
        let places = candidates(&[here.into(), there.into()], &[(0, found.into())], 1);
        places
            .into_iter()
            .map(|place| format!("{}{}", place.base.display(), if place.is_ours { "" } else { " elsewhere" }))
            .collect()
    }

    #[test]
    fn members_are_sought_beside_the_named_one_before_the_listed_path() {
        assert_eq!(sought("/mnt/a/x", "/backup/a/x", "/mnt/b/x"), ["/backup/b/x", "/backup/a/x", "/mnt/b/x elsewhere"]);
        assert_eq!(sought("/mnt/a/x", "/backup/x", "/mnt/b/x"), ["/backup/x", "/mnt/b/x elsewhere"]);
        assert_eq!(sought("/d1/x", "/d9/x", "/d2/y"), ["/d9/y", "/d2/y elsewhere"]);
        // Renamed in both folders.
        assert_eq!(sought("/mnt/a/x", "/mnt/a/y", "/mnt/b/x"), ["/mnt/b/y", "/mnt/a/x", "/mnt/b/x elsewhere"]);
        // A segment in one folder of two.
        assert_eq!(sought("/d/x-1", "/e/x-1", "/d/y-1"), ["/e/y-1", "/d/y-1 elsewhere"]);
    }

    #[test]
    fn members_of_a_recording_that_was_not_moved_are_its_own() {
        assert_eq!(sought("/d1/x", "/d1/x", "/d2/y")[0], "/d2/y");
        assert_eq!(sought("a/x", "a/x", "b/x")[0], "b/x");
    }
}
