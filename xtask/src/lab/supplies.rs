//! Requirements of the lab beside Cargo: QEMU, a PREEMPT_RT kernel with its modules, and BusyBox; for the PC also the
//! well-known programs for sound cards, to compare with; for the board also a linker.
//!
//! Installing QEMU and the linker needs root. The kernel and BusyBox are only downloaded and unpacked into the target
//! directory; they never run on this system. The newest kernel is looked up at run time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::kind::Kind;
use crate::apt::{Apt, Must};
use crate::test::needs::{has_apt, in_path};
use crate::toolchain::{self, AARCH64};
use crate::workspace::Workspace;

const BUSYBOX: &str = "busybox-static";

/// A missing requirement.
pub(crate) struct Missing {
    pub(crate) what: String,
    /// Whether this machine could install it.
    pub(crate) installable: bool,
}

/// The kernel and the programs of the guest, unpacked.
pub(crate) struct Supplies {
    pub(crate) kernel: PathBuf,
    /// The folder of modules.
    pub(crate) modules: PathBuf,
    pub(crate) busybox: PathBuf,
    /// Other programs and their files, with their places in the guest.
    pub(crate) others: Vec<(&'static str, PathBuf)>,
}

/// Finds the unpacked files.
pub(crate) fn find(workspace: &Workspace, kind: Kind) -> Option<Supplies> {
    let root = root(workspace, kind);
    let kernel = only(&root.join("boot"), |name| name.starts_with("vmlinuz-"))?;
    let modules =
        only(&root.join("lib/modules"), |_| true).or_else(|| only(&root.join("usr/lib/modules"), |_| true))?;
    let busybox =
        ["bin/busybox", "usr/bin/busybox"].map(|path| root.join(path)).into_iter().find(|path| path.is_file())?;
    let other = |(to, from): &(&'static str, &str)| {
        let path = root.join(from);
        path.exists().then_some((*to, path))
    };
    let others = kind.others().iter().map(other).collect::<Option<Vec<_>>>()?;
    Some(Supplies { kernel, modules, busybox, others })
}

/// `None` when all requirements are met.
pub(crate) fn missing(workspace: &Workspace, kind: Kind) -> Option<Missing> {
    if std::env::consts::ARCH != "x86_64" {
        let what = "the lab's machine is a PC, and its program is built on one".to_owned();
        return Some(Missing { what, installable: false });
    }
    let fetches = ["apt-get", "apt-cache", "dpkg-deb"].into_iter().all(|program| in_path(program).is_some());
    if let Some((program, package)) = absent(kind).next() {
        let what = format!("{program} is not installed (Debian: {package})");
        return Some(Missing { what, installable: has_apt() && fetches });
    }
    if find(workspace, kind).is_none() {
        let what = format!("the lab's kernel and BusyBox for {} have not been downloaded", kind.architecture());
        return Some(Missing { what, installable: fetches });
    }
    if kind == Kind::Board && toolchain::has(workspace, AARCH64).is_err() {
        let what = format!("the toolchain has no standard library for {AARCH64}");
        return Some(Missing { what, installable: in_path("rustup").is_some() });
    }
    None
}

/// Missing programs, with their packages.
fn absent(kind: Kind) -> impl Iterator<Item = (&'static str, &'static str)> {
    let programs = std::iter::once(kind.emulator()).chain(kind.tools().iter().copied());
    programs.filter(|(program, _)| in_path(program).is_none())
}

/// Installs and downloads the missing requirements.
pub(crate) fn install(workspace: &Workspace, kind: Kind, must: Must<'_>) -> Result<(), String> {
    if missing(workspace, kind).is_none() {
        return Ok(());
    }
    let absent: Vec<&str> = absent(kind).map(|(_, package)| package).collect();
    if !absent.is_empty() {
        must(Command::new("apt-get").args(["--quiet", "update"]))?;
        let mut install = Command::new("apt-get");
        install.args(["--quiet", "install", "-y", "--no-install-recommends"]).args(absent).args(kind.libraries());
        must(install.env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    if kind == Kind::Board && toolchain::has(workspace, AARCH64).is_err() {
        must(&mut toolchain::add(workspace, AARCH64))?;
    }
    if find(workspace, kind).is_some() {
        return Ok(());
    }
    let folder = kind.folder(workspace);
    let apt = Apt::new(&folder, must(Command::new("dpkg").arg("--print-architecture"))?.trim())?;
    apt.run("apt-get", &["--quiet", "update"], must)?;
    let architecture = kind.architecture();
    // The series of kernels that the lab was made with; in it modules are not compressed.
    let kernels = format!("^linux-image-6\\.1\\.0-[0-9]+-rt-{architecture}$");
    let found = apt.run("apt-cache", &["search", "--names-only", &kernels], must)?;
    let kernel = newest(&found).ok_or_else(|| format!("find a package {kernels} in the Debian archive"))?;
    println!("       downloading {kernel} and {BUSYBOX}");
    let packages = [&*kernel, BUSYBOX].into_iter().chain(kind.packages().iter().copied());
    let packages: Vec<String> = packages.map(|package| format!("{package}:{architecture}")).collect();
    let arguments = ["--quiet", "download"].into_iter().chain(packages.iter().map(String::as_str));
    apt.run("apt-get", &arguments.collect::<Vec<_>>(), must)?;
    // Unpacked into a temporary folder and renamed, so that the kernel is never incomplete.
    let partial = folder.join("partial");
    let _ = fs::remove_dir_all(&partial);
    for package in apt.downloaded()? {
        must(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&partial))?;
    }
    let root = root(workspace, kind);
    let _ = fs::remove_dir_all(&root);
    fs::rename(&partial, &root).map_err(|error| format!("rename {}: {error}", partial.display()))?;
    let _ = fs::remove_dir_all(&apt.downloads);
    Ok(())
}

fn root(workspace: &Workspace, kind: Kind) -> PathBuf {
    kind.folder(workspace).join("root")
}

/// The only entry of a folder whose name passes a test.
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
