//! Limits of chapter *Transfer* on disks: named folders only, and a budget of bytes.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hairspring_ring::Bytes;

/// Folders for the measurements on disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disks {
    /// Folders for files; each file is removed again. Several folders are several targets.
    pub folders: Vec<PathBuf>,
    /// The most that is written to them altogether. As much again is read.
    pub volume: Bytes,
}

impl Disks {
    /// The share of the volume for plain files; the rest is for streams.
    const PLAIN: f64 = 0.4;

    /// Bytes that may be written to plain files.
    pub(super) fn plain(&self) -> Bytes {
        Bytes((self.volume.0 as f64 * Self::PLAIN) as u64)
    }

    /// File systems and devices of the folders, never their paths.
    pub(super) fn described(&self) -> String {
        let mut described: Vec<String> = self.folders.iter().map(|folder| describe(folder)).collect();
        described.dedup();
        described.join(" and ")
    }

    /// Bytes that may be written by streams.
    pub(super) fn streams(&self) -> Bytes {
        Bytes(self.volume.0 - self.plain().0)
    }
}

/// File system and device of a folder.
fn describe(folder: &Path) -> String {
    let unknown = || "a file system that the kernel does not name".to_owned();
    let Ok(metadata) = std::fs::metadata(folder) else { return unknown() };
    let device = format!("{}:{}", rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
    let Ok(mounts) = std::fs::read_to_string("/proc/self/mountinfo") else { return unknown() };
    mounted(&mounts, &device).unwrap_or_else(unknown)
}

/// The file system of a device and its source, from the kernel's table of mounts (proc(5)).
fn mounted(mounts: &str, device: &str) -> Option<String> {
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(device))?;
    let mut behind = line.split_once(" - ")?.1.split(' ');
    Some(format!("{} on {}", behind.next()?, behind.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_mounts_tells_file_system_and_device() {
        let mounts =
            "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n30 22 0:26 / /dev/shm rw - tmpfs shm rw\n";
        assert_eq!(mounted(mounts, "254:0").as_deref(), Some("ext4 on /dev/vda"));
        assert_eq!(mounted(mounts, "0:26").as_deref(), Some("tmpfs on shm"));
        assert_eq!(mounted(mounts, "8:1"), None);
    }
}
