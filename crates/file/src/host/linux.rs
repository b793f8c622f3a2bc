//! Linux: owner, group, mode, access control lists and other extended attributes.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

use rustix::fs::{XattrFlags, fremovexattr, fsetxattr, getxattr, listxattr};

/// The most bytes of the names, and of one value, of extended attributes that are kept; Linux allows no more.
const MOST_ATTRIBUTE_BYTES: usize = 64 * 1024;

/// The attribute that holds an access control list. A new file may inherit one from its folder.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Owner, group, mode and extended attributes of a file.
#[derive(Debug)]
pub(crate) struct Likeness {
    metadata: Metadata,
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Likeness {
    /// Those of the file with this name; `None` if there is none.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
        Some(Self { metadata, attributes: attributes(path) })
    }

    /// Gives them to a new file that only its owner can open until then. Leaves out an owner or a group that this
    /// process may not give, and then grants no more access to the file than before.
    pub(crate) fn give(&self, file: &File) -> io::Result<()> {
        let (now, wanted) = (file.metadata()?, &self.metadata);
        let mut mode = wanted.mode() & 0o7777;
        if (now.uid(), now.gid()) != (wanted.uid(), wanted.gid())
            && fchown(file, Some(wanted.uid()), Some(wanted.gid())).is_err()
        {
            mode &= 0o777;
            if fchown(file, None, Some(wanted.gid())).is_err() {
                // The group is another one: it gets the permissions of all others.
                mode = (mode & 0o707) | (mode & 0o070 & ((mode & 0o007) << 3));
            }
        }
        // Before the mode: with a list the mode's middle digit bounds what the list allows.
        let _ = fremovexattr(file, ACCESS_LIST);
        if now.mode() & 0o7777 != mode {
            match file.set_permissions(Permissions::from_mode(mode)) {
                // A file system without modes, such as that of a memory card.
                Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => {}
                other => other?,
            }
        }
        for (name, value) in &self.attributes {
            // Most need a privilege, and some file systems have none.
            let _ = fsetxattr(file, name.as_slice(), value, XattrFlags::empty());
        }
        Ok(())
    }
}

/// The extended attributes that this process may read.
fn attributes(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0; MOST_ATTRIBUTE_BYTES];
    let Ok(length) = listxattr(path, &mut names[..]) else { return Vec::new() };
    let mut value = vec![0; MOST_ATTRIBUTE_BYTES];
    let each = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let read = each.filter_map(|name| {
        let length = getxattr(path, name, &mut value[..]).ok()?;
        Some((name.to_vec(), value[..length].to_vec()))
    });
    read.collect()
}

/// Creates a file that only its owner can open.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::{NewFile, create_like};

    #[test]
    fn a_file_that_replaces_another_one_keeps_its_mode() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        std::fs::write(&path, "old").expect("written");
        for mode in [0o600, 0o640, 0o444, 0o666] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("set");
            let mut file = NewFile::begin(&path).expect("begun");
            file.write_all(b"new").expect("written");
            file.replace().expect("replaced");
            let like = folder.path().join(format!("{mode:o}"));
            drop(create_like(&like, &path).expect("created"));
            for path in [&path, &like] {
                assert_eq!(path.metadata().expect("there").mode() & 0o7777, mode, "{}", path.display());
            }
            assert_eq!(create_like(&like, &path).expect_err("refused").kind(), io::ErrorKind::AlreadyExists);
        }
    }
}
