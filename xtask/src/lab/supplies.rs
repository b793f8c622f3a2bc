//! What the lab needs beside Cargo: QEMU, a PREEMPT_RT kernel with its modules, and BusyBox.
//!
//! QEMU is installed, which takes root. The kernel and BusyBox are only downloaded and unpacked, into the target directory: nothing of
//! them runs on this system. Which kernel is the newest is asked at run time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::test::needs::{has_apt, in_path};
use crate::workspace::Workspace;

pub(crate) const QEMU: &str = "qemu-system-x86_64";
const QEMU_PACKAGE: &str = "qemu-system-x86";
const BUSYBOX_PACKAGE: &str = "busybox-static";
/// The series of kernels that the lab was made with; in it modules are not compressed.
const KERNELS: &str = "^linux-image-6\\.1\\.0-[0-9]+-rt-amd64$";

/// Something that is not here.
pub(crate) struct Missing {
    pub(crate) what: String,
    /// Whether this machine could have it.
    pub(crate) installable: bool,
}

/// The kernel and the programs of the guest, unpacked.
pub(crate) struct Supplies {
    pub(crate) kernel: PathBuf,
    /// The folder of modules.
    pub(crate) modules: PathBuf,
    pub(crate) busybox: PathBuf,
}

/// Finds what was unpacked.
pub(crate) fn find(workspace: &Workspace) -> Option<Supplies> {
    let root = root(workspace);
    let kernel = only(&root.join("boot"), |name| name.starts_with("vmlinuz-"))?;
    let modules =
        only(&root.join("lib/modules"), |_| true).or_else(|| only(&root.join("usr/lib/modules"), |_| true))?;
    let busybox =
        ["bin/busybox", "usr/bin/busybox"].map(|path| root.join(path)).into_iter().find(|path| path.is_file())?;
    Some(Supplies { kernel, modules, busybox })
}

/// `None` when all is here.
pub(crate) fn missing(workspace: &Workspace) -> Option<Missing> {
    if std::env::consts::ARCH != "x86_64" {
        let what = "the lab's machine is a PC, and its program is built on one".to_owned();
        return Some(Missing { what, installable: false });
    }
    let fetches = ["apt-get", "apt-cache", "dpkg-deb"].into_iter().all(|program| in_path(program).is_some());
    if in_path(QEMU).is_none() {
        let what = format!("{QEMU} is not installed (Debian: {QEMU_PACKAGE})");
        return Some(Missing { what, installable: has_apt() && fetches });
    }
    if find(workspace).is_none() {
        let what = "the lab's kernel and BusyBox have not been downloaded".to_owned();
        return Some(Missing { what, installable: fetches });
    }
    None
}

/// Installs and downloads what is missing; `must` runs a command that must succeed and yields what it said.
pub(crate) fn install(
    workspace: &Workspace,
    must: &mut dyn FnMut(&mut Command) -> Result<String, String>,
) -> Result<(), String> {
    if missing(workspace).is_none() {
        return Ok(());
    }
    if has_apt() {
        must(Command::new("apt-get").args(["--quiet", "update"]))?;
    }
    if in_path(QEMU).is_none() {
        let mut install = Command::new("apt-get");
        install.args(["--quiet", "install", "-y", "--no-install-recommends", QEMU_PACKAGE]);
        must(install.env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    let found = must(Command::new("apt-cache").args(["search", "--names-only", KERNELS]))?;
    let kernel = newest(&found).ok_or_else(|| format!("find a package {KERNELS} in the Debian archive"))?;
    // Unpacked beside and renamed, so that half a kernel is never taken for a whole one.
    let (partial, downloads) = (workspace.scratch("lab").join("partial"), workspace.scratch("lab").join("downloads"));
    for folder in [&partial, &downloads] {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).map_err(|error| format!("create {}: {error}", folder.display()))?;
    }
    println!("       downloading {kernel} and {BUSYBOX_PACKAGE}");
    must(Command::new("apt-get").args(["--quiet", "download", &kernel, BUSYBOX_PACKAGE]).current_dir(&downloads))?;
    let listed = fs::read_dir(&downloads).map_err(|error| format!("list {}: {error}", downloads.display()))?;
    for package in listed.flatten().map(|entry| entry.path()) {
        must(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&partial))?;
    }
    let root = root(workspace);
    let _ = fs::remove_dir_all(&root);
    fs::rename(&partial, &root).map_err(|error| format!("rename {}: {error}", partial.display()))?;
    let _ = fs::remove_dir_all(&downloads);
    Ok(())
}

fn root(workspace: &Workspace) -> PathBuf {
    workspace.scratch("lab").join("root")
}

/// The one entry of a folder whose name is such a one.
fn only(folder: &Path, is_it: fn(&str) -> bool) -> Option<PathBuf> {
    let mut entries = fs::read_dir(folder).ok()?.flatten().filter(|entry| is_it(&entry.file_name().to_string_lossy()));
    entries.next().map(|entry| entry.path()).filter(|_| entries.next().is_none())
}

/// The package with the greatest build number.
fn newest(found: &str) -> Option<String> {
    let packages = found.lines().filter_map(|line| line.split(" - ").next());
    let number = |package: &str| package.split('-').nth(3).and_then(|number| number.parse::<u32>().ok());
    packages.filter(|package| number(package).is_some()).max_by_key(|package| number(package)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_is_the_one_with_the_greatest_number() {
        let found = "linux-image-6.1.0-9-rt-amd64 - Linux\nlinux-image-6.1.0-56-rt-amd64 - Linux\n\
                     linux-image-6.1.0-47-rt-amd64 - Linux\nlinux-image-rt-amd64 - the newest\n";
        assert_eq!(newest(found).as_deref(), Some("linux-image-6.1.0-56-rt-amd64"));
        assert_eq!(newest(""), None);
    }

    #[test]
    fn an_entry_is_taken_only_if_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let kernels = || only(folder.path(), |name| name.starts_with("vmlinuz-"));
        assert_eq!(kernels(), None);
        fs::write(folder.path().join("config-1"), "").unwrap();
        fs::write(folder.path().join("vmlinuz-1"), "").unwrap();
        assert_eq!(kernels(), Some(folder.path().join("vmlinuz-1")));
        fs::write(folder.path().join("vmlinuz-2"), "").unwrap();
        assert_eq!(kernels(), None);
    }
}
