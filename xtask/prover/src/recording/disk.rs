//! A disk in a file, whose power can be cut: the recorder continues on a copy of the file, taken while the recorder is
//! stopped. The copy has the data that the file system had written by then, and none of those that waited in the
//! kernel's memory.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use super::make_folder;

/// A mounted file system in an image.
pub(crate) struct Disk {
    image: PathBuf,
    /// Its mount point.
    pub(crate) folder: PathBuf,
    is_mounted: bool,
}

impl Disk {
    /// Makes the image in a folder, which has nothing else, and mounts it.
    pub(crate) fn make(place: &Path, bytes: u64) -> Result<Self, String> {
        let (image, folder) = (place.join("image"), place.join("disk"));
        make_folder(&folder)?;
        let file = std::fs::File::create(&image).map_err(|error| format!("make a disk image: {error}"))?;
        file.set_len(bytes).map_err(|error| format!("make a disk image: {error}"))?;
        run("mkfs.ext4", &[Path::new("-q"), Path::new("-F"), &image])?;
        Self::mount(image, folder)
    }

    fn mount(image: PathBuf, folder: PathBuf) -> Result<Self, String> {
        run("mount", &[Path::new("-o"), Path::new("loop"), &image, &folder])?;
        Ok(Self { image, folder, is_mounted: true })
    }

    /// Copies the present contents of the disk.
    pub(crate) fn copy(&self) -> Result<PathBuf, String> {
        let copy = self.image.with_extension("copy");
        run("cp", &[Path::new("--sparse=always"), &self.image, &copy])?;
        Ok(copy)
    }

    /// The disk as it was when it was copied, in its place.
    pub(crate) fn cut(mut self, copy: &Path) -> Result<Self, String> {
        self.unmount()?;
        std::fs::rename(copy, &self.image).map_err(|error| format!("put the copied image in place: {error}"))?;
        Self::mount(self.image.clone(), self.folder.clone())
    }

    /// The kernel finishes the input and output of a killed process a little later.
    fn unmount(&mut self) -> Result<(), String> {
        self.is_mounted = false;
        let mut tries = 0;
        loop {
            match run("umount", &[&self.folder]) {
                Err(_) if tries < 100 => std::thread::sleep(Duration::from_millis(50)),
                outcome => return outcome,
            }
            tries += 1;
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_mounted {
            drop(self.unmount());
        }
    }
}

/// Stops a process where it is.
pub(crate) fn stop(process: &Child) -> Result<(), String> {
    run("kill", &[Path::new("-STOP"), Path::new(&process.id().to_string())])
}

fn run(program: &str, arguments: &[&Path]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("run {program}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    output.status.success().then_some(()).ok_or_else(|| format!("{program}: {}", said.trim()))
}
